// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_tsend, fi_trecv and their relatives: each fills in one call and hands it to the endpoint.
#include <rdma/fi_tagged.h>

#include "objects/endpoint_fid.h"
#include "ops.h"

namespace uet::prov {
namespace {

ses::SendOp tagged(std::uint64_t tag) {
  ses::SendOp op;
  op.tag = tag;
  return op;
}

ssize_t tagged_recv(fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
                    std::uint64_t tag, std::uint64_t ignore, void* context) noexcept {
  const iovec iov{buffer, length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().rx().receive(
      {&iov, 1, from, context, handle.tagged_rx_flags(), true, tag, ignore, &desc});
}

ssize_t tagged_recvv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
                     std::uint64_t tag, std::uint64_t ignore, void* context) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().rx().receive(
      {iov, count, from, context, handle.tagged_rx_flags(), true, tag, ignore, desc});
}

ssize_t tagged_recvmsg(fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().rx().receive({msg->msg_iov, msg->iov_count, msg->addr, msg->context,
                                         handle.rx_msg_flags(flags), true, msg->tag, msg->ignore,
                                         msg->desc});
}

ssize_t tagged_send(fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
                    std::uint64_t tag, void* context) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, context, handle.tx_flags(), {}, &desc},
                                     tagged(tag));
}

ssize_t tagged_sendv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
                     std::uint64_t tag, void* context) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({iov, count, to, context, handle.tx_flags(), {}, desc},
                                     tagged(tag));
}

ssize_t tagged_sendmsg(fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  TxCall call{msg->msg_iov, msg->iov_count, msg->addr, msg->context, handle.tx_msg_flags(flags),
              {},           msg->desc};
  if ((flags & FI_REMOTE_CQ_DATA) != 0) call.data = msg->data;
  return handle.endpoint().tx().post(call, tagged(msg->tag));
}

ssize_t tagged_inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to,
                      std::uint64_t tag) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, nullptr, handle.inject_flags(), {}},
                                     tagged(tag));
}

ssize_t tagged_senddata(fid_ep* ep, const void* buffer, std::size_t length, void* desc,
                        std::uint64_t data, fi_addr_t to, std::uint64_t tag,
                        void* context) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, context, handle.tx_flags(), data, &desc},
                                     tagged(tag));
}

ssize_t tagged_injectdata(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                          fi_addr_t to, std::uint64_t tag) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, nullptr, handle.inject_flags(), data},
                                     tagged(tag));
}

constexpr fi_ops_tagged kTaggedOps = {
    .size = sizeof(fi_ops_tagged),
    .recv = tagged_recv,
    .recvv = tagged_recvv,
    .recvmsg = tagged_recvmsg,
    .send = tagged_send,
    .sendv = tagged_sendv,
    .sendmsg = tagged_sendmsg,
    .inject = tagged_inject,
    .senddata = tagged_senddata,
    .injectdata = tagged_injectdata,
};

}  // namespace

fi_ops_tagged tagged_ops = kTaggedOps;
fi_ops_tagged tx_tagged_ops = transmit_only(kTaggedOps);
fi_ops_tagged rx_tagged_ops = receive_only(kTaggedOps);

}  // namespace uet::prov
