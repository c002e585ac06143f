// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "protocol.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

namespace uet::copy {
namespace {

[[noreturn]] void bad(const std::string& what) {
  throw Failure(Status::BadPeer, "the peer broke the protocol: " + what);
}

template <class T>
void put(Bytes& to, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t at = to.size();
  to.resize(at + sizeof value);
  std::memcpy(to.data() + at, &value, sizeof value);
}
void put_text(Bytes& to, std::string_view text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  const auto bytes = std::as_bytes(std::span(text));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <class T>
  T take() {
    T value{};
    if (rest_.size() < sizeof value) bad("a message is too short");
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::string take_text(std::size_t most) {
    const auto bytes = take<std::uint32_t>();
    if (bytes > most || bytes > rest_.size()) bad("a text is too long");
    std::string text(reinterpret_cast<const char*>(rest_.data()), bytes);
    rest_ = rest_.subspan(bytes);
    return text;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
};

// In front of each entry of a slot; the path and the data follow, padded to 8 bytes together.
struct EntryHead {
  std::uint32_t directory = 0;
  std::uint32_t mode = 0;
  std::uint32_t sum = 0;
  std::uint32_t path_bytes = 0;
  std::uint64_t data_bytes = 0;
  std::int64_t mtime_ns = 0;
};

std::size_t padded(std::size_t bytes) { return (bytes + 7) / 8 * 8; }

template <class T>
T parse(std::string_view data, const char* what) {
  T value;
  std::array<std::uint32_t, 2> start{};
  if (data.size() < sizeof start) bad(std::string(what) + " is too short");
  std::memcpy(start.data(), data.data(), sizeof start);
  if (start[0] != kMagic) bad(std::string(what) + " is not of uet_copy");
  if (start[1] != kVersion) {
    throw Failure(Status::OtherVersion, "the peer speaks version " + std::to_string(start[1]) +
                                            " of the protocol, this program version " +
                                            std::to_string(kVersion));
  }
  if (data.size() < sizeof value) bad(std::string(what) + " is too short");
  std::memcpy(&value, data.data(), sizeof value);
  return value;
}

}  // namespace

Status status_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return Status::NoFile;
    case EACCES:
    case EPERM:
    case EROFS:
      return Status::NoPermission;
    case ENOSPC:
    case EDQUOT:
      return Status::NoSpace;
    case EXDEV:
      return Status::Outside;
    default:
      return Status::Failed;
  }
}

void fail_file(int error, const std::string& name) {
  const Status status = status_of(error);
  throw Failure(status, name + ": " +
                            (status == Status::Outside ? "leaves the directory that is served"
                                                       : std::strerror(error)));
}

Hello parse_hello(std::string_view data) {
  const auto hello = parse<Hello>(data, "the connection request");
  if (hello.streams == 0 || hello.streams > kMostStreams || hello.stream >= hello.streams) {
    bad("number of streams");
  }
  const Slots& slots = hello.slots;
  if (slots.bytes < kLeastSlotBytes || slots.bytes > kMostSlotBytes || slots.bytes % kPage != 0 ||
      slots.count == 0 || slots.count > kMostSlots) {
    bad("size or number of slots");
  }
  return hello;
}

Welcome parse_welcome(std::string_view data, const Slots& wanted) {
  const auto welcome = parse<Welcome>(data, "the answer");
  if (welcome.slots.bytes != wanted.bytes || welcome.slots.count != wanted.count) {
    bad("the answer has other slots than asked for");
  }
  return welcome;
}

Bytes encode(const Message& message) {
  Bytes bytes;
  put(bytes, message.kind);
  put(bytes, message.id);
  put(bytes, message.mode);
  put(bytes, message.status);
  put(bytes, message.size);
  put(bytes, message.offset);
  put(bytes, message.mtime_ns);
  put(bytes, static_cast<std::uint32_t>(message.sums.size()));
  for (const std::uint32_t sum : message.sums) put(bytes, sum);
  put_text(bytes, std::string_view(message.path).substr(0, kMostPath));
  put_text(bytes, message.name);
  return bytes;
}

Message decode(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Message message;
  message.kind = reader.take<Kind>();
  if (message.kind < Kind::Request || message.kind > Kind::Fail) bad("unknown message");
  message.id = reader.take<std::uint32_t>();
  message.mode = reader.take<std::uint32_t>();
  message.status = reader.take<Status>();
  if (message.status > Status::BadPeer) message.status = Status::Failed;
  message.size = reader.take<std::uint64_t>();
  message.offset = reader.take<std::uint64_t>();
  if (message.size > kMostFileBytes || message.offset > kMostFileBytes) bad("size of a file");
  message.mtime_ns = reader.take<std::int64_t>();
  const auto sums = reader.take<std::uint32_t>();
  if (sums > kMostPartSums) bad("too many sums");
  for (std::uint32_t i = 0; i < sums; ++i) message.sums.push_back(reader.take<std::uint32_t>());
  message.path = reader.take_text(kMostPath);
  message.name = reader.take_text(255);
  if (!reader.at_end()) bad("a message is too long");
  return message;
}

SlotHead parse_slot(std::span<const std::byte> slot) {
  SlotHead head;
  std::memcpy(&head, slot.data(), sizeof head);
  if (head.magic != kMagic) bad("a slot without head");
  const std::size_t most = slot.size() - (head.entries > 0 ? sizeof head : kPage);
  if (head.length > most) bad("a slot is longer than slots are");
  if (head.entries == 0 && (head.length == 0 || head.offset > kMostFileBytes)) {
    bad("an impossible piece");
  }
  return head;
}

Packer::Packer(std::span<std::byte> slot) : slot_(slot), used_(sizeof head_) {}

std::optional<std::span<std::byte>> Packer::reserve(std::string_view path, std::size_t bytes) {
  const std::size_t at = used_ + sizeof(EntryHead) + path.size();
  if (at + padded(bytes) + 8 > slot_.size()) return std::nullopt;
  return slot_.subspan(at, bytes);
}

bool Packer::add(const Entry& entry) {
  const std::size_t tail = padded(entry.path.size() + entry.data.size());
  if (used_ + sizeof(EntryHead) + tail > slot_.size()) return false;
  const EntryHead head{.directory = entry.directory ? 1U : 0U,
                       .mode = entry.mode,
                       .sum = entry.sum,
                       .path_bytes = static_cast<std::uint32_t>(entry.path.size()),
                       .data_bytes = entry.data.size(),
                       .mtime_ns = entry.mtime_ns};
  std::memcpy(slot_.data() + used_, &head, sizeof head);
  std::memcpy(slot_.data() + used_ + sizeof head, entry.path.data(), entry.path.size());
  used_ += sizeof head + tail;
  ++head_.entries;
  return true;
}

std::size_t Packer::close() {
  head_.length = used_ - sizeof head_;
  std::memcpy(slot_.data(), &head_, sizeof head_);
  return used_;
}

Unpacker::Unpacker(std::span<const std::byte> slot, const SlotHead& head)
    : rest_(slot.subspan(sizeof head, head.length)), left_(head.entries) {}

std::optional<Entry> Unpacker::next() {
  if (left_ == 0) return {};
  --left_;
  EntryHead head;
  if (rest_.size() < sizeof head) bad("a slot ends within an entry");
  std::memcpy(&head, rest_.data(), sizeof head);
  rest_ = rest_.subspan(sizeof head);
  if (head.path_bytes > kMostPath || head.data_bytes > rest_.size() ||
      padded(head.path_bytes + head.data_bytes) > rest_.size()) {
    bad("an entry is longer than its slot");
  }
  Entry entry;
  entry.directory = head.directory != 0;
  entry.mode = head.mode;
  entry.sum = head.sum;
  entry.mtime_ns = head.mtime_ns;
  entry.path.assign(reinterpret_cast<const char*>(rest_.data()), head.path_bytes);
  entry.data = rest_.subspan(head.path_bytes, head.data_bytes);
  rest_ = rest_.subspan(padded(head.path_bytes + head.data_bytes));
  return entry;
}

std::string clean_path(std::string_view path) {
  const auto outside = [&] {
    throw Failure(Status::Outside, std::string(path) + ": leaves the directory that is served");
  };
  if (path.find('\0') != std::string_view::npos) bad("a path with a zero byte");
  if (path.size() > kMostPath) bad("a path is too long");
  if (path.starts_with('/')) outside();
  std::string cleaned;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") outside();
    if (!cleaned.empty()) cleaned += '/';
    cleaned += part;
  }
  return cleaned;
}

}  // namespace uet::copy
