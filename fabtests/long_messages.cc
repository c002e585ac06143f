// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Messages and RMA that are longer than one message on the wire (fi_endpoint(3), max_msg_size): one
// completion each, every byte in its place. FABTESTS_LONG_BYTES is the length; uet takes a wire
// message of 1 MiB unless FI_UET_TUNING is set, so that a short test is a long message.
//
// For the real thing, 4.5 GiB with wire messages of 4 GiB - 4 KiB (takes 4.5 GiB of memory):
//   FI_UET_TUNING= FABTESTS_LONG_BYTES=4831838208 long_messages
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common.h"

using namespace fabtests;

namespace {

// The source is one block of memory, mapped again and again. Its length divides no power of two, so
// that a piece in the wrong place shows.
constexpr std::size_t kBlock = 63 * 4096;
constexpr std::size_t kMapped = 256 * kBlock;  // by one mapping

std::size_t length() {
  const char* asked = std::getenv("FABTESTS_LONG_BYTES");
  return asked != nullptr ? std::stoul(asked) : 40'000'000;
}

void* address_space(std::size_t bytes, int protection) {
  void* const memory =
      mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  return memory;
}

class Source {
 public:
  Source() {
    const int file = memfd_create("block", 0);
    CHECK(file >= 0 && ftruncate(file, kMapped) == 0);
    memory_ = static_cast<std::byte*>(address_space(length_ + kMapped, PROT_NONE));
    for (std::size_t at = 0; at < length_; at += kMapped) {
      void* const part =
          mmap(memory_ + at, kMapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
      CHECK(part == memory_ + at);
    }
    close(file);
    const Bytes block = pattern(kBlock, 1);
    for (std::size_t at = 0; at < kMapped; at += kBlock) {
      std::memcpy(memory_ + at, block.data(), kBlock);
    }
  }
  ~Source() { munmap(memory_, length_ + kMapped); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  std::byte* data() { return memory_; }

 private:
  const std::size_t length_ = length();
  std::byte* memory_ = nullptr;
};

class Target {
 public:
  Target() : memory_(static_cast<std::byte*>(address_space(length_, PROT_READ | PROT_WRITE))) {}
  ~Target() { munmap(memory_, length_); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  std::byte* data() { return memory_; }
  std::span<std::byte> bytes() { return {memory_, length_}; }
  void check() {
    const Bytes block = pattern(kBlock, 1);
    for (std::size_t at = 0; at < length_; at += kBlock) {
      const std::size_t count = std::min(kBlock, length_ - at);
      CHECK(std::memcmp(memory_ + at, block.data(), count) == 0);
    }
  }

 private:
  const std::size_t length_ = length();
  std::byte* const memory_;
};

// A completion of something that takes longer than the patience of common.h.
fi_cq_tagged_entry last_completion(Node& node, fid_cq* queue) {
  for (;;) {
    fi_cq_tagged_entry entry{};
    const ssize_t result = fi_cq_read(queue, &entry, 1);
    if (result == 1) return entry;
    CHECK(result == -FI_EAGAIN);
    node.progress();
  }
}

// One side says something by a message, the other waits for it for as long as it takes.
void say(Node& node) { POST(node, fi_inject(node.ep, "x", 1, node.peer)); }
void hear(Node& node) {
  char byte = 0;
  POST(node, fi_recv(node.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
  last_completion(node, node.rx);
}

class Timer {
 public:
  explicit Timer(const char* what) : what_(what) {}
  ~Timer() {
    const std::chrono::duration<double> time = Clock::now() - start_;
    std::printf("%s of %zu bytes: %.2f s, %.2f GB/s\n", what_, length(), time.count(),
                static_cast<double>(length()) / time.count() / 1e9);
    std::fflush(stdout);
  }

 private:
  const char* what_;
  const Clock::time_point start_ = Clock::now();
};

// A test that was asked for may take longer than others.
void be_patient() {
  if (std::getenv("FABTESTS_LONG_BYTES") != nullptr) alarm(0);
}

void send_in_pieces(Link& link) {
  be_patient();
  Node node(link);
  node.connect();
  if (link.server()) {
    Target target;
    POST(node, fi_trecv(node.ep, target.data(), length(), nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr));
    node.meet();
    CHECK(last_completion(node, node.rx).len == length());
    target.check();
    CHECK(node.stays_empty(node.rx));
    say(node);
  } else {
    Source source;
    node.meet();
    {
      const Timer timer("a send");
      POST(node, fi_tsend(node.ep, source.data(), length(), nullptr, node.peer, 5, nullptr));
      last_completion(node, node.tx);
    }
    hear(node);
  }
}

void rma_in_pieces(Link& link) {
  be_patient();
  Node node(link);
  node.connect();
  if (link.server()) {
    Target target;
    const Region region(node, target.bytes(), FI_REMOTE_READ | FI_REMOTE_WRITE, 3);
    link.send_value(region.remote);
    hear(node);
    target.check();
    say(node);
    hear(node);
  } else {
    const auto remote = link.receive_value<Remote>(&node);
    {
      Source source;
      const Timer timer("a write");
      POST(node, fi_write(node.ep, source.data(), length(), nullptr, node.peer, remote.address,
                          remote.key, nullptr));
      last_completion(node, node.tx);
    }
    say(node);
    hear(node);
    if (std::getenv("FABTESTS_LONG_BYTES") == nullptr) {  // else both sides would need the memory
      Target back;
      POST(node, fi_read(node.ep, back.data(), length(), nullptr, node.peer, remote.address,
                         remote.key, nullptr));
      last_completion(node, node.tx);
      back.check();
    }
    say(node);
  }
  node.meet();
}

}  // namespace

int main(int argc, char** argv) {
  setenv("FI_UET_TUNING", "rma_piece_bytes=1048576", 0);
  const Case cases[] = {{"send_in_pieces", send_in_pieces}, {"rma_in_pieces", rma_in_pieces}};
  return run_cases(argc, argv, cases);
}
