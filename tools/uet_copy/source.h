// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The files that one end sends, found one after the other and handed to the streams: whole small
// files, and pieces of long ones. All functions may be called by several threads.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "directory.h"
#include "protocol.h"
#include "tally.h"

namespace uet::copy {

// A name that was found. `parent` is empty for the path that the transfer is about.
struct Found {
  SharedFd parent;
  std::string name;  // in `parent`
  std::string path;  // below the path of the transfer; "" is that path
};

struct LongSource {
  std::uint32_t id = 0;
  Fd fd;
  std::string path;
  std::uint64_t size = 0;
  std::uint32_t mode = 0;
  std::int64_t mtime_ns = 0;
  bool direct = false;  // fd reads past the page cache
};

struct Piece {
  std::shared_ptr<const LongSource> file;
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

class Source {
 public:
  // Sends `path` (clean) of `directory`: a file, or with `tree` a directory with all below it.
  // Throws Failure.
  Source(Tally& tally, Directory directory, const std::string& path, bool tree, bool direct,
         std::size_t piece_bytes);

  // The next name; empty: there is none now. A directory is entered by the next call.
  std::optional<Found> next();
  // The file or directory of a name, for reading; no descriptor: it is left out, and counted.
  // A directory is put into the line of those to enter.
  Fd open(const Found& found, struct stat& status);

  // A long file, which is announced to the peer before its pieces are sent.
  std::shared_ptr<const LongSource> add(const Found& found, Fd fd, const struct stat& status);
  std::shared_ptr<const LongSource> announced(std::uint32_t id) const;  // nullptr: none
  // The peer waits for its pieces, except the ranges [begin, end) of `has`, in order.
  void opened(std::uint32_t id, std::map<std::uint64_t, std::uint64_t> has);
  std::optional<Piece> next_piece();
  // A stream that has neither name nor piece is done, since no other will come.
  bool finished() const;
  // Not more long files than this are open at a time.
  bool may_look_further() const;
  std::size_t piece_bytes() const { return piece_bytes_; }

 private:
  struct Sending {
    std::shared_ptr<const LongSource> file;
    bool opened = false;
    std::uint64_t next = 0;
    std::map<std::uint64_t, std::uint64_t> has;
  };
  struct CloseStream {
    void operator()(DIR* stream) const { ::closedir(stream); }
  };
  struct Entered {
    SharedFd fd;
    std::unique_ptr<DIR, CloseStream> stream;
    std::string path;
  };

  void enter(const SharedFd& fd, const std::string& path);

  Tally& tally_;
  bool direct_;
  std::size_t piece_bytes_;
  mutable std::mutex mutex_;
  Fd root_;  // until next() has given it out
  bool root_given_ = false;
  unsigned looking_ = 0;          // names given out by next() that open() has yet to see
  std::vector<Entered> entered_;  // the innermost last
  std::list<Sending> sending_;
  std::uint32_t last_id_ = 0;
};

}  // namespace uet::copy
