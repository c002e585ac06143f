// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_read, fi_write and their relatives: each fills in one call and hands it to the endpoint.
#include <rdma/fi_rma.h>

#include <algorithm>

#include "objects/endpoint_fid.h"
#include "provider.h"

namespace uet::prov {
namespace {

ses::RmaOp rma_op(ses::Kind kind, std::uint64_t remote, std::uint64_t key) {
  ses::RmaOp op;
  op.kind = kind;
  op.remote_offset = remote;
  op.key = Rkey{key};
  return op;
}

ses::RmaOp write_op(std::uint64_t remote, std::uint64_t key) {
  return rma_op(ses::Kind::Write, remote, key);
}

// Of a read, where there is nothing to copy for FI_INJECT.
ssize_t post_read(const EndpointFid& handle, TxCall call, std::uint64_t remote, std::uint64_t key) {
  call.flags &= ~static_cast<std::uint64_t>(FI_INJECT);
  return handle.endpoint().tx().post(call, rma_op(ses::Kind::Read, remote, key));
}

// The ranges are copied: the application may forget them while a triggered operation waits.
RangesOp ranges_op(ses::Kind kind, const fi_msg_rma& msg) {
  RangesOp op;
  op.kind = kind;
  op.range_count = msg.rma_iov_count;
  std::copy_n(msg.rma_iov, msg.rma_iov_count, op.ranges.begin());
  return op;
}

ssize_t rma_read(fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
                 std::uint64_t remote, std::uint64_t key, void* context) noexcept {
  const iovec iov{buffer, length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return post_read(handle, {&iov, 1, from, context, handle.tx_flags(), {}, &desc}, remote, key);
}

ssize_t rma_readv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
                  std::uint64_t remote, std::uint64_t key, void* context) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  return post_read(handle, {iov, count, from, context, handle.tx_flags(), {}, desc}, remote, key);
}

// Both sides of a transfer are equally long.
bool is_valid(const fi_msg_rma& msg) {
  std::optional<std::size_t> local;
  if (msg.iov_count <= ses::kMaxIoSlices) local = total_bytes(msg.msg_iov, msg.iov_count);
  bool valid = local && msg.rma_iov != nullptr && msg.rma_iov_count > 0 &&
               msg.rma_iov_count <= kMaxRmaRanges;
  std::size_t remote = 0;
  for (std::size_t i = 0; valid && i < msg.rma_iov_count; ++i) {
    valid = !__builtin_add_overflow(remote, msg.rma_iov[i].len, &remote);
  }
  if (valid && remote == *local) return true;
  FI_WARN(&provider, FI_LOG_EP_DATA,
          "fi_readmsg, fi_writemsg: remote ranges: too many, or not as long as the local buffers; "
          "use 1 to rma_iov_limit ranges\n");
  return false;
}

ssize_t rma_readmsg(fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) noexcept {
  if (!is_valid(*msg)) return -FI_EINVAL;
  const EndpointFid& handle = EndpointFid::from(ep);
  TxCall call{msg->msg_iov, msg->iov_count, msg->addr, msg->context, handle.tx_msg_flags(flags),
              {},           msg->desc};
  if (msg->rma_iov_count == 1)
    return post_read(handle, call, msg->rma_iov->addr, msg->rma_iov->key);
  call.flags &= ~static_cast<std::uint64_t>(FI_INJECT);
  return handle.endpoint().tx().post(call, ranges_op(ses::Kind::Read, *msg));
}

ssize_t rma_write(fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
                  std::uint64_t remote, std::uint64_t key, void* context) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, context, handle.tx_flags(), {}, &desc},
                                     write_op(remote, key));
}

ssize_t rma_writev(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
                   std::uint64_t remote, std::uint64_t key, void* context) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({iov, count, to, context, handle.tx_flags(), {}, desc},
                                     write_op(remote, key));
}

ssize_t rma_writemsg(fid_ep* ep, const fi_msg_rma* msg, std::uint64_t flags) noexcept {
  if (!is_valid(*msg)) return -FI_EINVAL;
  const EndpointFid& handle = EndpointFid::from(ep);
  TxCall call{msg->msg_iov, msg->iov_count, msg->addr, msg->context, handle.tx_msg_flags(flags),
              {},           msg->desc};
  if ((flags & FI_REMOTE_CQ_DATA) != 0) call.data = msg->data;
  if (msg->rma_iov_count > 1) {
    return handle.endpoint().tx().post(call, ranges_op(ses::Kind::Write, *msg));
  }
  return handle.endpoint().tx().post(call, write_op(msg->rma_iov->addr, msg->rma_iov->key));
}

ssize_t rma_inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to,
                   std::uint64_t remote, std::uint64_t key) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, nullptr, handle.inject_flags(), {}},
                                     write_op(remote, key));
}

ssize_t rma_writedata(fid_ep* ep, const void* buffer, std::size_t length, void* desc,
                      std::uint64_t data, fi_addr_t to, std::uint64_t remote, std::uint64_t key,
                      void* context) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, context, handle.tx_flags(), data, &desc},
                                     write_op(remote, key));
}

ssize_t rma_injectdata(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                       fi_addr_t to, std::uint64_t remote, std::uint64_t key) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, nullptr, handle.inject_flags(), data},
                                     write_op(remote, key));
}

}  // namespace

fi_ops_rma rma_ops = {
    .size = sizeof(fi_ops_rma),
    .read = rma_read,
    .readv = rma_readv,
    .readmsg = rma_readmsg,
    .write = rma_write,
    .writev = rma_writev,
    .writemsg = rma_writemsg,
    .inject = rma_inject,
    .writedata = rma_writedata,
    .injectdata = rma_injectdata,
};

}  // namespace uet::prov
