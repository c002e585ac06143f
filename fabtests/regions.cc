// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Memory regions, fi_mr(3): in every mr_mode that an application may offer, in every form of the
// call, with keys that may be used once, and gone when they are closed. Other memory may be mapped
// at the address of a closed region and registered.
#include <sys/mman.h>

#include <algorithm>
#include <array>

#include "common.h"

using namespace fabtests;

namespace {

constexpr std::uint64_t kAccess = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr int kBasic = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;

// An application that can do all this must be served, whatever of it the provider wants done.
void modes(Link& link) {
  for (const int mode : {0, kBasic, kBasic | FI_MR_LOCAL, kBasic | FI_MR_ENDPOINT,
                         FI_MR_ENDPOINT | FI_MR_RMA_EVENT, FI_MR_PROV_KEY, FI_MR_VIRT_ADDR}) {
    Setup setup;
    setup.hints = [mode](fi_info& hints) { hints.domain_attr->mr_mode = mode; };
    Node node(link, setup);
    CHECK((node.info->domain_attr->mr_mode & ~mode) == 0);
    node.connect();
    Bytes memory(5000);
    const Region region(node, memory, kAccess | FI_WRITE | FI_READ | FI_SEND | FI_RECV, 17);
    link.send_value(region.remote);
    const Remote there = link.receive_value<Remote>(&node);
    if (link.server()) {
      node.meet();
      CHECK(same(memory, 3));
    } else {
      memory = pattern(5000, 3);
      // A descriptor may always be given; with FI_MR_LOCAL it has to be.
      POST(node, fi_write(node.ep, memory.data(), 5000, fi_mr_desc(region.mr), node.peer,
                          there.address, there.key, nullptr));
      node.completion(node.tx);
      node.meet();
    }
    node.meet();
  }
}

// fi_mr_regv and fi_mr_regattr make the same as fi_mr_reg.
void forms(Link& link) {
  Node node(link);
  node.connect();
  Bytes memory(3000);
  const iovec piece{memory.data(), memory.size()};
  fid_mr* region = nullptr;
  for (int form = 0; form < 2; ++form) {
    if (form == 0) {
      OK(fi_mr_regv(node.domain, &piece, 1, kAccess, 0, 5, 0, &region, nullptr));
    } else {
      fi_mr_attr attr{};
      attr.mr_iov = &piece;
      attr.iov_count = 1;
      attr.access = kAccess;
      attr.requested_key = 5;
      OK(fi_mr_regattr(node.domain, &attr, 0, &region));
    }
    const bool virtual_address = (node.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    link.send_value(Remote{virtual_address ? reinterpret_cast<std::uint64_t>(memory.data()) : 0,
                           fi_mr_key(region)});
    const Remote there = link.receive_value<Remote>(&node);
    if (link.server()) {
      node.meet();
      CHECK(same(memory, 4));
      memory.assign(3000, std::byte{0});
    } else {
      const Bytes data = pattern(3000, 4);
      POST(node, fi_write(node.ep, data.data(), 3000, nullptr, node.peer, there.address, there.key,
                          nullptr));
      node.completion(node.tx);
      node.meet();
    }
    node.meet();
    OK(fi_close(&region->fid));
  }
}

// A key that the application has chosen may be in use once. When its region is closed, the key is
// free, and no peer reaches the memory.
void keys(Link& link) {
  Node node(link);
  node.connect();
  Bytes memory = pattern(100, 1);
  if (link.server()) {
    Remote remote{};
    {
      const Region region(node, memory, kAccess, 9);
      remote = region.remote;
      CHECK(remote.key == 9);
      fid_mr* second = nullptr;
      RETURNS(-FI_ENOKEY,
              fi_mr_reg(node.domain, memory.data(), 100, kAccess, 0, 9, 0, &second, nullptr));
    }
    { const Region again(node, memory, kAccess, 9); }
    link.send_value(remote);
    node.meet();
    CHECK(same(memory, 1));
  } else {
    const Remote gone = link.receive_value<Remote>(&node);
    Bytes data(100);
    POST(node,
         fi_write(node.ep, data.data(), 100, nullptr, node.peer, gone.address, gone.key, &data));
    CHECK(node.error(node.tx).op_context == &data);
    node.meet();
  }
  node.meet();
}

// Maps `bytes` of zeroed pages. `at`, if not nullptr: the address of a mapping that they replace.
std::span<std::byte> map(void* at, std::size_t bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (at != nullptr ? MAP_FIXED : 0);
  void* const memory = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  CHECK(memory != MAP_FAILED);
  return {static_cast<std::byte*>(memory), bytes};
}

// Maps other pages at an address that was registered before, and registers them. The peer's reads
// and the writes from there must use the new pages.
void mapped_anew(Link& link) {
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  Node node(link);
  node.connect();
  std::span<std::byte> memory = map(nullptr, 2 * kBytes);
  for (std::uint64_t round = 0; round < 4; ++round) {
    const std::span<std::byte> ours = memory.first(kBytes);
    const std::span<std::byte> arrives = memory.last(kBytes);
    const Bytes fresh = pattern(kBytes, 2 * round + (link.server() ? 1 : 0));
    std::ranges::copy(fresh, ours.begin());
    {
      const Region region(node, memory, kAccess | FI_WRITE | FI_READ, 17);
      link.send_value(region.remote);
      const Remote there = link.receive_value<Remote>(&node);
      void* const descriptor = fi_mr_desc(region.mr);
      if (!link.server()) {
        POST(node, fi_read(node.ep, arrives.data(), kBytes, descriptor, node.peer, there.address,
                           there.key, nullptr));
        node.completion(node.tx);
        CHECK(same(arrives, 2 * round + 1));
        POST(node, fi_write(node.ep, ours.data(), kBytes, descriptor, node.peer,
                            there.address + kBytes, there.key, nullptr));
        node.completion(node.tx);
        node.meet();
      } else {
        node.meet();
        CHECK(same(arrives, 2 * round));
      }
      node.meet();
    }
    memory = map(memory.data(), 2 * kBytes);
  }
  CHECK(munmap(memory.data(), memory.size()) == 0);
}

constexpr Case kCases[] = {
    {"modes", modes}, {"forms", forms}, {"keys", keys}, {"mapped_anew", mapped_anew}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
