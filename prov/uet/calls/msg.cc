// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_send, fi_recv and their relatives: each fills in one call and hands it to the endpoint.
#include "objects/endpoint_fid.h"
#include "ops.h"

namespace uet::prov {
namespace {

ssize_t msg_recv(fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
                 void* context) noexcept {
  const iovec iov{buffer, length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().rx().receive(
      {&iov, 1, from, context, handle.rx_flags(), false, 0, 0, &desc});
}

ssize_t msg_recvv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
                  void* context) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().rx().receive(
      {iov, count, from, context, handle.rx_flags(), false, 0, 0, desc});
}

ssize_t msg_recvmsg(fid_ep* ep, const fi_msg* msg, std::uint64_t flags) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().rx().receive({msg->msg_iov, msg->iov_count, msg->addr, msg->context,
                                         handle.rx_msg_flags(flags), false, 0, 0, msg->desc});
}

ssize_t msg_send(fid_ep* ep, const void* buffer, std::size_t length, void* desc, fi_addr_t to,
                 void* context) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, context, handle.tx_flags(), {}, &desc},
                                     ses::SendOp{});
}

ssize_t msg_sendv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t to,
                  void* context) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({iov, count, to, context, handle.tx_flags(), {}, desc},
                                     ses::SendOp{});
}

ssize_t msg_sendmsg(fid_ep* ep, const fi_msg* msg, std::uint64_t flags) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  TxCall call{msg->msg_iov, msg->iov_count, msg->addr, msg->context, handle.tx_msg_flags(flags),
              {},           msg->desc};
  if ((flags & FI_REMOTE_CQ_DATA) != 0) call.data = msg->data;
  return handle.endpoint().tx().post(call, ses::SendOp{});
}

ssize_t msg_inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, nullptr, handle.inject_flags(), {}},
                                     ses::SendOp{});
}

ssize_t msg_senddata(fid_ep* ep, const void* buffer, std::size_t length, void* desc,
                     std::uint64_t data, fi_addr_t to, void* context) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, context, handle.tx_flags(), data, &desc},
                                     ses::SendOp{});
}

ssize_t msg_injectdata(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                       fi_addr_t to) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  const EndpointFid& handle = EndpointFid::from(ep);
  return handle.endpoint().tx().post({&iov, 1, to, nullptr, handle.inject_flags(), data},
                                     ses::SendOp{});
}

constexpr fi_ops_msg kMsgOps = {
    .size = sizeof(fi_ops_msg),
    .recv = msg_recv,
    .recvv = msg_recvv,
    .recvmsg = msg_recvmsg,
    .send = msg_send,
    .sendv = msg_sendv,
    .sendmsg = msg_sendmsg,
    .inject = msg_inject,
    .senddata = msg_senddata,
    .injectdata = msg_injectdata,
};

}  // namespace

fi_ops_msg msg_ops = kMsgOps;
fi_ops_msg tx_msg_ops = transmit_only(kMsgOps);
fi_ops_msg rx_msg_ops = receive_only(kMsgOps);

}  // namespace uet::prov
