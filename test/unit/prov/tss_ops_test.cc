// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// An agent inside the program: the operations "uet_tss_ops" of fi_open_ops.
#include "objects/tss_ops.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "domain_testing.h"
#include "unit/tss/key_search.h"

namespace uet::prov {
namespace {

constexpr std::uint32_t kSdi = 7;

class TssOps : public testing::Test {
 protected:
  TssOps() {
    char pattern[] = "/tmp/uet_tss_ops_XXXXXX";
    directory_ = mkdtemp(pattern);
    setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
    write_key("cluster");
  }
  ~TssOps() override {
    domain_.reset();
    for (const char* name : {"XDG_RUNTIME_DIR", "FI_UET_TSS_KEYS", "FI_UET_TSS"}) unsetenv(name);
    std::filesystem::remove_all(directory_);
  }
  void write_key(const std::string& mode) {
    const std::string text = "uet-tss-keys 1\ndomain 7\nmode " + mode + "\nkey 0 0 fresh " +
                             std::string(64, '1') + "\nactive 0\n";
    const std::string file = directory_ + "/keys";
    const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
    setenv("FI_UET_TSS_KEYS", file.c_str(), 1);
  }
  void open_domain(const char* mode) {
    setenv("FI_UET_TSS", mode, 1);
    domain_ = std::make_unique<OpenDomain>();
    void* table = nullptr;
    ASSERT_EQ(fi_open_ops(&domain_->domain->fid, FI_UET_TSS_OPS, 0, &table, nullptr), 0);
    ops_ = static_cast<fi_uet_tss_ops*>(table);
    ASSERT_EQ(ops_->size, sizeof(fi_uet_tss_ops));
  }
  fid_domain* domain() { return domain_->domain.get(); }
  int install(int an, std::uint8_t byte, std::size_t size = 32, int history = FI_UET_TSS_FRESH) {
    const std::vector<std::uint8_t> bytes(size, byte);
    const fi_uet_tss_key key = {.sdi = kSdi,
                                .an = an,
                                .history = history,
                                .epoch = 3,
                                .next_tsc = 0,
                                .key = bytes.data(),
                                .key_size = size};
    return ops_->install(domain(), &key);
  }

  std::string directory_;
  std::unique_ptr<OpenDomain> domain_;
  fi_uet_tss_ops* ops_ = nullptr;
};

TEST_F(TssOps, Tss53_RotatesInTwoSteps) {
  open_domain("require");
  EXPECT_EQ(ops_->activate(domain(), kSdi, 1), -FI_ENOENT);
  ASSERT_EQ(install(1, 0x22), 0);
  EXPECT_EQ(install(1, 0x33), -FI_EBUSY);
  EXPECT_EQ(ops_->remove(domain(), kSdi, 0), -FI_EBUSY);
  ASSERT_EQ(ops_->activate(domain(), kSdi, 1), 0);
  EXPECT_EQ(ops_->remove(domain(), kSdi, 1), -FI_EBUSY);
  EXPECT_EQ(ops_->remove(domain(), kSdi, 0), 0);
  EXPECT_EQ(install(0, 0x11), -FI_ENOKEY);  // the key of the file: it was in use (TSS-37)
  EXPECT_EQ(install(0, 0x33), 0);
}

TEST_F(TssOps, Tss38_EpochsGrow) {
  open_domain("require");
  ASSERT_EQ(install(1, 0x22, 32, FI_UET_TSS_UNKNOWN), 0);
  EXPECT_EQ(ops_->activate(domain(), kSdi, 1), -FI_EINVAL);
  EXPECT_EQ(ops_->set_epoch(domain(), kSdi, 1, 3), -FI_EINVAL);
  ASSERT_EQ(ops_->set_epoch(domain(), kSdi, 1, 4), 0);
  EXPECT_EQ(ops_->activate(domain(), kSdi, 1), 0);
}

TEST_F(TssOps, Tss37_NoTscNoActivation) {
  open_domain("require");
  ASSERT_EQ(install(1, 0x22), 0);
  std::filesystem::remove_all(directory_ + "/uet-tss");
  std::filesystem::remove_all(directory_);
  EXPECT_EQ(ops_->activate(domain(), kSdi, 1), -FI_ENOKEY);
}

TEST_F(TssOps, BadArgumentsAreRefused) {
  open_domain("require");
  EXPECT_EQ(ops_->install(domain(), nullptr), -FI_EINVAL);
  EXPECT_EQ(install(2, 0x22), -FI_EINVAL);
  EXPECT_EQ(install(1, 0x22, 31), -FI_EINVAL);
  EXPECT_EQ(install(1, 0x22, 32, 9), -FI_EINVAL);
  EXPECT_EQ(install(1, 0x22, 44), -FI_EOPNOTSUPP);  // no client
  EXPECT_EQ(ops_->activate(domain(), kSdi, -1), -FI_EINVAL);
  EXPECT_EQ(ops_->activate(domain(), 8, 0), -FI_ENOENT);
  EXPECT_EQ(ops_->count(domain(), kSdi, nullptr, 0), -FI_EINVAL);
}

TEST_F(TssOps, CountersFitTheCallersSize) {
  open_domain("require");
  struct {
    fi_uet_tss_counters counters;
    std::uint64_t later = 77;
  } newer;
  ASSERT_EQ(ops_->count(domain(), kSdi, &newer.counters, sizeof newer), 0);
  EXPECT_EQ(newer.counters.out_auth, 0U);
  EXPECT_EQ(newer.later, 0U);
  std::uint64_t two[2] = {77, 77};
  ASSERT_EQ(ops_->count(domain(), kSdi, reinterpret_cast<fi_uet_tss_counters*>(two), 8), 0);
  EXPECT_EQ(two[0], 0U);
  EXPECT_EQ(two[1], 77U);
}

TEST_F(TssOps, KeysAreRecognisedByFingerprints) {
  open_domain("require");
  fi_uet_tss_state state;
  ASSERT_EQ(ops_->describe(domain(), &state, sizeof state), 0);
  EXPECT_EQ(state.sdi, kSdi);
  EXPECT_EQ(state.slot[0].has_key + state.slot[0].active, 2);
  EXPECT_EQ(state.slot[1].has_key, 0);
  ASSERT_EQ(install(1, 0x22), 0);
  ASSERT_EQ(ops_->describe(domain(), &state, sizeof state), 0);
  EXPECT_EQ(state.slot[1].has_key, 1);
  EXPECT_EQ(state.slot[1].active, 0);
  EXPECT_EQ(state.slot[1].epoch, 3U);
  EXPECT_NE(std::memcmp(state.slot[0].fingerprint, state.slot[1].fingerprint, 6), 0);
  EXPECT_EQ(ops_->describe(domain(), nullptr, 0), -FI_EINVAL);
}

// Places that hold the key of write_key(): 32 bytes of 0x11.
int places_of_key(SearchIn where = SearchIn::AllMemory) {
  static const std::string masked(32, static_cast<char>(0x11 ^ kSearchMask));
  return uet::places_of_key(masked, where);
}

TEST_F(TssOps, Tss60_ACoreFileHasNoKey) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "reads all memory of the process, which AddressSanitizer forbids";
#endif
  for (const char* const mode : {"direct", "cluster"}) {
    write_key(mode);
    open_domain("require");
    EXPECT_GT(places_of_key(), 0) << mode << ": this test cannot find a key";
    EXPECT_EQ(places_of_key(SearchIn::CoreFile), 0) << mode;
    domain_.reset();
  }
}

TEST_F(TssOps, Tss60_AForkedChildHasNoKey) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "reads all memory of the process, which AddressSanitizer forbids";
#endif
  for (const char* const mode : {"direct", "cluster"}) {
    write_key(mode);
    open_domain("require");
    EXPECT_GT(places_of_key(), 0) << mode << ": this test cannot find a key";
    const pid_t child = ::fork();
    if (child == 0) ::_exit(std::min(places_of_key(), 100));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << mode;
    EXPECT_EQ(WEXITSTATUS(status), 0) << mode << ": places that hold the key";
    domain_.reset();
    EXPECT_EQ(places_of_key(), 0) << mode << ": after the close";
  }
}

TEST_F(TssOps, Tss68_AClearDomainHasNoKeys) {
  open_domain("off");
  EXPECT_EQ(install(1, 0x22), -FI_EOPNOTSUPP);
  EXPECT_EQ(ops_->activate(domain(), kSdi, 0), -FI_EOPNOTSUPP);
  fi_uet_tss_state state;
  EXPECT_EQ(ops_->describe(domain(), &state, sizeof state), -FI_EOPNOTSUPP);
}

}  // namespace
}  // namespace uet::prov
