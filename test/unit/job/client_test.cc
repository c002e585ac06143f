// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The environment of a rank, and a job of one rank without uet_run.
#include "uet_job/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>

namespace uet::job {
namespace {

using testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

const std::string kToken(32, 'a');

int read(const Variables& variables, Place& place, std::string& problem) {
  return read_place(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      place, problem);
}

TEST(JobClient, ReadsItsPlace) {
  Place place;
  std::string problem;
  Variables all{{"UET_RANK", "2"},
                {"UET_SIZE", "3"},
                {"UET_JOB_ID", "8388609"},
                {"UET_MASTER", "[fd00::1]:77"},
                {"UET_JOB_TOKEN", kToken}};
  ASSERT_EQ(read(all, place, problem), 0) << problem;
  EXPECT_EQ(place.rank, 2U);
  EXPECT_EQ(place.size, 3U);
  EXPECT_EQ(place.job_id, 8388609U);
  EXPECT_EQ(place.host, "fd00::1");
  EXPECT_EQ(place.port, "77");
  all["FI_UET_JOB_ID"] = "0x10";
  ASSERT_EQ(read(all, place, problem), 0);
  EXPECT_EQ(place.job_id, 16U);
}

TEST(JobClient, NamesTheBrokenVariable) {
  const Variables good{
      {"UET_RANK", "0"}, {"UET_SIZE", "2"}, {"UET_MASTER", "h:1"}, {"UET_JOB_TOKEN", kToken}};
  for (const auto& [name, value] : Variables{{"UET_RANK", "2"},
                                             {"UET_SIZE", "0"},
                                             {"UET_MASTER", "h:"},
                                             {"UET_JOB_TOKEN", "short"},
                                             {"UET_JOB_ID", "16777216"}}) {
    Variables bad = good;
    bad[name] = value;
    Place place;
    std::string problem;
    EXPECT_EQ(read(bad, place, problem), -EINVAL) << name;
    EXPECT_THAT(problem, HasSubstr(name));
  }
}

TEST(JobClient, IsAJobOfOneWithoutUetRun) {
  Place place;
  std::string problem;
  ASSERT_EQ(read({}, place, problem), 0);
  Client client;
  ASSERT_EQ(client.join(place, 1000), 0);
  const std::string blob = "xyz";
  std::string all(3, ' ');
  EXPECT_EQ(client.all_gather({blob.data(), blob.size()}, all.data()), 0);
  EXPECT_EQ(all, blob);
  const std::string large((1U << 20) + 1, ' ');
  EXPECT_EQ(client.all_gather({large.data(), large.size()}, nullptr), -EMSGSIZE);
}

TEST(JobClient, SaysThatUetRunIsNotThere) {
  Place place;
  place.host = "127.0.0.1";
  place.port = "1";
  place.token = kToken;
  Client client;
  EXPECT_EQ(client.join(place, 1000), -ECONNREFUSED);
  EXPECT_THAT(client.problem(), HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace uet::job
