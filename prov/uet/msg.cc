// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_send, fi_recv and their relatives: each fills in one call and hands it to the endpoint.
#include "endpoint.h"

namespace uet::prov {
namespace {

constexpr std::optional<std::uint64_t> kUntagged;

ssize_t msg_recv(fid_ep* ep, void* buffer, std::size_t length, void*, fi_addr_t from,
                 void* context) noexcept {
  const iovec iov{buffer, length};
  Endpoint& endpoint = Endpoint::from(ep);
  return endpoint.receive({&iov, 1, from, context, endpoint.rx_flags()});
}

ssize_t msg_recvv(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t from,
                  void* context) noexcept {
  Endpoint& endpoint = Endpoint::from(ep);
  return endpoint.receive({iov, count, from, context, endpoint.rx_flags()});
}

ssize_t msg_recvmsg(fid_ep* ep, const fi_msg* msg, std::uint64_t flags) noexcept {
  Endpoint& endpoint = Endpoint::from(ep);
  return endpoint.receive(
      {msg->msg_iov, msg->iov_count, msg->addr, msg->context, endpoint.rx_msg_flags(flags)});
}

ssize_t msg_send(fid_ep* ep, const void* buffer, std::size_t length, void*, fi_addr_t to,
                 void* context) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  Endpoint& endpoint = Endpoint::from(ep);
  return endpoint.send({&iov, 1, to, context, endpoint.tx_flags(), {}}, kUntagged);
}

ssize_t msg_sendv(fid_ep* ep, const iovec* iov, void**, std::size_t count, fi_addr_t to,
                  void* context) noexcept {
  Endpoint& endpoint = Endpoint::from(ep);
  return endpoint.send({iov, count, to, context, endpoint.tx_flags(), {}}, kUntagged);
}

ssize_t msg_sendmsg(fid_ep* ep, const fi_msg* msg, std::uint64_t flags) noexcept {
  Endpoint& endpoint = Endpoint::from(ep);
  TxCall call{
      msg->msg_iov, msg->iov_count, msg->addr, msg->context, endpoint.tx_msg_flags(flags), {}};
  if ((flags & FI_REMOTE_CQ_DATA) != 0) call.data = msg->data;
  return endpoint.send(call, kUntagged);
}

ssize_t msg_inject(fid_ep* ep, const void* buffer, std::size_t length, fi_addr_t to) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  Endpoint& endpoint = Endpoint::from(ep);
  return endpoint.send({&iov, 1, to, nullptr, endpoint.inject_flags(), {}}, kUntagged);
}

ssize_t msg_senddata(fid_ep* ep, const void* buffer, std::size_t length, void*, std::uint64_t data,
                     fi_addr_t to, void* context) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  Endpoint& endpoint = Endpoint::from(ep);
  return endpoint.send({&iov, 1, to, context, endpoint.tx_flags(), data}, kUntagged);
}

ssize_t msg_injectdata(fid_ep* ep, const void* buffer, std::size_t length, std::uint64_t data,
                       fi_addr_t to) noexcept {
  const iovec iov{const_cast<void*>(buffer), length};
  Endpoint& endpoint = Endpoint::from(ep);
  return endpoint.send({&iov, 1, to, nullptr, endpoint.inject_flags(), data}, kUntagged);
}

}  // namespace

fi_ops_msg msg_ops = {
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

}  // namespace uet::prov
