// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads and writes of slots, several at a time, through io_uring. Without it (not built with
// liburing, or refused by the kernel) each call does its work at once, and why() says so.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace uet::copy {

class Disk {
 public:
  // The end of the operation `tag`: bytes, fewer than asked for at the end of a file only, or
  // a negative errno.
  struct Outcome {
    unsigned tag = 0;
    ssize_t bytes = 0;
  };

  // `tags`: operations have the tags 0 to tags - 1, and one is in progress for each at most.
  explicit Disk(unsigned tags);
  ~Disk();
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  // The memory stays with the operation until its outcome.
  void read(unsigned tag, int fd, void* to, std::size_t bytes, std::uint64_t offset);
  void write(unsigned tag, int fd, const void* from, std::size_t bytes, std::uint64_t offset);
  // Moves the outcomes that are there to `out`; does not wait.
  void reap(std::vector<Outcome>& out);
  // Waits for all operations: afterwards no memory and no file is in use.
  void drain();
  // Readable when reap() may return outcomes; -1: operations end at once.
  int fd() const;
  // Why io_uring is not used; empty if it is.
  const std::string& why() const { return why_; }

 private:
  struct Operation {
    bool write = false;
    bool running = false;
    int fd = -1;
    std::byte* memory = nullptr;
    std::size_t bytes = 0;
    std::uint64_t offset = 0;
    std::size_t done = 0;
  };
  struct Ring;

  void begin(unsigned tag, const Operation& operation);
  void submit(unsigned tag);
  void run_now(unsigned tag);
  // A part of an operation has ended; true: the whole has.
  bool part_done(unsigned tag, ssize_t result);

  std::vector<Operation> operations_;
  std::vector<Outcome> outcomes_;
  std::unique_ptr<Ring> ring_;
  std::string why_;
};

}  // namespace uet::copy
