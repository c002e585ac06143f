// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/aes_gcm.h"

#include <gmock/gmock.h>

#include "tss/clear_fields.h"
#include "unit/tss/key_search.h"
#include "unit/tss/tss_testing.h"

namespace uet::tss {
namespace {

class NoMemory final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t, std::size_t) override { throw std::bad_alloc(); }
  void do_deallocate(void*, std::size_t, std::size_t) override {}
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return this == &other;
  }
};

// NIST's vector: a key, an IV and a text of zeros (GCM specification, test case 14).
TEST(AesGcm, Tss1_KnownAnswerBothWays) {
  const AesGcm& aes = *AesGcm::get();
  const auto context = aes.make(*std::pmr::new_delete_resource());
  const Bytes zeros(16);
  Bytes out(16);
  Bytes icv(kIcvBytes);
  ASSERT_TRUE(aes.set_key(context.get(), Bytes(kKeyBytes)));
  ASSERT_TRUE(aes.begin(context.get(), Iv{}, true));
  ASSERT_TRUE(aes.update(context.get(), zeros, out.data()));
  ASSERT_TRUE(aes.finish(context.get(), icv));
  EXPECT_EQ(to_hex(out), "cea7403d4d606b6e074ec5d3baf39d18");
  EXPECT_EQ(to_hex(icv), "d0d1c8a799996bf0265b98b5d48ab919");
  Bytes plain(16, std::byte{1});
  ASSERT_TRUE(aes.begin(context.get(), Iv{}, false));
  ASSERT_TRUE(aes.update(context.get(), out, plain.data()));
  EXPECT_TRUE(aes.verify(context.get(), icv));
  EXPECT_EQ(plain, zeros);
  icv[3] ^= std::byte{1};
  ASSERT_TRUE(aes.begin(context.get(), Iv{}, false));
  ASSERT_TRUE(aes.update(context.get(), out, plain.data()));
  EXPECT_FALSE(aes.verify(context.get(), icv));
}

// TSS-60: no copy of the key is elsewhere, and none is left.
TEST(AesGcm, Tss60_KeysAreInTheMemoryThatIsGiven) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "reads all memory of the process, which AddressSanitizer forbids";
#endif
  const AesGcm& aes = *AesGcm::get();
  ASSERT_TRUE(aes.relocates()) << "this libcrypto has its contexts on the heap";
  const std::string masked(kKeyBytes, static_cast<char>(0xC7 ^ kSearchMask));
  HiddenMemory memory;
  auto context = aes.make(memory);
  {
    Key key;
    for (std::byte& byte : key.writable()) byte = std::byte{0xC7};
    EXPECT_GT(places_of_key(masked, SearchIn::CoreFile), 0) << "this test cannot find a key";
    ASSERT_TRUE(aes.set_key(context.get(), key.bytes()));
  }
  EXPECT_GT(places_of_key(masked, SearchIn::AllMemory), 0);
  EXPECT_EQ(places_of_key(masked, SearchIn::CoreFile), 0);
  EXPECT_EQ(memory.pieces, 1U);
  aes.zero(context.get());
  EXPECT_EQ(places_of_key(masked, SearchIn::AllMemory), 0);
  context = aes.make(memory);
  ASSERT_TRUE(aes.set_key(context.get(), known_key().bytes()));
  context.reset();
  EXPECT_EQ(memory.pieces, 0U);
  EXPECT_TRUE(memory.was_zeroed);
}

TEST(AesGcm, WithoutMemoryThereIsNoContext) {
  NoMemory none;
  EXPECT_EQ(AesGcm::get()->make(none), nullptr);
}

}  // namespace
}  // namespace uet::tss
