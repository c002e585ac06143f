// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One file in the memory of a GPU, and the two ends of a connection whose slots lie there too. The
// other end is an ordinary one: the protocol does not know where slots lie.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "connection.h"
#include "gpu.h"
#include "sink.h"
#include "tally.h"

namespace uet::copy {

// All functions may be called by several threads, and throw Failure.
class GpuFile {
 public:
  explicit GpuFile(int device) : gpu_(device) {}
  ~GpuFile();

  Gpu& gpu() { return gpu_; }
  std::uint64_t size() const { return size_; }
  std::uint32_t crc32c() { return gpu_.crc32c(data_, size_); }
  // Fills it with a file of this host.
  void load(const std::string& path);

  // Receiving: the file that the sender announces; a file is announced once.
  void open(std::uint32_t id, std::uint64_t size, std::uint32_t mode, std::int64_t mtime_ns);
  // A whole file that lies in host memory.
  void take(const Entry& entry);
  // Where a piece goes; the peer is not trusted.
  std::byte* claim(const SlotHead& head, std::size_t piece_bytes);
  // True: these were the last bytes.
  bool written(std::uint64_t bytes);
  bool whole() const;

  // Sending: the announcement, and pieces once the receiver has answered.
  Message announcement();
  void opened();
  struct Part {
    const std::byte* data = nullptr;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;  // 0: none now
  };
  Part next_part(std::size_t piece_bytes);
  bool sent_all() const;

 private:
  Gpu gpu_;
  mutable std::mutex mutex_;
  std::byte* data_ = nullptr;
  bool known_ = false;  // the size and the attributes
  std::uint32_t id_ = 0;
  std::uint64_t size_ = 0;
  std::uint32_t mode_ = 0644;
  std::int64_t mtime_ns_ = 0;
  Ranges claimed_;
  std::uint64_t done_bytes_ = 0;
  bool opened_ = false;
  std::uint64_t next_ = 0;
};

// As receive_files and send_files. `first`: of the streams of the transfer.
void receive_to_gpu(Connection& connection, GpuFile& file, Tally& tally, bool verify);
void send_from_gpu(Connection& connection, GpuFile& file, Tally& tally, bool verify, bool first);

}  // namespace uet::copy
