// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "gpu_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>
#include <vector>

#include "crc32c.h"
#include "idler.h"
#include "stream.h"

namespace uet::copy {
namespace {

constexpr std::uint32_t kId = 1;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

[[noreturn]] void bad(const std::string& what) {
  throw Failure(Status::BadPeer, "the peer broke the protocol: " + what);
}

[[noreturn]] void fail_of_peer(const Message& message) {
  throw Failure(message.status == Status::Done ? Status::Failed : message.status, message.path);
}

void check_tally(const Tally& tally) {
  if (tally.stopped()) throw tally.outcome();
}

}  // namespace

GpuFile::~GpuFile() {
  if (data_ != nullptr) gpu_.free(data_);
}

void GpuFile::load(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) fail_file(errno, path);
  if (!S_ISREG(status.st_mode)) throw Failure(Status::Failed, path + ": --gpu is for files");
  open(kId, static_cast<std::uint64_t>(status.st_size), status.st_mode & 0777,
       status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec);
  std::vector<std::byte> buffer(kMiB);
  for (std::uint64_t done = 0; done < size_;) {
    const std::size_t part = std::min<std::uint64_t>(buffer.size(), size_ - done);
    const ssize_t got = ::read(fd.get(), buffer.data(), part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_file(errno, path);
    if (got == 0) throw Failure(Status::Failed, path + ": the file shrank while it was copied");
    gpu_.put(data_ + done, {buffer.data(), static_cast<std::size_t>(got)});
    done += static_cast<std::size_t>(got);
  }
  done_bytes_ = size_;
}

void GpuFile::open(std::uint32_t id, std::uint64_t size, std::uint32_t mode,
                   std::int64_t mtime_ns) {
  const std::lock_guard lock(mutex_);
  if (known_) bad("a second file");
  if (size > 0) data_ = gpu_.allocate(size);
  known_ = true;
  id_ = id;
  size_ = size;
  mode_ = mode;
  mtime_ns_ = mtime_ns;
}

void GpuFile::take(const Entry& entry) {
  if (entry.directory || !clean_path(entry.path).empty()) bad("a file that was not asked for");
  open(kId, entry.data.size(), entry.mode, entry.mtime_ns);
  gpu_.put(data_, entry.data);
  written(entry.data.size());
}

std::byte* GpuFile::claim(const SlotHead& head, std::size_t piece_bytes) {
  const std::lock_guard lock(mutex_);
  if (!known_ || head.id != id_ || head.offset >= size_ || head.offset % piece_bytes != 0 ||
      head.length != std::min<std::uint64_t>(piece_bytes, size_ - head.offset)) {
    bad("a piece that does not fit its file");
  }
  if (!claimed_.add(head.offset, head.offset + head.length)) bad("a piece that has come already");
  return data_ + head.offset;
}

bool GpuFile::written(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  done_bytes_ += bytes;
  return done_bytes_ == size_;
}

bool GpuFile::whole() const {
  const std::lock_guard lock(mutex_);
  return known_ && done_bytes_ == size_;
}

Message GpuFile::announcement() {
  if (size_ == 0) throw Failure(Status::Failed, "--gpu: the file is empty");
  return {.kind = Kind::Open, .id = kId, .mode = mode_, .size = size_, .mtime_ns = mtime_ns_};
}

void GpuFile::opened() {
  const std::lock_guard lock(mutex_);
  opened_ = true;
}

GpuFile::Part GpuFile::next_part(std::size_t piece_bytes) {
  const std::lock_guard lock(mutex_);
  if (!opened_ || next_ >= size_) return {};
  Part part{data_ + next_, next_, std::min<std::uint64_t>(piece_bytes, size_ - next_)};
  next_ += part.bytes;
  return part;
}

bool GpuFile::sent_all() const {
  const std::lock_guard lock(mutex_);
  return opened_ && next_ >= size_;
}

namespace {

class GpuReceiver {
 public:
  GpuReceiver(Connection& connection, GpuFile& file, Tally& tally, bool verify)
      : connection_(connection),
        file_(file),
        tally_(tally),
        verify_(verify),
        piece_bytes_(connection.slot(0).size() - kPage),
        scratch_(connection.slot(0).size()) {}

  void run() {
    Idler idler(connection_);
    while (!over_) {
      check_tally(tally_);
      News news;
      connection_.poll(news);
      for (const Message& message : news.messages) on_message(message);
      for (const std::uint64_t slot : news.arrived) on_slot(slot);
      idler.turn(!news.empty());
    }
    flush(connection_);
  }

 private:
  void on_message(const Message& message) {
    switch (message.kind) {
      case Kind::Open:
        if (!clean_path(message.path).empty()) bad("a file that was not asked for");
        file_.open(message.id, message.size, message.mode, message.mtime_ns);
        tally_.expected = message.size;
        connection_.send({.kind = Kind::Opened, .id = message.id, .size = piece_bytes_});
        return;
      case Kind::Done:
        if (message.status != Status::Done) tally_.problem({message.status, message.path});
        connection_.send({.kind = Kind::Bye});
        over_ = true;
        return;
      case Kind::Fail:
        fail_of_peer(message);
      default:
        bad("a message that receivers do not get");
    }
  }

  // The head is read back; the bytes go on within the device.
  void on_slot(std::uint64_t number) {
    if (number >= connection_.slots() || over_) bad("a slot that there is not");
    const auto index = static_cast<unsigned>(number);
    const std::byte* const slot = connection_.slot(index).data();
    file_.gpu().get(std::span(scratch_).first(sizeof(SlotHead)), slot);
    const SlotHead head = parse_slot(scratch_);
    if (head.entries > 0) {
      file_.gpu().get(scratch_, slot);
      take_entries(head);
    } else {
      take_piece(head, slot + kPage);
    }
    connection_.send({.kind = Kind::Free, .id = index});
  }

  void take_entries(const SlotHead& head) {
    Unpacker entries(scratch_, head);
    while (const std::optional<Entry> entry = entries.next()) {
      if (verify_ && copy::crc32c(entry->data) != entry->sum) mismatch();
      file_.take(*entry);
      tally_.bytes += entry->data.size();
      ++tally_.files;
    }
  }

  void take_piece(const SlotHead& head, const std::byte* from) {
    std::byte* const to = file_.claim(head, piece_bytes_);
    file_.gpu().copy(to, from, head.length);
    if (verify_ && file_.gpu().crc32c(to, head.length) != head.sum) mismatch();
    tally_.bytes += head.length;
    if (file_.written(head.length)) ++tally_.files;
  }

  [[noreturn]] static void mismatch() {
    throw Failure(Status::Mismatch,
                  "the received bytes differ from the bytes that the sender read");
  }

  Connection& connection_;
  GpuFile& file_;
  Tally& tally_;
  const bool verify_;
  const std::size_t piece_bytes_;
  std::vector<std::byte> scratch_;  // of the CPU
  bool over_ = false;
};

class GpuSender {
 public:
  GpuSender(Connection& connection, GpuFile& file, Tally& tally, bool verify)
      : connection_(connection),
        file_(file),
        tally_(tally),
        verify_(verify),
        piece_bytes_(connection.slot(0).size() - kPage),
        slots_(connection.slots()) {}

  void run(bool announces) {
    if (announces) connection_.send(file_.announcement());
    Idler idler(connection_);
    while (!over_) {
      check_tally(tally_);
      News news;
      connection_.poll(news);
      for (const Message& message : news.messages) on_message(message);
      for (const unsigned slot : news.written) on_written(slot);
      const bool filled = fill_one();
      if (!said_done_ && all_is_sent()) {
        said_done_ = true;
        connection_.send({.kind = Kind::Done});
      }
      idler.turn(filled || !news.empty());
    }
    if (announces) ++tally_.files;
  }

 private:
  struct Slot {
    bool busy = false;
    bool written = false;  // our bytes have left
    bool freed = false;    // the receiver has said so
    std::uint64_t bytes = 0;
  };

  void on_written(unsigned index) {
    slots_[index].written = true;
    settle(slots_[index]);
  }
  static void settle(Slot& slot) {
    if (slot.written && slot.freed) slot = {};
  }

  void on_message(const Message& message) {
    switch (message.kind) {
      case Kind::Free:
        if (message.id >= slots_.size() || !slots_[message.id].busy || slots_[message.id].freed) {
          bad("a slot is freed that was not sent");
        }
        tally_.bytes += slots_[message.id].bytes;
        slots_[message.id].freed = true;
        settle(slots_[message.id]);
        return;
      case Kind::Opened:  // what an earlier transfer has left is sent again
        file_.opened();
        return;
      case Kind::Bye:
        if (!said_done_) bad("an early end");
        over_ = true;
        return;
      case Kind::Fail:
        fail_of_peer(message);
      default:
        bad("a message that senders do not get");
    }
  }

  bool fill_one() {
    const auto free =
        std::find_if(slots_.begin(), slots_.end(), [](const Slot& slot) { return !slot.busy; });
    if (free == slots_.end()) return false;
    const GpuFile::Part part = file_.next_part(piece_bytes_);
    if (part.bytes == 0) return false;
    const auto index = static_cast<unsigned>(free - slots_.begin());
    std::byte* const slot = connection_.slot(index).data();
    SlotHead head{.id = kId, .offset = part.offset, .length = part.bytes};
    if (verify_) head.sum = file_.gpu().crc32c(part.data, part.bytes);
    file_.gpu().put(slot, std::as_bytes(std::span(&head, 1)));
    file_.gpu().copy(slot + kPage, part.data, part.bytes);
    *free = {.busy = true, .bytes = part.bytes};
    connection_.write_slot(index, kPage + part.bytes);
    return true;
  }

  bool all_is_sent() const {
    const auto busy = [](const Slot& slot) { return slot.busy; };
    return file_.sent_all() && std::none_of(slots_.begin(), slots_.end(), busy);
  }

  Connection& connection_;
  GpuFile& file_;
  Tally& tally_;
  const bool verify_;
  const std::size_t piece_bytes_;
  std::vector<Slot> slots_;
  bool said_done_ = false;
  bool over_ = false;
};

}  // namespace

void receive_to_gpu(Connection& connection, GpuFile& file, Tally& tally, bool verify) {
  GpuReceiver(connection, file, tally, verify).run();
}

void send_from_gpu(Connection& connection, GpuFile& file, Tally& tally, bool verify, bool first) {
  GpuSender(connection, file, tally, verify).run(first);
}

}  // namespace uet::copy
