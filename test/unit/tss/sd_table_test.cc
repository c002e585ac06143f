// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/sd_table.h"

#include <gmock/gmock.h>
#include <openssl/crypto.h>

#include <cstdlib>
#include <memory_resource>
#include <new>

#include "unit/tss/key_search.h"
#include "unit/tss/tss_testing.h"
#include "wire/frame.h"

namespace {

// Of this process so far, by the operators below and by OpenSSL.
std::uint64_t operator_allocations = 0;
std::uint64_t openssl_allocations = 0;

}  // namespace

// The sanitizers have operators of their own, and nothing is counted.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCountsOperators = false;
#else
constexpr bool kCountsOperators = true;

namespace {

void* allocate_or_throw(std::size_t bytes) {
  ++operator_allocations;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// The other forms (nothrow, arrays) call these two.
void* operator new(std::size_t bytes) { return allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return allocate_or_throw(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace uet::tss {
namespace {

using testing::Each;

void* counted_malloc(std::size_t size, const char*, int) {
  ++openssl_allocations;
  return std::malloc(size);
}
void* counted_realloc(void* memory, std::size_t size, const char*, int) {
  ++openssl_allocations;
  return std::realloc(memory, size);
}
void uncounted_free(void* memory, const char*, int) { std::free(memory); }
const int kCountsAllocations =
    CRYPTO_set_mem_functions(counted_malloc, counted_realloc, uncounted_free);

// The memory of keys and key schedules.
class CountingMemory final : public std::pmr::memory_resource {
 public:
  std::uint64_t allocations = 0;

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    ++allocations;
    return std::pmr::new_delete_resource()->allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    std::pmr::new_delete_resource()->deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

constexpr std::uint32_t kSdi = 0x00ABCD;
const FabricAddress kHere = ipv4(10, 0, 0, 9);
const FabricAddress kThere = ipv4(10, 0, 0, 7);

class SdTableTest : public testing::Test {
 protected:
  void use(KeyMode mode, std::optional<std::uint32_t> ssi) {
    DomainConfig config;
    config.sdi = kSdi;
    config.mode = mode;
    config.ssi = ssi;
    for (SdTable* table : {&sender_, &receiver_}) {
      ASSERT_TRUE(table->add(config).ok());
      ASSERT_TRUE(table->find(kSdi)->install(false, known_key(), {}).ok());
      ASSERT_TRUE(table->find(kSdi)->activate(false, {}).ok());
    }
  }
  Bytes seal(const OuterFields& outer, const Bytes& plain) {
    const Slice piece{plain.data(), static_cast<std::uint32_t>(plain.size())};
    Bytes out(plain.size() + kMaxHeaderBytes + kIcvBytes);
    const SealResult result = sender_.seal(kSdi, outer, {&piece, 1}, out);
    EXPECT_EQ(result.verdict, SealVerdict::Sealed);
    out.resize(result.bytes);
    return out;
  }
  OpenVerdict open(const OuterFields& outer, std::span<const std::byte> packet,
                   bool trimmed = false) {
    plain_.assign(packet.size(), std::byte{0});
    const OpenResult result = receiver_.open(outer, packet, trimmed, plain_, {});
    if (result.verdict == OpenVerdict::Opened) plain_.resize(result.bytes);
    return result.verdict;
  }
  // Every packet that was received, whatever became of it.
  std::uint64_t dropped() const {
    const DomainCounters& in = receiver_.find(kSdi)->counters();
    const PortCounters& port = receiver_.port_counters();
    return in.in_auth_fail + in.in_late + in.in_invalid + in.in_invalid_sa + in.in_binding_failure +
           port.in_errored + port.in_rx_encryption_bypass + port.in_trimmed;
  }
  std::uint64_t opened() const { return receiver_.find(kSdi)->counters().in_auth; }

  void expect_dropped_once(const OuterFields& outer, const Bytes& packet) {
    const std::uint64_t before = dropped();
    ASSERT_NE(open(outer, packet), OpenVerdict::Opened);
    ASSERT_EQ(dropped(), before + 1);
    ASSERT_THAT(plain_, Each(std::byte{0}));
  }
  void flip_each_bit(const OuterFields& outer);
  void overwrite_and_open(KeyMode mode);

  std::uint64_t all_allocations() const {
    return operator_allocations + openssl_allocations + secrets_.allocations;
  }

  CountingMemory secrets_;  // outlives the tables
  SdTable sender_{{.secrets = &secrets_}};
  SdTable receiver_{{.secrets = &secrets_}};
  Bytes plain_;
};

// TSS-4, TSS-6, TSS-40: each bit of the AAD and of the packet.
void SdTableTest::flip_each_bit(const OuterFields& outer) {
  const Bytes plain = counting(0x40, 50);
  const Bytes good = seal(outer, plain);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    SCOPED_TRACE(bit);
    Bytes bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    expect_dropped_once(outer, bad);
  }
  const std::size_t address = outer.source.is_ipv6 ? 16 : 4;
  for (std::size_t bit = 0; bit < 8 * address; ++bit) {
    OuterFields bad = outer;
    bad.source.bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    expect_dropped_once(bad, good);
    bad = outer;
    bad.destination.bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    expect_dropped_once(bad, good);
  }
  for (std::size_t bit = 0; bit < 32; ++bit) {
    OuterFields bad = outer;
    bad.transport[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    expect_dropped_once(bad, good);
  }
  for (std::size_t length = 0; length < good.size(); ++length) {
    expect_dropped_once(outer, Bytes(good.begin(), good.begin() + static_cast<long>(length)));
  }
  EXPECT_EQ(open(outer, good), OpenVerdict::Opened);
  EXPECT_EQ(plain_, plain);
}

TEST_F(SdTableTest, Tss6And39And40_FlippedBit_DroppedCountedOnce) {
  use(KeyMode::Cluster, 0xA1B2C3D4);
  flip_each_bit(udp_fields({kThere, 0xC123}, {kHere, 4793}));
}

TEST_F(SdTableTest, Tss6And40_FlippedBitWithoutSsi) {
  use(KeyMode::Cluster, {});
  flip_each_bit(udp_fields({kThere, 0xC123}, {kHere, 4793}));
}

TEST_F(SdTableTest, Tss4And40_FlippedBitInTheNativeFormOverIpv6) {
  use(KeyMode::Direct, 7);
  flip_each_bit(native_fields(ipv6(7), ipv6(9), 0x4242));
}

// --- whole frames
// ---------------------------------------------------------------------------------

struct Frame {
  wire::FrameFormat format;
  wire::FrameFields fields;
};

OuterFields outer_of(const Frame& frame) {
  const wire::FrameFields& f = frame.fields;
  if (frame.format.encapsulation == wire::Encapsulation::NativeIp) {
    return native_fields(f.source, f.destination, f.entropy);
  }
  return udp_fields({f.source, f.entropy}, {f.destination, f.port});
}

// TSS-5: a router counts the TTL down, a switch marks and trims by other DSCPs; all are accepted.
TEST_F(SdTableTest, Tss5_TtlDscpAndEcnMayChange) {
  use(KeyMode::Cluster, 3);
  for (const auto form : {wire::Encapsulation::Udp, wire::Encapsulation::NativeIp}) {
    for (const bool six : {false, true}) {
      Frame frame;
      frame.format.encapsulation = form;
      frame.fields.source = six ? ipv6(7) : kThere;
      frame.fields.destination = six ? ipv6(9) : kHere;
      frame.fields.entropy = 0xC123;
      const Bytes packet = seal(outer_of(frame), counting(0, 64));
      frame.fields.hop_limit = 3;
      frame.fields.dscp = 46;
      frame.fields.ecn = Ecn::Ce;
      const Slice piece{packet.data(), static_cast<std::uint32_t>(packet.size())};
      Bytes bytes(wire::kMaxFrameHeaderBytes);
      bytes.resize(
          wire::write_frame_headers(bytes.data(), frame.format, frame.fields, {&piece, 1}));
      bytes.insert(bytes.end(), packet.begin(), packet.end());
      wire::ParsedFrame parsed;
      ASSERT_EQ(wire::parse_frame(bytes, frame.format, {}, parsed), wire::FrameVerdict::Ok);
      EXPECT_EQ(parsed.fields.hop_limit, 3);
      EXPECT_EQ(parsed.fields.ecn, Ecn::Ce);
      EXPECT_EQ(open(outer_of({frame.format, parsed.fields}), parsed.packet), OpenVerdict::Opened);
    }
  }
}

// TSS-7: translation of an address or a port breaks authentication.
TEST_F(SdTableTest, Tss7_TranslatedPortFails) {
  use(KeyMode::Direct, {});
  const Bytes packet = seal(udp_fields({kThere, 0xC123}, {kHere, 4793}), counting(0, 8));
  EXPECT_EQ(open(udp_fields({kThere, 0xC124}, {kHere, 4793}), packet), OpenVerdict::AuthFail);
}

// --- steps 2 to 4
// ---------------------------------------------------------------------------------

TEST_F(SdTableTest, Step2_PacketWithoutSecurityHeaderIsCounted) {
  use(KeyMode::Direct, {});
  const OuterFields outer = udp_fields({kThere, 1}, {kHere, 4793});
  const Bytes clear = from_hex("100000010000000a0014007b00000000");
  EXPECT_EQ(open(outer, clear), OpenVerdict::Unprotected);
  EXPECT_EQ(open(outer, clear, true), OpenVerdict::Unprotected);
  EXPECT_EQ(receiver_.port_counters().in_rx_encryption_bypass, 2U);
}

TEST_F(SdTableTest, Tss12And13_UnknownSdiAndTrimmedPackets) {
  use(KeyMode::Direct, {});
  const OuterFields outer = udp_fields({kThere, 1}, {kHere, 4793});
  const Bytes packet = seal(outer, counting(0, 8));
  EXPECT_EQ(open(outer, packet, true), OpenVerdict::Trimmed);
  EXPECT_EQ(receiver_.port_counters().in_trimmed, 1U);
  EXPECT_EQ(receiver_.find(kSdi)->counters().in_auth_fail, 0U);
  ASSERT_TRUE(receiver_.remove(kSdi).ok());
  EXPECT_EQ(open(outer, packet), OpenVerdict::Malformed);
  EXPECT_EQ(receiver_.port_counters().in_errored, 1U);
  EXPECT_EQ(receiver_.remove(kSdi).error(), Error::NotFound);
}

void SdTableTest::overwrite_and_open(KeyMode mode) {
  use(mode, std::nullopt);
  const OuterFields outer = udp_fields({ipv4(10, 0, 0, 1), 1}, {ipv4(10, 0, 0, 2), 2});
  const Bytes packet = seal(outer, counting(0, 50));
  ASSERT_EQ(open(outer, packet), OpenVerdict::Opened);
  receiver_.overwrite_keys();
  EXPECT_NE(open(outer, packet), OpenVerdict::Opened);
  receiver_.find(kSdi)->enable(true);  // the key itself, not only the domain
  EXPECT_NE(open(outer, packet), OpenVerdict::Opened);
}
TEST_F(SdTableTest, Tss60_OverwrittenKeyOpensNothing) { overwrite_and_open(KeyMode::Direct); }
TEST_F(SdTableTest, Tss60_OverwrittenSdkOpensNothing) { overwrite_and_open(KeyMode::Cluster); }

// TSS-60: neither the SDK nor the derived key is in a core file while packets are sealed and
// opened.
TEST_F(SdTableTest, Tss60_NoKeyIsOutsideTheMemoryForKeys) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "reads all memory of the process, which AddressSanitizer forbids";
#endif
  constexpr std::uint8_t kFill = 0xC9;
  const std::string sdk(kKeyBytes, static_cast<char>(kFill ^ kSearchMask));
  const auto make_key = [] {
    Key key;
    for (std::byte& byte : key.writable()) byte = std::byte{kFill};
    return key;
  };
  std::string packet_key;  // masked
  {
    KeyMaterial material;
    Result<Kdf> kdf = Kdf::make(make_key());
    ASSERT_TRUE(kdf.value().derive(KeyMode::Cluster, {0, 0, {kThere, {}}}, material));
    for (std::byte byte : material.key.bytes()) {
      packet_key += static_cast<char>(std::to_integer<unsigned>(byte) ^ kSearchMask);
    }
    EXPECT_GT(places_of_key(packet_key, SearchIn::CoreFile), 0) << "this test cannot find a key";
  }
  for (const KeyMode mode : {KeyMode::Direct, KeyMode::Cluster}) {
    HiddenMemory memory;
    SdTable table({.derived_keys = 8, .secrets = &memory});
    DomainConfig config;
    config.sdi = kSdi;
    config.mode = mode;
    ASSERT_TRUE(table.add(config).ok());
    ASSERT_TRUE(table.find(kSdi)->install(false, make_key(), {}).ok());
    ASSERT_TRUE(table.find(kSdi)->activate(false, {}).ok());
    EXPECT_EQ(places_of_key(sdk, SearchIn::CoreFile), 0) << "before the first packet";
    const OuterFields outer = udp_fields({kThere, 1}, {kHere, 4793});
    const Bytes plain = counting(0, 50);
    const Slice piece{plain.data(), 50};
    Bytes sealed(100);
    Bytes out(100);
    const std::size_t bytes = table.seal(kSdi, outer, {&piece, 1}, sealed).bytes;
    ASSERT_EQ(table.open(outer, std::span(sealed).first(bytes), false, out, {}).verdict,
              OpenVerdict::Opened);
    const bool derives = mode == KeyMode::Cluster;
    EXPECT_GT(places_of_key(sdk, SearchIn::AllMemory), 0);
    EXPECT_EQ(places_of_key(packet_key, SearchIn::AllMemory) > 0, derives);
    EXPECT_EQ(places_of_key(sdk, SearchIn::CoreFile), 0);
    EXPECT_EQ(places_of_key(packet_key, SearchIn::CoreFile), 0);
  }
  EXPECT_EQ(places_of_key(sdk, SearchIn::AllMemory), 0);
}

TEST_F(SdTableTest, TableIsBounded) {
  SdTable table({.domains = 2, .derived_keys = 2});
  DomainConfig config;
  EXPECT_TRUE(table.add(config).ok());
  EXPECT_EQ(table.add(config).error(), Error::Busy);
  config.sdi = kMaxSdi + 1;
  EXPECT_EQ(table.add(config).error(), Error::Invalid);
  config.sdi = 1;
  EXPECT_TRUE(table.add(config).ok());
  config.sdi = 2;
  EXPECT_EQ(table.add(config).error(), Error::NoMemory);
  EXPECT_THAT(table.sdis(), testing::UnorderedElementsAre(0U, 1U));
  EXPECT_EQ(table.seal(9, {}, {}, {}).verdict, SealVerdict::NoKey);
  EXPECT_EQ(table.port_counters().out_errored, 1U);
}

TEST_F(SdTableTest, Tss56_GuardTimesOfAllDomains) {
  use(KeyMode::Direct, {});
  EXPECT_EQ(receiver_.next_deadline(), kNever);
  SecureDomain& domain = *receiver_.find(kSdi);
  ASSERT_TRUE(domain.install(true, key_of(counting(1, kKeyBytes)), {}).ok());
  ASSERT_TRUE(domain.activate(true, time_from_ns(5)).ok());
  const Time end = time_from_ns(5) + domain.config().guard;
  EXPECT_EQ(receiver_.next_deadline(), end);
  receiver_.expire(end);
  EXPECT_FALSE(domain.has_key(false));
  EXPECT_EQ(receiver_.next_deadline(), kNever);
}

// TSS-63: after the first packet, sealing and opening allocate nothing: neither OpenSSL nor the
// table, nor anything from the memory of the secrets.
TEST_F(SdTableTest, Tss63_SteadyStateAllocatesNothing) {
  ASSERT_EQ(kCountsAllocations, 1);
  const std::uint64_t by_operators = operator_allocations;
  use(KeyMode::Cluster, 7);
  const OuterFields outer = udp_fields({kThere, 1}, {kHere, 4793});
  const Bytes plain = counting(0, 200);
  const Slice piece{plain.data(), 200};
  Bytes packet(300);
  Bytes out(300);
  const auto pass = [&] {
    const SealResult sealed = sender_.seal(kSdi, outer, {&piece, 1}, packet);
    const OpenResult opened =
        receiver_.open(outer, std::span(packet).first(sealed.bytes), false, out, {});
    EXPECT_EQ(opened.verdict, OpenVerdict::Opened);
  };
  pass();
  EXPECT_GT(openssl_allocations, 0U);
  EXPECT_GT(secrets_.allocations, 0U);
  EXPECT_EQ(operator_allocations > by_operators, kCountsOperators);
  const std::uint64_t before = all_allocations();
  for (int i = 0; i < 1000; ++i) pass();
  EXPECT_EQ(all_allocations(), before);
}

}  // namespace
}  // namespace uet::tss
