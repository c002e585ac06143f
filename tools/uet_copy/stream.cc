// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "crc32c.h"
#include "disk.h"
#include "idler.h"

namespace uet::copy {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kLastWords{2};
constexpr std::chrono::seconds kRequestPatience{30};
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

[[noreturn]] void bad(const std::string& what) {
  throw Failure(Status::BadPeer, "the peer broke the protocol: " + what);
}

// Ends the stream if another has ended the transfer.
void check_tally(const Tally& tally) {
  if (tally.stopped()) throw tally.outcome();
}

// Reads `bytes` of the file; fewer at its end.
std::size_t read_whole(int fd, std::span<std::byte> to, const std::string& path) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got = ::read(fd, to.data() + done, to.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_file(errno, path);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

// A name for messages; the path that was asked for has none.
std::string shown(const std::string& path) { return path.empty() ? "the source" : path; }

class Sender {
 public:
  Sender(Connection& connection, Source& source, Tally& tally, bool verify)
      : connection_(connection),
        source_(source),
        tally_(tally),
        verify_(verify),
        slots_(connection.slots()),
        disk_(connection.slots()) {
    if (!disk_.why().empty()) tally_.note_disk(disk_.why());
  }

  void run() {
    Idler idler(connection_, disk_.fd());
    while (!over_) {
      check_tally(tally_);
      News news;
      connection_.poll(news);
      for (const Message& message : news.messages) on_message(message);
      for (const unsigned slot : news.written) {
        slots_[slot].written = true;
        settle(slot);
      }
      std::vector<Disk::Outcome> outcomes;
      disk_.reap(outcomes);
      for (const Disk::Outcome& outcome : outcomes) on_read(outcome);
      const bool filled = fill_one();
      if (!said_done_ && all_is_sent()) say_done();
      idler.turn(filled || !news.empty() || !outcomes.empty());
    }
  }

 private:
  struct Slot {
    enum { kFree, kReading, kSent } state = kFree;
    bool written = false;  // our bytes have left
    bool freed = false;    // the receiver has said so
    std::uint64_t bytes = 0;
    Piece piece;
  };
  // A name that was opened and did not fit into the slot.
  struct Carried {
    Found found;
    Fd fd;
    struct stat status {};
  };

  void settle(unsigned index) {
    Slot& slot = slots_[index];
    if (slot.state == Slot::kSent && slot.written && slot.freed) slot = {};
  }

  void on_message(const Message& message) {
    switch (message.kind) {
      case Kind::Free:
        if (message.id >= slots_.size() || slots_[message.id].state != Slot::kSent ||
            slots_[message.id].freed) {
          bad("a slot is freed that was not sent");
        }
        slots_[message.id].freed = true;
        tally_.bytes += slots_[message.id].bytes;
        settle(message.id);
        return;
      case Kind::Opened:
        on_opened(message);
        return;
      case Kind::Bye:
        if (!said_done_) bad("an early end");
        over_ = true;
        return;
      case Kind::Fail:
        throw Failure(message.status == Status::Done ? Status::Failed : message.status,
                      message.path);
      default:
        bad("a message that senders do not get");
    }
  }

  // Compares what the receiver has with the file, and says which ranges need not be sent.
  void on_opened(const Message& message) {
    const std::shared_ptr<const LongSource> file = source_.announced(message.id);
    const std::uint64_t part = message.size;
    if (file == nullptr) bad("an answer about a file that was not announced");
    if (part == 0 || part % source_.piece_bytes() != 0 || message.sums.size() > file->size / part) {
      bad("sums of more than the file");
    }
    std::map<std::uint64_t, std::uint64_t> has;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;  // [begin, end) is there
    const auto say = [&] {
      if (begin == end) return;
      has[begin] = end;
      tally_.resumed += end - begin;
      connection_.send({.kind = Kind::Have, .id = file->id, .size = end - begin, .offset = begin});
    };
    for (std::uint64_t i = 0; i < message.sums.size(); ++i) {
      std::uint32_t sum = 0;
      if (!sum_of(*file, i * part, part, sum) || sum != message.sums[i]) continue;
      if (end != i * part) {
        say();
        begin = i * part;
      }
      end = (i + 1) * part;
    }
    say();
    source_.opened(message.id, std::move(has));
  }

  static bool sum_of(const LongSource& file, std::uint64_t offset, std::uint64_t bytes,
                     std::uint32_t& sum) {
    const std::unique_ptr<std::byte, decltype(&std::free)> buffer(
        static_cast<std::byte*>(std::aligned_alloc(kPage, kMiB)), &std::free);
    for (std::uint64_t done = 0; done < bytes;) {
      const std::size_t part = std::min<std::uint64_t>(kMiB, bytes - done);
      const ssize_t got =
          ::pread(file.fd.get(), buffer.get(), part, static_cast<off_t>(offset + done));
      if (got != static_cast<ssize_t>(part)) return false;
      sum = crc32c({buffer.get(), part}, sum);
      done += part;
    }
    return true;
  }

  // Begins to fill a free slot; true: there was something to do.
  bool fill_one() {
    if (said_done_) return false;
    const auto free = std::find_if(slots_.begin(), slots_.end(),
                                   [](const Slot& slot) { return slot.state == Slot::kFree; });
    if (free == slots_.end()) return false;
    const auto index = static_cast<unsigned>(free - slots_.begin());
    if (std::optional<Piece> piece = source_.next_piece()) {
      // O_DIRECT reads whole pages, also those at the end of the file.
      const std::size_t padded = (piece->bytes + kPage - 1) / kPage * kPage;
      free->state = Slot::kReading;
      free->piece = std::move(*piece);
      disk_.read(index, free->piece.file->fd.get(), connection_.slot(index).data() + kPage,
                 free->piece.file->direct ? padded : free->piece.bytes, free->piece.offset);
      return true;
    }
    return pack(index);
  }

  void on_read(const Disk::Outcome& outcome) {
    Slot& slot = slots_[outcome.tag];
    const LongSource& file = *slot.piece.file;
    if (outcome.bytes < 0) fail_file(static_cast<int>(-outcome.bytes), shown(file.path));
    if (static_cast<std::size_t>(outcome.bytes) < slot.piece.bytes) {
      throw Failure(Status::Failed, shown(file.path) + ": the file shrank while it was copied");
    }
    const std::span<std::byte> memory = connection_.slot(outcome.tag);
    SlotHead head{.id = file.id, .offset = slot.piece.offset, .length = slot.piece.bytes};
    if (verify_) head.sum = crc32c(memory.subspan(kPage, slot.piece.bytes));
    std::memcpy(memory.data(), &head, sizeof head);
    slot.bytes = slot.piece.bytes;
    send(outcome.tag, kPage + slot.piece.bytes);
  }

  void send(unsigned index, std::size_t bytes) {
    slots_[index].state = Slot::kSent;
    connection_.write_slot(index, bytes);
  }

  // Puts small files into a slot until it is full or there is none.
  bool pack(unsigned index) {
    Packer packer(connection_.slot(index));
    std::uint64_t bytes = 0;
    while (source_.may_look_further()) {
      if (carried_.fd.get() < 0) {
        std::optional<Found> found = source_.next();
        if (!found) break;
        carried_.found = std::move(*found);
        carried_.fd = source_.open(carried_.found, carried_.status);
        if (!carried_.fd) continue;
      }
      if (!pack_carried(packer, bytes)) break;
      carried_ = {};
    }
    if (packer.entries() == 0) return false;
    slots_[index].bytes = bytes;
    tally_.files += files_in_slot_;
    files_in_slot_ = 0;
    send(index, packer.close());
    return true;
  }

  // False: it does not fit.
  bool pack_carried(Packer& packer, std::uint64_t& bytes) {
    const struct stat& status = carried_.status;
    Entry entry;
    entry.path = carried_.found.path;
    entry.directory = S_ISDIR(status.st_mode);
    entry.mode = status.st_mode & 0777;
    entry.mtime_ns = status.st_mtim.tv_sec * kNsPerSecond + status.st_mtim.tv_nsec;
    if (entry.directory) return packer.add(entry);
    const auto size = static_cast<std::size_t>(status.st_size);
    if (size > source_.piece_bytes() / 4) {
      announce();
      return true;
    }
    const std::optional<std::span<std::byte>> reserved = packer.reserve(entry.path, size);
    if (!reserved) return false;
    const std::size_t got = read_whole(carried_.fd.get(), *reserved, shown(entry.path));
    entry.data = reserved->first(got);
    if (verify_) entry.sum = crc32c(entry.data);
    bytes += got;
    ++files_in_slot_;
    return packer.add(entry);
  }

  void announce() {
    const std::shared_ptr<const LongSource> file =
        source_.add(carried_.found, std::move(carried_.fd), carried_.status);
    ++tally_.files;
    connection_.send({.kind = Kind::Open,
                      .id = file->id,
                      .mode = file->mode,
                      .size = file->size,
                      .mtime_ns = file->mtime_ns,
                      .path = file->path});
  }

  bool all_is_sent() const {
    const auto free = [](const Slot& slot) { return slot.state == Slot::kFree; };
    return carried_.fd.get() < 0 && source_.finished() &&
           std::all_of(slots_.begin(), slots_.end(), free);
  }

  void say_done() {
    said_done_ = true;
    const Failure problem = tally_.outcome();
    connection_.send({.kind = Kind::Done, .status = problem.status, .path = problem.what()});
  }

  Connection& connection_;
  Source& source_;
  Tally& tally_;
  bool verify_;
  std::vector<Slot> slots_;
  Disk disk_;  // ended before the slots are
  Carried carried_;
  std::uint64_t files_in_slot_ = 0;
  bool said_done_ = false;
  bool over_ = false;
};

class Receiver {
 public:
  Receiver(Connection& connection, Sink& sink, Tally& tally)
      : connection_(connection),
        sink_(sink),
        tally_(tally),
        places_(connection.slots()),
        busy_(connection.slots(), false),
        disk_(connection.slots()) {
    if (!disk_.why().empty()) tally_.note_disk(disk_.why());
  }

  void run() {
    Idler idler(connection_, disk_.fd());
    while (!over_) {
      check_tally(tally_);
      News news;
      connection_.poll(news);
      // Messages first: a file is opened before its pieces come.
      for (const Message& message : news.messages) on_message(message);
      for (const std::uint64_t slot : news.arrived) on_slot(slot);
      std::vector<Disk::Outcome> outcomes;
      disk_.reap(outcomes);
      for (const Disk::Outcome& outcome : outcomes) on_written(outcome);
      idler.turn(!news.empty() || !outcomes.empty());
    }
    flush(connection_);
  }

 private:
  void on_message(const Message& message) {
    switch (message.kind) {
      case Kind::Open:
        connection_.send(sink_.open(message));
        return;
      case Kind::Have:
        sink_.have(message);
        return;
      case Kind::Done:
        if (over_ || std::find(busy_.begin(), busy_.end(), true) != busy_.end()) {
          bad("an early end");
        }
        if (message.status != Status::Done) tally_.problem({message.status, message.path});
        sink_.stream_done();
        connection_.send({.kind = Kind::Bye});
        over_ = true;
        return;
      case Kind::Fail:
        throw Failure(message.status == Status::Done ? Status::Failed : message.status,
                      message.path);
      default:
        bad("a message that receivers do not get");
    }
  }

  void on_slot(std::uint64_t number) {
    if (number >= places_.size()) bad("a slot that there is not");
    const auto index = static_cast<unsigned>(number);
    if (busy_[index] || over_) bad("a slot that is not free");
    const std::span<std::byte> memory = connection_.slot(index);
    const SlotHead head = parse_slot(memory);
    busy_[index] = true;
    if (head.entries > 0) {
      sink_.take_entries(memory, head);
      free(index);
      return;
    }
    Sink::Place& place = places_[index];
    place = sink_.claim(memory, head);
    disk_.write(index, place.fd, memory.data() + kPage, place.padded, place.offset);
  }

  void on_written(const Disk::Outcome& outcome) {
    Sink::Place& place = places_[outcome.tag];
    if (outcome.bytes < 0) {
      fail_file(static_cast<int>(-outcome.bytes), sink_.name_of(place));
    }
    sink_.written(place);
    place = {};
    free(outcome.tag);
  }

  void free(unsigned index) {
    busy_[index] = false;
    connection_.send({.kind = Kind::Free, .id = index});
  }

  Connection& connection_;
  Sink& sink_;
  Tally& tally_;
  std::vector<Sink::Place> places_;
  std::vector<bool> busy_;
  Disk disk_;  // ended before the files of the places are closed
  bool over_ = false;
};

}  // namespace

void flush(Connection& connection) {
  Idler idler(connection);
  const auto start = steady_clock::now();
  try {
    while (!connection.flushed() && steady_clock::now() - start < kLastWords) {
      News ignored;
      connection.poll(ignored);
      idler.turn(false);
    }
  } catch (const Failure&) {  // NOLINT(bugprone-empty-catch): the peer has gone
  }
}

void send_files(Connection& connection, Source& source, Tally& tally, bool verify) {
  Sender(connection, source, tally, verify).run();
}

void receive_files(Connection& connection, Sink& sink, Tally& tally) {
  Receiver(connection, sink, tally).run();
}

Message receive_request(Connection& connection) {
  Idler idler(connection);
  const auto start = steady_clock::now();
  while (steady_clock::now() - start < kRequestPatience) {
    News news;
    connection.poll(news);
    if (!news.messages.empty()) {
      Message request = std::move(news.messages.front());
      if (request.kind != Kind::Request) bad("no request");
      news.messages.erase(news.messages.begin());
      connection.put_back(std::move(news));
      return request;
    }
    if (!news.empty()) bad("data before the request");
    idler.turn(false);
  }
  throw Failure(Status::NoConnection, "the client asked for nothing");
}

void send_failure(Connection& connection, const Failure& failure) {
  try {
    connection.send({.kind = Kind::Fail, .status = failure.status, .path = failure.what()});
    flush(connection);
  } catch (const Failure&) {  // NOLINT(bugprone-empty-catch): the peer has gone
  }
}

}  // namespace uet::copy
