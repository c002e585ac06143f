// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// base_mr of fi_mr(3): a region derived from another one has bounds and rights of its own.
// Libfabric has the field since 2.0; with older headers the program says so.
#include <algorithm>
#include <cstdio>

#include "common.h"

using namespace fabtests;

namespace {

#if FI_MAJOR_VERSION >= 2
constexpr std::size_t kBytes = 100, kBegin = 10, kPart = 20;

void part_has_bounds_and_rights_of_its_own(Link& link) {
  Setup setup;
  setup.version = FI_VERSION(2, 0);
  Node node(link, setup);
  node.connect();
  if (link.server()) {
    Bytes memory = pattern(kBytes, 1);
    const Region base(node, memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 3);
    const iovec piece{memory.data() + kBegin, kPart};
    fi_mr_attr attr{};
    attr.mr_iov = &piece;
    attr.iov_count = 1;
    attr.access = FI_REMOTE_READ;
    attr.requested_key = 4;
    attr.base_mr = base.mr;
    fid_mr* part = nullptr;
    OK(fi_mr_regattr(node.domain, &attr, 0, &part));
    RETURNS(-FI_EBUSY, fi_close(&base.mr->fid));
    link.send_value(fi_mr_key(part));
    node.meet();
    CHECK(same(memory, 1));
    OK(fi_close(&part->fid));
  } else {
    const auto key = link.receive_value<std::uint64_t>(&node);
    const Bytes all = pattern(kBytes, 1);
    Bytes seen(kPart);
    POST(node, fi_read(node.ep, seen.data(), kPart, nullptr, node.peer, 0, key, nullptr));
    node.completion(node.tx);
    CHECK(std::equal(seen.begin(), seen.end(), all.begin() + kBegin));
    // A byte of the base behind the part.
    POST(node, fi_read(node.ep, seen.data(), 1, nullptr, node.peer, kPart, key, nullptr));
    CHECK(node.error(node.tx).err != 0);
    POST(node, fi_write(node.ep, seen.data(), 1, nullptr, node.peer, 0, key, nullptr));
    CHECK(node.error(node.tx).err == FI_EACCES);
    node.meet();
  }
  node.meet();
}
#else
void part_has_bounds_and_rights_of_its_own(Link& link) {
  if (link.server()) std::printf("skipped: base_mr came with libfabric 2.0\n");
}
#endif

constexpr Case kCases[] = {
    {"part_has_bounds_and_rights_of_its_own", part_has_bounds_and_rights_of_its_own}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
