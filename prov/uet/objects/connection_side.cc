// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/connection_side.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "errors.h"
#include "objects/av_fid.h"
#include "objects/engine.h"
#include "settings/address_format.h"
#include "settings/getinfo.h"

namespace uet::prov {
namespace {

// fi_connect has no length: the format says it.
std::size_t address_length(std::uint32_t addr_format, const void* address) {
  switch (addr_format) {
    case FI_ADDR_STR:
      return std::strlen(static_cast<const char*>(address)) + 1;
    case FI_SOCKADDR_IN:
      return sizeof(sockaddr_in);
    case FI_SOCKADDR_IN6:
      return sizeof(sockaddr_in6);
    default:
      return av::UetAddress::kBytes;
  }
}

std::span<const std::byte> as_bytes(const void* data, std::size_t length) {
  return {static_cast<const std::byte*>(data), data != nullptr ? length : 0};
}

}  // namespace

int ConnectionSide::check(struct fid& self, std::size_t length) {
  if (eq_.eq() == nullptr)
    return refuse_endpoint(
        -FI_ENOEQ, "fi_connect, fi_accept: endpoint: no EQ is bound; call fi_ep_bind first");
  if (length > cm::kMaxData) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_connect, fi_accept: endpoint: too much connection data; pass at "
                           "most FI_OPT_CM_DATA_SIZE");
  }
  if (phase_ != Phase::Idle) {
    return refuse_endpoint(phase_ == Phase::Connected ? -FI_EISCONN : -FI_EOPBADSTATE,
                           "fi_connect, fi_accept: endpoint: called before; open another endpoint");
  }
  fid_ = &self;
  return 0;
}

int ConnectionSide::connect(struct fid& self, const void* address, const void* data,
                            std::size_t length) {
  if (has_request_) {
    return refuse_endpoint(
        -FI_EOPBADSTATE,
        "fi_connect: endpoint: opened with the info of an FI_CONNREQ; call fi_accept");
  }
  if (address == nullptr)
    return refuse_endpoint(
        -FI_EINVAL, "fi_connect: endpoint: the address is NULL; pass the address of the peer");
  const std::uint32_t addr_format = identity_.format().addr_format();
  const auto to = AddressFormat::decode(addr_format, address, address_length(addr_format, address));
  if (!to || !av::check_destination(av::complete(*to, first_udp_port()))) {
    return refuse_endpoint(
        -FI_EINVAL, "fi_connect: endpoint: the address is not of addr_format; pass one that is");
  }
  Engine& engine = state_.engine;
  const Guard guard(engine.lock());
  if (const int result = check(self, length); result != 0) return result;
  shown_peer_ = av::complete(*to, first_udp_port());
  id_ = hub_.connect(*this, identity_.name(), identity_.job(), shown_peer_, as_bytes(data, length));
  phase_ = Phase::Pending;
  hub_.run(clock_now());
  return 0;
}

int ConnectionSide::accept(struct fid& self, const void* data, std::size_t length) {
  if (!has_request_) {
    return refuse_endpoint(
        -FI_EOPBADSTATE,
        "fi_accept: endpoint: opened without the info of an FI_CONNREQ; open it with that info");
  }
  Engine& engine = state_.engine;
  const Guard guard(engine.lock());
  if (const int result = check(self, length); result != 0) return result;
  if (!request_)
    return refuse_endpoint(
        -FI_ECONNABORTED,
        "fi_accept: endpoint: the peer has given up; wait for another FI_CONNREQ");
  if (request_->job != identity_.job()) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_accept: endpoint: the peer has another auth_key; use one auth_key at both ends");
  }
  // Data of the peer may arrive before its confirmation does.
  peer_ = shown_peer_ = request_->endpoint;
  state_.connect(peer_at(peer_, peer_.start_resource_index));
  id_ = hub_.accept(*this, *request_, identity_.name(), identity_.job(), as_bytes(data, length));
  phase_ = Phase::Pending;
  hub_.run(clock_now());
  return 0;
}

int ConnectionSide::get_peer(void* address, std::size_t* length) const {
  const Guard guard(state_.engine.lock());
  if (phase_ != Phase::Connected)
    return refuse_endpoint(-FI_ENOTCONN,
                           "fi_getpeer: endpoint: not connected; wait for FI_CONNECTED");
  const std::vector<std::byte> bytes = identity_.format().encode(shown_peer_);
  const std::size_t room = *length;
  *length = bytes.size();
  if (room > 0 && address != nullptr) {
    std::memcpy(address, bytes.data(), std::min(room, bytes.size()));
  }
  return room < bytes.size() ? -FI_ETOOSMALL : 0;
}

// Ends posted receives with an error. Sends need nothing: PDS ends each of them in time.
void ConnectionSide::go_down() noexcept UET_NO_THREAD_ANALYSIS {
  phase_ = Phase::Down;
  id_ = 0;
  state_.has_peer = false;
  state_.peer.reset();
  state_.ended = true;
  if (state_.context != nullptr && state_.config.shared == nullptr) state_.cancel_receives();
}

void ConnectionSide::end() {
  if (phase_ != Phase::Connected) return;  // the peer was faster
  write(FI_SHUTDOWN, {});
  const cm::ConnectionId id = id_;
  go_down();
  hub_.shutdown(id);
  hub_.run(clock_now());
}

void ConnectionSide::leave() noexcept {
  if (phase_ == Phase::Pending || phase_ == Phase::Connected) {
    phase_ = Phase::Down;
    hub_.shutdown(id_);
    hub_.run(clock_now());
  }
  if (fid_ != nullptr && eq_.eq() != nullptr) eq_.eq()->forget(*fid_);
}

void ConnectionSide::note_failure() noexcept {
  if (phase_ == Phase::Connected) hub_.wake(id_);
}

void ConnectionSide::write(std::uint32_t event, const cm::Data& data) {
  std::vector<std::byte> entry(offsetof(fi_eq_cm_entry, data) + data.length);
  fi_eq_cm_entry head{};
  head.fid = fid_;
  std::memcpy(entry.data(), &head, offsetof(fi_eq_cm_entry, data));
  std::memcpy(entry.data() + offsetof(fi_eq_cm_entry, data), data.bytes.data(), data.length);
  eq_.eq()->write(event, entry.data(), entry.size());
}

void ConnectionSide::write_failure(const cm::ConnectionEvent& event) {
  fi_eq_err_entry error{};
  error.fid = fid_;
  error.context = fid_->context;
  error.err = event.failure == cm::Failure::Aborted ? FI_ECONNABORTED : FI_ECONNREFUSED;
  error.prov_errno = cm_prov_errno(event.failure);
  eq_.eq()->write_error(error, event.data.view());
}

void ConnectionSide::enter_connected(const cm::ConnectionEvent& event) UET_NO_THREAD_ANALYSIS {
  write(FI_CONNECTED, event.data);
  peer_ = event.endpoint;
  state_.peer = peer_at(peer_, peer_.start_resource_index);
  state_.has_peer = true;
  state_.connect(*state_.peer);
  phase_ = Phase::Connected;
}

void ConnectionSide::on_event(const cm::ConnectionEvent& event) {
  switch (event.kind) {
    case cm::ConnectionEvent::Kind::Connected:
      return enter_connected(event);
    case cm::ConnectionEvent::Kind::Failed:
      write_failure(event);
      return go_down();
    case cm::ConnectionEvent::Kind::Shutdown:
      write(FI_SHUTDOWN, {});
      return go_down();
  }
}

void ConnectionSide::on_wake() {
  write(FI_SHUTDOWN, {});
  const cm::ConnectionId id = id_;
  go_down();
  hub_.shutdown(id);  // the peer may live: only its PDC is known to be lost
}

}  // namespace uet::prov
