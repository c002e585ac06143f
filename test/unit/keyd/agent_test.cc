// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "agent.h"

#include <gmock/gmock.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace uet::keyd {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// An interval begins; later than the begin of a job, which is a time of the file system.
constexpr seconds kThen{4'000'000'000};

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

class KeydAgent : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/uet_keyd_agent_XXXXXX";
    directory_ = ::mkdtemp(pattern);
    start();
  }
  void TearDown() override {
    agent_.reset();
    std::filesystem::remove_all(directory_);
  }
  void start() {
    agent_.reset();
    agent_ = std::make_unique<Agent>(directory_ + "/run", directory_ + "/state", tss::Key(),
                                     Rotation{seconds(100), seconds(10)});
  }
  std::string ask_as(uid_t user, const std::string& words, seconds now = kThen + seconds(20)) {
    Request request;
    return parse_request(words, request) ? agent_->answer(request, user, now) : "bad request";
  }
  std::string key_file(uid_t user) const {
    return directory_ + "/run/" + std::to_string(user) + "-5.keys";
  }

  const uid_t self_ = ::geteuid();
  const uid_t other_ = self_ + 1000;
  std::string directory_;
  std::unique_ptr<Agent> agent_;
};

TEST(KeydRequest, WordsAreReadWhole) {
  Request request;
  EXPECT_TRUE(parse_request("begin 5", request));
  EXPECT_FALSE(request.user);
  EXPECT_TRUE(parse_request("end 5 1000", request));
  EXPECT_EQ(request.user, 1000U);
  for (const char* const bad : {"", "begin", "begin x", "begin 5 6 7", "begin -5",
                                "begin 4294967296", "erase 5", "begin  5"}) {
    EXPECT_FALSE(parse_request(bad, request)) << bad;
  }
}

TEST_F(KeydAgent, UserHasItsOwnJobsOnly) {
  EXPECT_EQ(ask_as(self_, "begin 5"), "ok ");
  EXPECT_THAT(ask_as(self_, "keys 5"), StartsWith("ok uet-tss-keys 1\n"));
  EXPECT_EQ(ask_as(self_, "where 5"),
            "ok " + key_file(self_) + "\n" + directory_ + "/run/" + std::to_string(self_) + "-5");
  for (const char* const verb : {"keys", "where", "end", "begin"}) {
    const std::string words = std::string(verb) + " 5 " + std::to_string(self_);
    EXPECT_THAT(ask_as(other_, words), StartsWith("error ")) << verb;
  }
  EXPECT_THAT(ask_as(other_, "keys 5"), HasSubstr("no such job"));
  EXPECT_EQ(ask_as(self_, "end 5"), "ok ");
  EXPECT_FALSE(std::filesystem::exists(key_file(self_)));
  EXPECT_THAT(ask_as(self_, "keys 5"), StartsWith("error "));
}

TEST_F(KeydAgent, UserHasABoundedNumberOfJobs) {
  if (self_ != 0) GTEST_SKIP() << "gives files to another user: needs root";
  for (std::size_t job = 1; job <= Agent::kMostJobsOfUser; ++job) {
    EXPECT_EQ(ask_as(other_, "begin " + std::to_string(job)), "ok ");
  }
  EXPECT_THAT(ask_as(other_, "begin 1000"), HasSubstr("end one"));
  EXPECT_EQ(ask_as(other_, "begin 5"), "ok ") << "it has begun already";
  EXPECT_EQ(ask_as(0, "begin 1000 " + std::to_string(other_)), "ok ");
  struct stat info {};
  ASSERT_EQ(::stat(key_file(other_).c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, other_);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(KeydAgent, Tss53_FilesFollowTheTime) {
  (void)ask_as(self_, "begin 5", kThen + seconds(20));
  const auto keys = [this] {
    const std::string text = text_of(key_file(self_));
    return std::pair(text.find("key 0 ") != std::string::npos,
                     text.find("key 1 ") != std::string::npos);
  };
  const auto modified = [this] {
    struct stat info {};
    EXPECT_EQ(::stat(key_file(self_).c_str(), &info), 0);
    return info.st_mtime;
  };
  EXPECT_EQ(keys(), std::pair(true, false));
  EXPECT_EQ(modified(), kThen.count());
  agent_->update(kThen + seconds(50));
  EXPECT_EQ(keys(), std::pair(true, true));
  EXPECT_THAT(text_of(key_file(self_)), HasSubstr("active 0\n"));
  EXPECT_EQ(modified(), kThen.count()) << "the active key is as old as before (TSS-37)";
  agent_->update(kThen + seconds(100));
  EXPECT_EQ(keys(), std::pair(true, true));
  EXPECT_THAT(text_of(key_file(self_)), HasSubstr("active 1\n"));
  EXPECT_EQ(modified(), kThen.count() + 100);
  agent_->update(kThen + seconds(110));
  EXPECT_EQ(keys(), std::pair(false, true));
}

TEST_F(KeydAgent, Tss37_AgentThatComesBackGoesOn) {
  (void)ask_as(self_, "begin 5");
  const std::string before = text_of(key_file(self_));
  start();
  agent_->update(kThen + seconds(20));
  EXPECT_EQ(text_of(key_file(self_)), before);
  EXPECT_EQ(ask_as(self_, "begin 5"), "ok ");
  EXPECT_EQ(text_of(key_file(self_)), before) << "a job that has begun keeps its epoch";
  (void)ask_as(self_, "end 5");
  (void)ask_as(self_, "begin 5");
  EXPECT_NE(text_of(key_file(self_)), before) << "a newer epoch";
}

TEST_F(KeydAgent, SocketTellsWhoAsks) {
  const int stop = ::eventfd(0, EFD_CLOEXEC);
  std::thread server([&] { agent_->run(stop); });
  const std::string socket = socket_of(directory_ + "/run");
  EXPECT_EQ(ask(socket, "begin 5"), "");
  EXPECT_THAT(ask(socket, "keys 5"), StartsWith("uet-tss-keys 1\n"));
  EXPECT_THROW(ask(socket, "keys 6"), std::runtime_error);
  EXPECT_THROW(ask(socket, "nonsense"), std::runtime_error);
  EXPECT_THROW(Agent(directory_ + "/run", directory_ + "/state", tss::Key(), {}),
               std::runtime_error)
      << "another agent serves there";
  EXPECT_THAT(ask(socket, "keys 5"), StartsWith("uet-tss-keys 1\n"));
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(stop, &one, sizeof one), static_cast<ssize_t>(sizeof one));
  server.join();
  ::close(stop);
  agent_.reset();
  EXPECT_THROW(ask(socket, "keys 5"), std::runtime_error);
}

}  // namespace
}  // namespace uet::keyd
