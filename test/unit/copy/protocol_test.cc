// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What uet_copy's peers may say, and what a hostile one may not.
#include "uet_copy/protocol.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "uet_copy/crc32c.h"
#include "uet_copy/sink.h"
#include "uet_copy/transfer.h"

namespace uet::copy {
namespace {

Status status_of_call(const auto& call) {
  try {
    call();
  } catch (const Failure& failure) {
    return failure.status;
  }
  return Status::Done;
}

template <class T>
std::string bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

Bytes bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Hello good_hello() {
  Hello hello;
  hello.slots.bytes = kLeastSlotBytes;
  hello.slots.count = 2;
  return hello;
}

TEST(CopyCrc32c, KnownAnswers) {
  EXPECT_EQ(crc32c(bytes_of(std::string("123456789"))), 0xe3069283U);
  EXPECT_EQ(crc32c(Bytes(32, std::byte{0xff})), 0x62a8ab43U);
  EXPECT_EQ(crc32c({}), 0U);
}

TEST(CopyCrc32c, InstructionAndTableAgreeInParts) {
  Bytes bytes(1000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const std::span<const std::byte> all(bytes);
  for (const std::size_t cut : {0, 1, 7, 8, 9, 500, 1000}) {
    EXPECT_EQ(crc32c(all.subspan(cut), crc32c(all.first(cut))), crc32c_by_table(all)) << cut;
  }
}

TEST(CopyHello, OtherVersion_IsNamed) {
  Hello hello = good_hello();
  EXPECT_EQ(parse_hello(bytes_of(hello)).slots.count, 2U);
  hello.version = kVersion + 1;
  EXPECT_EQ(status_of_call([&] { parse_hello(bytes_of(hello)); }), Status::OtherVersion);
  // A later version may have a shorter request.
  EXPECT_EQ(status_of_call([&] { parse_hello(bytes_of(hello).substr(0, 8)); }),
            Status::OtherVersion);
}

TEST(CopyHello, HostileValues_AreRefused) {
  const auto refused = [](auto change) {
    Hello hello = good_hello();
    change(hello);
    return status_of_call([&] { parse_hello(bytes_of(hello)); }) == Status::BadPeer;
  };
  EXPECT_TRUE(refused([](Hello& hello) { hello.magic = 1; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.streams = 0; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.streams = kMostStreams + 1; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.stream = 1; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.slots.bytes = kLeastSlotBytes + 1; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.slots.bytes = kMostSlotBytes + kPage; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.slots.count = 0; }));
  EXPECT_TRUE(refused([](Hello& hello) { hello.slots.count = kMostSlots + 1; }));
  EXPECT_EQ(status_of_call([] { parse_hello(bytes_of(good_hello()).substr(0, 20)); }),
            Status::BadPeer);
  Welcome welcome;
  welcome.slots = {.address = 1, .key = 2, .bytes = kLeastSlotBytes, .count = 3};
  EXPECT_EQ(status_of_call([&] { parse_welcome(bytes_of(welcome), good_hello().slots); }),
            Status::BadPeer);
}

TEST(CopyMessage, RoundTrip_KeepsAllFields) {
  Message message;
  message.kind = Kind::Open;
  message.id = 7;
  message.mode = 0640;
  message.status = Status::NoSpace;
  message.size = 1ULL << 40;
  message.offset = 4096;
  message.mtime_ns = -5;
  message.sums = {1, 2, 3};
  message.path = std::string(kMostPath, 'p');
  message.name = "name";
  const Bytes bytes = encode(message);
  ASSERT_LE(bytes.size(), kMessageBytes);
  const Message back = decode(bytes);
  EXPECT_EQ(encode(back), bytes);
  EXPECT_EQ(back.path, message.path);
  EXPECT_EQ(back.sums, message.sums);
}

// The longest that a receiver of files says fits its peer's buffers.
TEST(CopyMessage, LongestAnswer_FitsTheBuffer) {
  Message message;
  message.kind = Kind::Opened;
  message.sums.assign(kMostPartSums, 1);
  EXPECT_LE(encode(message).size(), kMessageBytes);
}

TEST(CopyMessage, CutAndChanged_AreRefusedOrDecoded) {
  Message message;
  message.kind = Kind::Open;
  message.sums = {1, 2};
  message.path = "a/b";
  const Bytes bytes = encode(message);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(status_of_call([&] { decode(std::span(bytes).first(size)); }), Status::BadPeer);
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    Bytes changed = bytes;
    changed[i] = std::byte{0xff};
    const Status status = status_of_call([&] { decode(changed); });
    EXPECT_TRUE(status == Status::Done || status == Status::BadPeer) << i;
  }
}

TEST(CopySlot, PackedEntries_ComeBack) {
  Bytes slot(kLeastSlotBytes);
  Packer packer(slot);
  const Bytes data = bytes_of(std::string("some data"));
  const auto room = packer.reserve("dir/file", data.size());
  ASSERT_TRUE(room.has_value());
  std::memcpy(room->data(), data.data(), data.size());
  Entry entry;
  entry.path = "dir/file";
  entry.mode = 0600;
  entry.mtime_ns = 12;
  entry.data = *room;
  EXPECT_TRUE(packer.add(entry));
  EXPECT_TRUE(packer.reserve("empty", 0).has_value());
  EXPECT_FALSE(packer.reserve("large", slot.size()).has_value());
  Entry directory;
  directory.directory = true;
  directory.path = "dir";
  EXPECT_TRUE(packer.add(directory));
  EXPECT_LT(packer.close(), 300U);
  const SlotHead head = parse_slot(slot);
  Unpacker entries(slot, head);
  const std::optional<Entry> first = entries.next();
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->path, "dir/file");
  EXPECT_EQ(Bytes(first->data.begin(), first->data.end()), data);
  EXPECT_EQ(first->mtime_ns, 12);
  const std::optional<Entry> second = entries.next();
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->directory);
  EXPECT_FALSE(entries.next().has_value());
}

TEST(CopySlot, HostileLengths_StayWithin) {
  Bytes slot(kLeastSlotBytes);
  const auto parse = [&](const SlotHead& head) {
    std::memcpy(slot.data(), &head, sizeof head);
    return status_of_call([&] {
      const SlotHead parsed = parse_slot(slot);
      if (parsed.entries == 0) return;
      Unpacker entries(slot, parsed);
      while (entries.next()) {
      }
    });
  };
  const std::uint64_t all = slot.size() - kPage;
  EXPECT_EQ(parse({.id = 1, .length = all}), Status::Done);
  EXPECT_EQ(parse({.id = 1, .length = all + 1}), Status::BadPeer);
  EXPECT_EQ(parse({.id = 1, .length = 0}), Status::BadPeer);
  EXPECT_EQ(parse({.magic = 0, .length = 1}), Status::BadPeer);
  EXPECT_EQ(parse({.offset = ~0ULL, .length = 1}), Status::BadPeer);
  EXPECT_EQ(parse({.entries = 1, .length = slot.size()}), Status::BadPeer);
  EXPECT_EQ(parse({.entries = 2, .length = 40}), Status::BadPeer);  // one empty entry, no more
  // Lengths of an entry that reach beyond, also by overflow.
  for (const std::uint64_t bytes : {all, ~std::uint64_t{0}, ~std::uint64_t{7}}) {
    std::memcpy(slot.data() + sizeof(SlotHead) + 16, &bytes, sizeof bytes);
    EXPECT_EQ(parse({.entries = 1, .length = 4096}), Status::BadPeer) << bytes;
  }
}

TEST(CopyPath, LeavingPaths_AreRefused) {
  EXPECT_EQ(clean_path("./a//b/./c/"), "a/b/c");
  EXPECT_EQ(clean_path("..a/b.."), "..a/b..");
  EXPECT_EQ(clean_path("."), "");
  for (const char* path : {"..", "../a", "a/../b", "a/..", "/a", "/"}) {
    EXPECT_EQ(status_of_call([&] { clean_path(path); }), Status::Outside) << path;
  }
  EXPECT_EQ(status_of_call([] { clean_path(std::string("a\0b", 3)); }), Status::BadPeer);
  EXPECT_EQ(status_of_call([] { clean_path(std::string(kMostPath + 1, 'a')); }), Status::BadPeer);
}

TEST(CopyPlace, HostAndPath) {
  EXPECT_EQ(parse_place("host:a/b").host, "host");
  EXPECT_EQ(parse_place("host:a/b").path, "a/b");
  EXPECT_EQ(parse_place("[fe80::1]:a").host, "fe80::1");
  EXPECT_EQ(parse_place("./host:a").host, "");
  EXPECT_EQ(parse_place("file").path, "file");
  EXPECT_EQ(parse_place(":file").host, "");
}

TEST(CopyRanges, EachByteComesOnce) {
  Ranges ranges;
  EXPECT_TRUE(ranges.add(10, 20));
  EXPECT_TRUE(ranges.add(30, 40));
  EXPECT_FALSE(ranges.add(10, 20));
  EXPECT_FALSE(ranges.add(15, 16));
  EXPECT_FALSE(ranges.add(5, 11));
  EXPECT_FALSE(ranges.add(19, 31));
  EXPECT_TRUE(ranges.add(20, 30));
  EXPECT_FALSE(ranges.add(25, 26));
  EXPECT_TRUE(ranges.add(0, 10));
  EXPECT_EQ(ranges.bytes(), 40U);
}

}  // namespace
}  // namespace uet::copy
