// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Jobs: what is an endpoint's own through auth_key or FI_UET_JOB_ID is reached by its job and by no
// other, with relative and with absolute addresses; and what keys and names say on the wire.
#include <gtest/gtest.h>
#include <rdma/fi_atomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kKey = 5;
constexpr std::size_t kFlagsAt = 1;  // in an FI_ADDR_UET (WIRE 4.2)
constexpr std::uint8_t kAbsolute = 0x20;
constexpr std::size_t kPidAt = 20;
constexpr std::size_t kIndexAt = 22;

// Return codes (SES section 9), as prov_errno gives them.
constexpr int kBadIndex = 0x19;
constexpr int kBadPid = 0x1A;
constexpr int kBadJobId = 0x1B;
constexpr int kBadMkey = 0x1C;

enum class KeyOf { Endpoint, Domain };

void set_key(std::uint8_t*& key, std::size_t& size, std::uint8_t job) {
  size = 3;
  key = static_cast<std::uint8_t*>(std::calloc(size, 1));
  key[2] = job;
}

// The job as auth_key of what `whose` says; 0: none. `absolute`: the name of its endpoints.
SideOptions options_of(std::uint8_t job, KeyOf whose, bool absolute) {
  return {.info = [=](fi_info& info) {
    if (absolute) static_cast<std::uint8_t*>(info.src_addr)[kFlagsAt] |= kAbsolute;
    if (job == 0) return;
    if (whose == KeyOf::Endpoint) {
      set_key(info.ep_attr->auth_key, info.ep_attr->auth_key_size, job);
    } else {
      set_key(info.domain_attr->auth_key, info.domain_attr->auth_key_size, job);
    }
  }};
}

// The result of an operation: 0, or the error and the return code behind it.
struct Verdict {
  int error = 0;
  int return_code = 0;
  bool operator==(const Verdict&) const = default;
};
void PrintTo(const Verdict& verdict, std::ostream* out) {
  *out << "error " << verdict.error << ", return code " << verdict.return_code;
}

Verdict outcome_at(Side& side, Side& peer) {
  const Clock::time_point start = Clock::now();
  for (;;) {
    fi_cq_tagged_entry entry{};
    const ssize_t result = fi_cq_read(side.cq.get(), &entry, 1);
    if (result == 1) return {};
    if (result == -FI_EAVAIL) {
      fi_cq_err_entry error{};
      check(fi_cq_readerr(side.cq.get(), &error, 0), "fi_cq_readerr");
      return {error.err, error.prov_errno};
    }
    fi_cq_read(peer.cq.get(), nullptr, 0);
    require(Clock::now() - start < kDeadline, "no completion came");
  }
}

// A target with a region and receives, and those that try to reach it.
class Target {
 public:
  explicit Target(const SideOptions& options) : side(options), ep(side.open_endpoint(0)) {
    fid_mr* made = nullptr;
    check(fi_mr_reg(side.domain.get(), memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                    kKey, 0, &made, nullptr),
          "fi_mr_reg");
    mr.reset(made);
    check(fi_recv(ep.get(), room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), "fi_recv");
    check(fi_trecv(ep.get(), room + 8, 8, nullptr, FI_ADDR_UNSPEC, 7, 0, room + 8), "fi_trecv");
  }
  bool untouched() {
    const auto is_zero = [](char c) { return c == 0; };
    return std::all_of(std::begin(memory), std::end(memory), is_zero) &&
           std::all_of(std::begin(room), std::end(room), is_zero) && !side.poll();
  }

  Side side;
  Owned<fid_ep> ep;
  Owned<fid_mr> mr;
  alignas(8) char memory[64] = "";
  char room[16] = "";
};

// Every kind of operation, in this order.
constexpr std::size_t kMessages = 2;  // of them the first
std::vector<Verdict> try_all(Side& side, fid_ep& ep, fi_addr_t to, Side& target) {
  std::uint64_t one = 1;
  std::uint64_t old = 0;
  char byte = 0;
  std::vector<Verdict> verdicts;
  const auto tried = [&](ssize_t posted) {
    check(posted, "posting");
    verdicts.push_back(outcome_at(side, target));
  };
  tried(fi_send(&ep, "send", 5, nullptr, to, nullptr));
  tried(fi_tsend(&ep, "tag", 4, nullptr, to, 7, nullptr));
  tried(fi_write(&ep, "write", 6, nullptr, to, 0, kKey, nullptr));
  tried(fi_writedata(&ep, "data", 5, nullptr, 9, to, 16, kKey, nullptr));
  tried(fi_read(&ep, &byte, 1, nullptr, to, 0, kKey, nullptr));
  tried(fi_atomic(&ep, &one, 1, nullptr, to, 32, kKey, FI_UINT64, FI_SUM, nullptr));
  tried(fi_fetch_atomic(&ep, &one, 1, nullptr, &old, nullptr, to, 32, kKey, FI_UINT64, FI_SUM,
                        nullptr));
  return verdicts;
}

struct Jobs : ::testing::TestWithParam<std::tuple<KeyOf, bool>> {};

// SES-12, SES-13, SES-16
TEST_P(Jobs, Ses17_Ses19_TwoJobs_ShareNoMemoryNorReceives) {
  const auto [whose, absolute] = GetParam();
  Target target(options_of(2, whose, absolute));
  Side stranger(options_of(1, whose, absolute));
  Side member(options_of(2, whose, absolute));
  const auto from_outside = stranger.open_endpoint(0);
  const auto from_inside = member.open_endpoint(0);

  const auto refused = try_all(stranger, *from_outside, stranger.insert(*target.ep), target.side);
  for (std::size_t i = 0; i < refused.size(); ++i) {
    // A relative name is invalid in another job; for an absolute one the reached region decides.
    const bool by_key = absolute && i >= kMessages;
    const Verdict expected =
        by_key ? Verdict{FI_ENOKEY, kBadMkey} : Verdict{FI_EKEYREJECTED, kBadJobId};
    EXPECT_EQ(refused[i], expected) << i;
  }
  EXPECT_TRUE(target.untouched());

  const auto allowed = try_all(member, *from_inside, member.insert(*target.ep), target.side);
  EXPECT_EQ(allowed, std::vector<Verdict>(allowed.size()));
  EXPECT_STREQ(target.room, "send");
  EXPECT_STREQ(target.room + 8, "tag");
  EXPECT_STREQ(target.memory, "write");
  EXPECT_STREQ(target.memory + 16, "data");
  EXPECT_EQ(target.memory[32], 2) << "two atomics";
}

INSTANTIATE_TEST_SUITE_P(Keys, Jobs,
                         ::testing::Combine(::testing::Values(KeyOf::Endpoint, KeyOf::Domain),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           const bool endpoint = std::get<0>(info.param) == KeyOf::Endpoint;
                           return std::string(endpoint ? "OfTheEndpoint" : "OfTheDomain") +
                                  (std::get<1>(info.param) ? "_Absolute" : "_Relative");
                         });

// SES-16: without an auth_key of its own an absolute name is there for every job.
TEST(JobsOfTheDefault, NoKey_AbsoluteNamesOpen_RelativeClosed) {
  for (const bool absolute : {false, true}) {
    Target target(options_of(0, KeyOf::Endpoint, absolute));
    Side stranger(options_of(9, KeyOf::Endpoint, absolute));
    const auto ep = stranger.open_endpoint(0);
    const auto verdicts = try_all(stranger, *ep, stranger.insert(*target.ep), target.side);
    const Verdict expected = absolute ? Verdict{} : Verdict{FI_EKEYREJECTED, kBadJobId};
    EXPECT_EQ(verdicts, std::vector<Verdict>(verdicts.size(), expected)) << absolute;
  }
}

// SES-16: a region that names a job decides for itself where the name is absolute.
TEST(JobsOfTheDefault, AbsoluteName_OwnerJobReachesItsRegion) {
  Target target(options_of(0, KeyOf::Endpoint, true));
  target.mr.reset();
  const iovec iov{target.memory, sizeof target.memory};
  std::array<std::uint8_t, 3> job = {0, 0, 9};
  fi_mr_attr attr{};
  attr.mr_iov = &iov;
  attr.iov_count = 1;
  attr.access = FI_REMOTE_READ | FI_REMOTE_WRITE;
  attr.requested_key = kKey;
  attr.auth_key = job.data();
  attr.auth_key_size = job.size();
  fid_mr* made = nullptr;
  ASSERT_EQ(fi_mr_regattr(target.side.domain.get(), &attr, 0, &made), 0);
  target.mr.reset(made);
  for (const std::uint8_t of : {std::uint8_t{9}, std::uint8_t{8}}) {
    Side peer(options_of(of, KeyOf::Endpoint, true));
    const auto ep = peer.open_endpoint(0);
    const fi_addr_t to = peer.insert(*target.ep);
    ASSERT_EQ(fi_write(ep.get(), "x", 1, nullptr, to, of, kKey, nullptr), 0);
    EXPECT_EQ(outcome_at(peer, target.side), of == 9 ? Verdict{} : (Verdict{FI_ENOKEY, kBadMkey}));
    EXPECT_EQ(target.memory[of], of == 9 ? 'x' : 0);
  }
}

// Makes this process one that the user has started. 0: it stays as it is.
bool become(uid_t user) {
  if (user == 0) return true;
  return ::setresgid(user, user, user) == 0 && ::setresuid(user, user, user) == 0 &&
         ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0;
}

// The environment and the user of a process.
struct Setting {
  Environment environment;
  uid_t user = 0;
};

// A process of the first setting receives; one of the other tries to send to it, to write to and to
// read from it. Returns an empty text if all three work (`same` is true) or all three fail (`same`
// is false); else the text names the operation that did otherwise.
std::string try_between(const Setting& one, const Setting& other, bool same) {
  ChannelPair channels;
  Process target("target", one.environment, [&] {
    require(become(one.user), "becoming another user");
    Node node;
    node.connect(channels.left);
    std::array<std::byte, 8> memory{};
    std::array<std::byte, 8> room{};
    const Region region = node.expose(memory.data(), memory.size(), kKey);
    check(fi_recv(node.ep.get(), room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, nullptr),
          "fi_recv");
    channels.left.send(RemoteRegion{region.address, region.key});
    channels.left.meet(&node);
    require(node.poll().has_value() == same, "a receive");
    require((memory[0] == std::byte{1}) == same, "the region");
    require((room[0] == std::byte{1}) == same, "the receive buffer");
  });
  Process initiator("initiator", other.environment, [&] {
    require(become(other.user), "becoming another user");
    Node node;
    const fi_addr_t peer = node.connect(channels.right);
    const auto remote = channels.right.receive<RemoteRegion>(&node);
    const char one_byte = 1;
    char got = 0;
    const auto try_to = [&](const char* what, auto call) {
      node.post(what, call);
      std::optional<Event> event;
      while (!event) event = node.poll();
      require(event->error == (same ? 0 : FI_EKEYREJECTED), what);
    };
    fid_ep* const ep = node.ep.get();
    try_to("writing", [&] {
      return fi_write(ep, &one_byte, 1, nullptr, peer, remote.address, remote.key, nullptr);
    });
    try_to("reading", [&] {
      return fi_read(ep, &got, 1, nullptr, peer, remote.address, remote.key, nullptr);
    });
    require((got == 1) == same, "what was read");
    try_to("sending", [&] { return fi_send(ep, &one_byte, 1, nullptr, peer, nullptr); });
    channels.right.meet(&node);
  });
  return wait_for_all({&target, &initiator});
}

// FI_UET_JOB_ID counts for the whole process: two of them.
TEST(JobsOfTheDefault, Ses19_JobIdOfTheEnvironmentSeparatesProcesses) {
  const Setting seven{{{"FI_UET_JOB_ID", "7"}}};
  EXPECT_EQ(try_between(seven, seven, true), "");
  EXPECT_EQ(try_between(seven, {{{"FI_UET_JOB_ID", "8"}}}, false), "");
}

// With no setting at all: jobs of launchers, and programs without one.
TEST(JobsOfTheDefault, Ses163_JobsOfLaunchersAreApart) {
  const Setting none;
  const Setting first{{{"PMIX_NAMESPACE", "2398617601"}}};
  const Setting second{{{"PMIX_NAMESPACE", "2398683137"}}};
  const Setting slurm{{{"SLURM_JOB_ID", "77"}, {"SLURM_STEP_ID", "0"}}};
  EXPECT_EQ(try_between(none, none, true), "") << "programs without a launcher meet";
  EXPECT_EQ(try_between(first, first, true), "") << "ranks of a job meet";
  EXPECT_EQ(try_between(first, second, false), "");
  EXPECT_EQ(try_between(first, slurm, false), "");
  EXPECT_EQ(try_between(first, none, false), "");
  EXPECT_EQ(try_between(none, second, false), "");
}

TEST(JobsOfTheDefault, Ses163_SettingGoesBeforeTheLauncher) {
  EXPECT_EQ(try_between({{{"PMIX_NAMESPACE", "2398617601"}, {"FI_UET_JOB_ID", "7"}}},
                        {{{"PMIX_NAMESPACE", "2398683137"}, {"FI_UET_JOB_ID", "7"}}}, true),
            "");
}

constexpr uid_t kOneUser = 65534;
constexpr uid_t kOtherUser = 61357;  // no account has it

// Why processes of other users cannot be tried here; empty if they can.
std::string why_no_other_users() {
  if (::geteuid() != 0) return "needs root, who can start processes of other users";
  if (captures_are_encrypted()) return "the key file is one user's";
  const char* const place = std::getenv("FI_PROVIDER_PATH");
  if (place == nullptr) return "needs the plug-in's place";
  const std::string plug_in = std::string(place) + "/libuet-fi.so";
  const pid_t child = ::fork();
  if (child == 0) {
    if (!become(kOneUser)) std::_Exit(1);
    std::_Exit(::access(plug_in.c_str(), R_OK) == 0 ? 0 : 2);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status == 0) return {};
  return WEXITSTATUS(status) == 1 ? "no other user is to be had in this user name space"
                                  : "another user cannot read " + plug_in;
}

// Two users with no setting at all, through the network and through same-host rings.
struct JobsOfTwoUsers : ::testing::TestWithParam<const char*> {};

TEST_P(JobsOfTwoUsers, Ses163_AreApart) {
  if (const std::string why = why_no_other_users(); !why.empty()) GTEST_SKIP() << why;
  const auto of = [&](uid_t user, Environment environment) {
    environment["FI_UET_LOCAL"] = GetParam();
    return Setting{std::move(environment), user};
  };
  const Environment first = {{"PMIX_NAMESPACE", "2398617601"}};
  const Environment second = {{"PMIX_NAMESPACE", "2398683137"}};
  const Environment uet_run = {{"UET_JOB_ID", "9000001"}};
  const Environment nameless = {{"PMI_RANK", "0"}};
  const Setting job_of_one = of(kOneUser, first);
  EXPECT_EQ(try_between(job_of_one, of(kOneUser, first), true), "") << "a job of one user";
  EXPECT_EQ(try_between(job_of_one, of(kOtherUser, second), false), "");
  EXPECT_EQ(try_between(of(kOtherUser, second), job_of_one, false), "");
  EXPECT_EQ(try_between(job_of_one, of(kOtherUser, uet_run), false), "");
  EXPECT_EQ(try_between(of(kOneUser, nameless), of(kOtherUser, nameless), false), "")
      << "launchers that name no job";
  EXPECT_EQ(try_between(of(kOneUser, nameless), of(kOneUser, nameless), true), "");
  EXPECT_EQ(try_between(job_of_one, of(kOtherUser, {}), false), "");
  EXPECT_EQ(try_between(of(kOneUser, {}), of(kOtherUser, second), false), "");
  EXPECT_EQ(try_between(of(kOneUser, {}), of(kOtherUser, {}), true), "")
      << "programs without a launcher meet";
}

INSTANTIATE_TEST_SUITE_P(Local, JobsOfTwoUsers, ::testing::Values("off", "auto"),
                         [](const auto& info) { return std::string(info.param); });

// fi_domain and fi_endpoint refuse a key whose size is not that of a JobID, whose JobID has more
// than 24 bits, or that has no bytes.
TEST(JobKeys, Ses145_OfAWrongSizeOrTooWideAreInvalid) {
  Side side;
  const auto open_with = [&](KeyOf whose, const std::uint8_t* key, std::size_t size) {
    fi_info& info = *side.info;
    const bool domain = whose == KeyOf::Domain;
    auto& to = domain ? info.domain_attr->auth_key : info.ep_attr->auth_key;
    auto& to_size = domain ? info.domain_attr->auth_key_size : info.ep_attr->auth_key_size;
    to = const_cast<std::uint8_t*>(key);
    to_size = size;
    fid_domain* opened_domain = nullptr;
    fid_ep* opened_ep = nullptr;
    const int result = domain ? fi_domain(side.fabric.get(), &info, &opened_domain, nullptr)
                              : fi_endpoint(side.domain.get(), &info, &opened_ep, nullptr);
    if (opened_domain != nullptr) fi_close(&opened_domain->fid);
    if (opened_ep != nullptr) fi_close(&opened_ep->fid);
    to = nullptr;  // not fi_freeinfo's
    to_size = 0;
    return result;
  };
  const std::array<std::uint8_t, 8> narrow = {0, 0, 0, 9};
  const std::array<std::uint8_t, 8> wide = {1, 0, 0, 9};
  for (const KeyOf whose : {KeyOf::Endpoint, KeyOf::Domain}) {
    for (const std::size_t size : {1, 2, 5, 8}) {
      EXPECT_EQ(open_with(whose, narrow.data(), size), -FI_EINVAL) << size;
    }
    EXPECT_EQ(open_with(whose, narrow.data(), 3), 0);
    EXPECT_EQ(open_with(whose, narrow.data(), 4), 0);
    EXPECT_EQ(open_with(whose, wide.data(), 4), -FI_EINVAL) << "more than 24 bits";
    EXPECT_EQ(open_with(whose, nullptr, 3), -FI_EINVAL);
  }
}

// ---- names -------------------------------------------------------------------------------------

// SES-11 to SES-13: the mode is part of the name, as are process and index.
TEST(Names, OfTheOtherModeProcessOrIndexAreNobodys) {
  for (const bool absolute : {false, true}) {
    Target target(options_of(0, KeyOf::Endpoint, absolute));
    Side side;
    const auto ep = side.open_endpoint(0);
    const std::vector<std::byte> name = Side::name_of(*target.ep);
    const auto write = [&](std::size_t at, std::uint8_t changed) {
      std::vector<std::byte> other = name;
      other[at] ^= static_cast<std::byte>(changed);
      fi_addr_t to = FI_ADDR_UNSPEC;
      require(fi_av_insert(side.av.get(), other.data(), 1, &to, 0, nullptr) == 1, "fi_av_insert");
      check(fi_write(ep.get(), "x", 1, nullptr, to, 0, kKey, nullptr), "fi_write");
      return outcome_at(side, target.side);
    };
    EXPECT_EQ(write(0, 0), Verdict{});
    EXPECT_EQ(write(kFlagsAt, kAbsolute), (Verdict{FI_EADDRNOTAVAIL, kBadPid})) << absolute;
    EXPECT_EQ(write(kPidAt + 1, 1), (Verdict{FI_EADDRNOTAVAIL, kBadPid})) << absolute;
    EXPECT_EQ(write(kIndexAt, 1), (Verdict{FI_EADDRNOTAVAIL, kBadIndex})) << absolute;
  }
}

}  // namespace
}  // namespace uet::e2e
