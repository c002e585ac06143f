// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/transport_security.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "nic/clock.h"
#include "provider.h"

namespace uet::prov {
namespace {

using testing::HasSubstr;

const std::string kSecret(64, '1');
const std::string kNextSecret(64, '2');

// A NIC that carries nothing.
class IdleNic final : public nic::Nic {
 public:
  explicit IdleNic(const FepAddress& self) : self_(self) {}
  std::size_t rx_burst(std::span<RxPacket>, Time) override { return 0; }
  std::size_t tx_burst(std::span<const Packet* const> in) override { return in.size(); }
  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return self_; }

 private:
  FepAddress self_;
  nic::NicCaps caps_;
};

class TransportSecurityTest : public testing::Test {
 protected:
  TransportSecurityTest() {
    char pattern[] = "/tmp/uet_transport_security_XXXXXX";
    directory_ = mkdtemp(pattern);
    setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);
    params_.tss = TssMode::Require;
    params_.tss_keys = directory_ + "/keys";
  }
  ~TransportSecurityTest() override {
    unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(directory_);
  }
  void write_keys(const std::string& text) {
    std::filesystem::remove(params_.tss_keys);
    const int fd = ::open(params_.tss_keys.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(fd);
  }
  static std::string domain(const std::string& rest, const std::string& sdi = "7") {
    return "domain " + sdi + "\nmode cluster\n" + rest;
  }
  static std::string file(const std::string& domains) { return "uet-tss-keys 1\n" + domains; }
  static std::string good() { return file(domain("key 0 0 fresh " + kSecret + "\nactive 0\n")); }
  int open() { return TransportSecurity::open(params_, identity_, security_); }
  // Puts the security around a NIC at this address; the reason if that is refused.
  std::string wrap(const FepAddress& self = {{{10, 0, 0, 7}}, 4793}) {
    auto nic = std::make_unique<IdleNic>(self);
    std::string message;
    auto wrapped = security_->wrap(std::move(nic), {}, message);
    if (wrapped) nic_ = std::move(wrapped).value();
    return message;
  }
  tss::SecureDomain& domain_in_force() { return *security_->table().find(7); }

  std::string directory_;
  Params params_;
  std::optional<SecureIdentity> identity_;
  std::unique_ptr<TransportSecurity> security_;
  std::unique_ptr<nic::Nic> nic_;
};

TEST_F(TransportSecurityTest, Tss68_OffIsClear) {
  write_keys(good());
  params_.tss = TssMode::Off;
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(security_, nullptr);
}

TEST_F(TransportSecurityTest, Tss68_RequireRefusesADomainWithoutKeys) {
  EXPECT_EQ(open(), -FI_ENOKEY);
  params_.tss_keys.clear();
  EXPECT_EQ(open(), -FI_ENOKEY);
  params_.tss_keys = directory_ + "/keys";
  write_keys(file(domain("key 0 0 fresh " + kSecret + "\n")));  // none is active
  EXPECT_EQ(open(), -FI_ENOKEY);
  EXPECT_EQ(security_, nullptr);
}

TEST_F(TransportSecurityTest, Tss68_Prefer_ClearUnlessItHasKeys) {
  params_.tss = TssMode::Prefer;
  EXPECT_EQ(open(), 0);
  EXPECT_EQ(security_, nullptr);
  write_keys(good());
  EXPECT_EQ(open(), 0);
  EXPECT_NE(security_, nullptr);
}

// A mistake must not open a domain in clear that has keys.
TEST_F(TransportSecurityTest, Tss60_ForbiddenKeys_RefusedInEitherMode) {
  for (const TssMode mode : {TssMode::Prefer, TssMode::Require}) {
    params_.tss = mode;
    write_keys(good());
    ASSERT_EQ(chmod(params_.tss_keys.c_str(), 0640), 0);
    EXPECT_EQ(open(), -FI_EKEYREJECTED);
    write_keys("uet-tss-keys 1\nnonsense\n");
    EXPECT_EQ(open(), -FI_EKEYREJECTED);
  }
}

TEST_F(TransportSecurityTest, Tss68_AnIdentityChoosesAmongDomains) {
  const std::string key = "key 0 0 fresh " + kSecret + "\nactive 0\n";
  write_keys(file(domain(key, "7") + domain(key, "8")));
  EXPECT_EQ(open(), -FI_EKEYREJECTED);
  identity_ = SecureIdentity{8, 99};
  ASSERT_EQ(open(), 0);
  EXPECT_EQ(security_->sdi(), 8U);
  ASSERT_EQ(wrap(), "");
  EXPECT_EQ(security_->table().find(8)->config().ssi, 99U);
  EXPECT_EQ(security_->table().find(7), nullptr);
  identity_ = SecureIdentity{9, {}};
  EXPECT_EQ(open(), -FI_EKEYREJECTED);
}

TEST_F(TransportSecurityTest, Tss65_ASharedPortIsRefused) {
  write_keys(good());
  ASSERT_EQ(open(), 0);
  EXPECT_THAT(wrap({{{10, 0, 0, 7}}, kFirstSlotPort}), HasSubstr("TSS-65"));
}

TEST_F(TransportSecurityTest, Tss7_TheWildcardAddressIsRefused) {
  write_keys(good());
  ASSERT_EQ(open(), 0);
  EXPECT_THAT(wrap({{}, 4793}), HasSubstr("TSS-7"));
}

TEST_F(TransportSecurityTest, Tss22_DirectModeOverIpv6NeedsAnSsi) {
  write_keys(file("domain 7\nmode direct\nkey 0 0 fresh " + kSecret + "\nactive 0\n"));
  ASSERT_EQ(open(), 0);
  FabricAddress ipv6{{0xfd, 0, 0, 1}, true};
  EXPECT_THAT(wrap({ipv6, 4793}), HasSubstr("TSS-22"));
}

TEST_F(TransportSecurityTest, Tss37_WithoutARunTimeDirectoryNothingOpens) {
  write_keys(good());
  unsetenv("XDG_RUNTIME_DIR");
  ASSERT_EQ(open(), 0);
  EXPECT_THAT(wrap(), HasSubstr("XDG_RUNTIME_DIR is not set"));
}

TEST_F(TransportSecurityTest, Tss61_TheIpMtuShrinksByHeaderAndIcv) {
  write_keys(good());
  ASSERT_EQ(open(), 0);
  ASSERT_EQ(wrap(), "");
  EXPECT_EQ(nic_->caps().ip_mtu, 1500U - 32U);
}

TEST_F(TransportSecurityTest, Tss68_AChangedFileIsReadAgainOnceASecond) {
  write_keys(good());
  ASSERT_EQ(open(), 0);
  ASSERT_EQ(wrap(), "");
  const Time start = nic::monotonic_now();
  RxPacket none;
  nic_->rx_burst({&none, 1}, start);
  EXPECT_LE(nic_->next_deadline(), start + std::chrono::seconds(1));
  const std::string both = "key 0 0 fresh " + kSecret + "\nkey 1 0 fresh " + kNextSecret + "\n";
  write_keys(file(domain(both + "active 1\n")));
  nic_->rx_burst({&none, 1}, start + std::chrono::milliseconds(900));
  EXPECT_EQ(domain_in_force().active(), false);
  nic_->rx_burst({&none, 1}, start + std::chrono::milliseconds(1100));
  EXPECT_EQ(domain_in_force().active(), true);
  EXPECT_TRUE(domain_in_force().in_guard(false));
}

// The key of before may open packets that were captured before; when it has had its guard time,
// none can.
TEST_F(TransportSecurityTest, Tss52_AKeyChangeIsToldOnceWhenTheOldKeyIsGone) {
  const std::string old_key = "key 0 0 fresh " + kSecret + "\n";
  const std::string new_key = "key 1 0 fresh " + kNextSecret + "\n";
  const auto text = [](const std::string& lines) {
    return file("domain 7\nmode cluster\nguard 2\n" + lines);
  };
  write_keys(text(old_key + "active 0\n"));
  ASSERT_EQ(open(), 0);
  ASSERT_EQ(wrap(), "");
  int changes = 0;
  security_->on_key_change([&changes] { ++changes; });
  Time now = nic::monotonic_now();
  RxPacket none;
  const auto pass = [&](Duration later) { nic_->rx_burst({&none, 1}, now += later); };
  using std::chrono::seconds;
  pass(seconds(2));
  write_keys(text(old_key + new_key + "active 0\n"));
  pass(seconds(2));
  EXPECT_EQ(changes, 0);
  write_keys(text(new_key + "active 1\n"));
  pass(seconds(2));
  ASSERT_EQ(domain_in_force().active(), true);
  EXPECT_TRUE(domain_in_force().in_guard(false));
  EXPECT_EQ(changes, 0) << "the old key still opens packets";
  pass(seconds(3));
  pass(seconds(2));
  EXPECT_FALSE(domain_in_force().has_key(false));
  EXPECT_EQ(changes, 1);
  pass(seconds(2));
  EXPECT_EQ(changes, 1);
}

// A process that had the address before may have used what is in the file when this one gets it.
TEST_F(TransportSecurityTest, Tss51_KeysOfTheFirstLookAreOldOnes) {
  write_keys(good());
  ASSERT_EQ(open(), 0);
  ASSERT_EQ(wrap(), "");
  int changes = 0;
  security_->on_key_change([&changes] { ++changes; });
  write_keys(file("domain 7\nmode cluster\nkey 1 0 fresh " + kNextSecret + "\nactive 1\n"));
  Time now = nic::monotonic_now();
  RxPacket none;
  for (int i = 0; i < 20; ++i) nic_->rx_burst({&none, 1}, now += std::chrono::seconds(2));
  EXPECT_EQ(domain_in_force().active(), true);
  EXPECT_FALSE(domain_in_force().has_key(false));
  EXPECT_EQ(changes, 0);
}

TEST_F(TransportSecurityTest, Tss68_BrokenOrMissingFile_KeepsKeysInForce) {
  write_keys(good());
  ASSERT_EQ(open(), 0);
  ASSERT_EQ(wrap(), "");
  Time now = nic::monotonic_now();
  for (const std::string& text : {std::string("nonsense\n"), file(domain("", "8"))}) {
    write_keys(text);
    security_->look(now += std::chrono::seconds(2));
    EXPECT_EQ(domain_in_force().active(), false) << text;
  }
  std::filesystem::remove(params_.tss_keys);
  security_->look(now += std::chrono::seconds(2));
  EXPECT_EQ(domain_in_force().active(), false);
  write_keys(file(domain("key 1 0 fresh " + kNextSecret + "\nactive 1\n")));
  security_->look(now += std::chrono::seconds(2));
  EXPECT_EQ(domain_in_force().active(), true);
}

}  // namespace
}  // namespace uet::prov
