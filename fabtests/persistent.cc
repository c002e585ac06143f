// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Persistent memory, FI_RMA_PMEM and FI_COMMIT_COMPLETE of fi_rma(3): the completion of a write
// says that the bytes are in the memory of the target.
#include "common.h"

using namespace fabtests;

namespace {

constexpr std::size_t kBytes = 100'000;  // many packets

Setup with_persistent_memory() {
  Setup setup;
  setup.hints = [](fi_info& hints) { hints.caps = FI_MSG | FI_RMA | FI_RMA_PMEM; };
  return setup;
}

// Writes `data` with FI_COMMIT_COMPLETE and waits for the completion.
void commit(Node& node, Bytes& data, const Remote& there) {
  const iovec piece{data.data(), data.size()};
  const fi_rma_iov remote{there.address, data.size(), there.key};
  fi_msg_rma message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = node.peer;
  message.rma_iov = &remote;
  message.rma_iov_count = 1;
  message.context = &data;
  POST(node, fi_writemsg(node.ep, &message, FI_COMMIT_COMPLETE | FI_COMPLETION));
  CHECK(node.completion(node.tx).op_context == &data);
}

// The target looks without a call of libfabric after the completion, so that only the write itself
// can have placed the bytes.
void committed_bytes_are_there(Link& link) {
  Node node(link, with_persistent_memory());
  CHECK((node.info->caps & FI_RMA_PMEM) != 0);
  node.connect();
  if (link.server()) {
    Bytes memory(kBytes);
    fid_mr* mr = nullptr;
    OK(fi_mr_reg(node.domain, memory.data(), kBytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 6,
                 FI_RMA_PMEM, &mr, nullptr));
    const bool virtual_address = (node.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    link.send_value(Remote{virtual_address ? reinterpret_cast<std::uint64_t>(memory.data()) : 0,
                           fi_mr_key(mr)});
    for (std::uint64_t round = 1; round <= 3; ++round) {
      link.receive_value<char>(&node);
      CHECK(same(memory, round));
      link.send_value('s');
    }
    node.meet();
    OK(fi_close(&mr->fid));
  } else {
    const Remote there = link.receive_value<Remote>(&node);
    for (std::uint64_t round = 1; round <= 3; ++round) {
      Bytes data = pattern(kBytes, round);
      commit(node, data, there);
      link.send_value('w');
      link.receive_value<char>(&node);
      Bytes back(kBytes);
      POST(node, fi_read(node.ep, back.data(), kBytes, nullptr, node.peer, there.address, there.key,
                         nullptr));
      node.completion(node.tx);
      CHECK(same(back, round));
    }
    node.meet();
  }
  node.meet();
}

// A region without remote write fails the operation, whatever completion was asked for.
void rights_still_count(Link& link) {
  Node node(link, with_persistent_memory());
  node.connect();
  Bytes memory(64);
  if (link.server()) {
    fid_mr* mr = nullptr;
    OK(fi_mr_reg(node.domain, memory.data(), memory.size(), FI_REMOTE_READ, 0, 7, FI_RMA_PMEM, &mr,
                 nullptr));
    link.send_value(fi_mr_key(mr));
    node.meet();
    CHECK(memory == Bytes(64));
    OK(fi_close(&mr->fid));
  } else {
    const auto key = link.receive_value<std::uint64_t>(&node);
    memory = pattern(64, 1);
    const iovec piece{memory.data(), memory.size()};
    const fi_rma_iov remote{0, memory.size(), key};
    fi_msg_rma message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = node.peer;
    message.rma_iov = &remote;
    message.rma_iov_count = 1;
    POST(node, fi_writemsg(node.ep, &message, FI_COMMIT_COMPLETE | FI_COMPLETION));
    CHECK(node.error(node.tx).err == FI_EACCES);
    node.meet();
  }
  node.meet();
}

constexpr Case kCases[] = {{"committed_bytes_are_there", committed_bytes_are_there},
                           {"rights_still_count", rights_still_count}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
