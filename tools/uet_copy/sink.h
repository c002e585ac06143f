// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The files that one end receives. The peer is not trusted: names stay below the target, pieces
// fit their file and come once. All functions may be called by several threads, and throw Failure.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "directory.h"
#include "protocol.h"
#include "tally.h"

namespace uet::copy {

// Ranges of a file, each of which comes once.
class Ranges {
 public:
  // False: a byte of it has come already.
  bool add(std::uint64_t begin, std::uint64_t end);
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_;  // begin, end; neighbours are joined
  std::uint64_t bytes_ = 0;
};

class Sink {
 public:
  struct Options {
    bool tree = false;
    bool sync = false;
    bool verify = false;
    bool direct = true;
    std::string unique;  // no other transfer has it: for names of files that are not whole
    std::size_t piece_bytes = kMiB - kPage;
    std::uint32_t streams = 1;
  };
  class LongFile;

  // A file goes to `path` (clean), or into it under `name` if it is a directory; a tree is merged
  // into the directory `path`.
  Sink(Tally& tally, Directory directory, const std::string& path, const std::string& name,
       Options options);
  ~Sink();

  // The entries of a slot, written before it returns.
  void take_entries(std::span<const std::byte> slot, const SlotHead& head);
  // A long file; the answer to the sender.
  Message open(const Message& message);
  // The sender knows that this range is there already.
  void have(const Message& message);

  // A piece has arrived: where to write it. The bytes are in `slot` behind the first page.
  struct Place {
    std::shared_ptr<LongFile> file;
    int fd = -1;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;   // of the file
    std::size_t padded = 0;  // to write, with bytes behind the end of the file
  };
  Place claim(std::span<const std::byte> slot, const SlotHead& head);
  static std::string name_of(const Place& place);
  // It has been written.
  void written(const Place& place);

  // A stream has nothing more; the last gives the directories their modes and times.
  void stream_done();
  const Options& options() const { return options_; }

 private:
  struct Made {
    std::string path;
    std::uint32_t mode;
    std::int64_t mtime_ns;
  };

  std::string target_of(const std::string& path, bool directory) const;
  void write_entry(const Entry& entry, const std::string& path);
  std::shared_ptr<LongFile> find(std::uint32_t id);
  // That many more bytes of the file are there; the last give it its name.
  void count(const std::shared_ptr<LongFile>& file, std::uint64_t bytes);

  Tally& tally_;
  Options options_;
  std::string base_;
  std::mutex mutex_;
  Directory directory_;
  std::map<std::uint32_t, std::shared_ptr<LongFile>> long_files_;
  std::vector<Made> made_;
  std::uint64_t last_unique_ = 0;
  std::uint32_t streams_done_ = 0;
};

}  // namespace uet::copy
