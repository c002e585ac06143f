// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Life of shared contexts.
#include "objects/shared_ctx.h"

#include <algorithm>

#include "objects/domain.h"
#include "objects/endpoint.h"
#include "objects/post_linked.h"
#include "ops.h"
#include "settings/getinfo.h"
#include "settings/hints.h"

namespace uet::prov {
namespace {

int close_stx(fid* fid) noexcept { return Stx::from(fid).close(); }

fi_ops stx_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_stx,
    .bind = no_bind,
    .control = no_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_ep stx_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = not_supported<&fi_ops_ep::cancel>,
    .getopt = not_supported<&fi_ops_ep::getopt>,
    .setopt = not_supported<&fi_ops_ep::setopt>,
    .tx_ctx = not_supported<&fi_ops_ep::tx_ctx>,
    .rx_ctx = not_supported<&fi_ops_ep::rx_ctx>,
    .rx_size_left = not_supported<&fi_ops_ep::rx_size_left>,
    .tx_size_left = not_supported<&fi_ops_ep::tx_size_left>,
};

}  // namespace

Stx::Stx(Domain& domain, const fi_tx_attr& attr, void* context)
    : fid_stx{},
      engine_(domain.engine()),
      hold_(domain.references()),
      slots_(std::make_shared<TxSlots>(attr.size != 0 ? attr.size : engine_.params().tx_size)) {
  fid.fclass = FI_CLASS_STX_CTX;
  fid.context = context;
  fid.ops = &stx_fid_ops;
  ops = &stx_ops;
}

int Stx::close() noexcept {
  delete this;
  return 0;
}

int stx_open(fid_domain* domain, fi_tx_attr* attr, fid_stx** stx, void* context) noexcept {
  return guarded([&] {
    Domain& parent = Domain::from(domain);
    const Engine& engine = parent.engine();
    if (engine.dead()) return -FI_EOPNOTSUPP;
    const fi_tx_attr preset{};
    const fi_tx_attr& asked = attr != nullptr ? *attr : preset;
    const Limits limits =
        limits_for(engine.params(), engine.payload_mtu(), rdm_of(engine.params()));
    if (const char* why = refuse_tx(asked, limits)) {
      FI_WARN(&provider, FI_LOG_EP_CTRL,
              "fi_stx_context: %s: not supported; use attributes of fi_getinfo\n", why);
      return -FI_EINVAL;
    }
    *stx = create<Stx>(parent, asked, context);
    return 0;
  });
}

// ---- receives ----------------------------------------------------------------------------------

namespace {

int close_srx(fid* fid) noexcept { return Srx::from(fid).close(); }

int srx_control(fid* fid, int command, void* argument) noexcept {
  return Srx::from(fid).control(command, argument);
}

ssize_t srx_cancel(fid* fid, void* context) noexcept { return Srx::from(fid).cancel(context); }

int srx_getopt(fid* fid, int level, int name, void* value, std::size_t* length) noexcept {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return Srx::from(fid).get_option(name, value, length);
}

int srx_setopt(fid* fid, int level, int name, const void* value, std::size_t length) noexcept {
  if (level != FI_OPT_ENDPOINT) return -FI_ENOPROTOOPT;
  return Srx::from(fid).set_option(name, value, length);
}

ssize_t srx_recv(fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
                 void* context) noexcept {
  const iovec iov{buffer, length};
  Srx& srx = Srx::from(ep);
  return srx.receive({&iov, 1, from, context, srx.op_flags(), false, 0, 0, &desc});
}

ssize_t srx_recvv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
                  void* context) noexcept {
  Srx& srx = Srx::from(ep);
  return srx.receive({iov, count, from, context, srx.op_flags(), false, 0, 0, desc});
}

ssize_t srx_recvmsg(fid_ep* ep, const fi_msg* msg, std::uint64_t flags) noexcept {
  return Srx::from(ep).receive(
      {msg->msg_iov, msg->iov_count, msg->addr, msg->context, flags, false, 0, 0, msg->desc});
}

ssize_t srx_trecv(fid_ep* ep, void* buffer, std::size_t length, void* desc, fi_addr_t from,
                  std::uint64_t tag, std::uint64_t ignore, void* context) noexcept {
  const iovec iov{buffer, length};
  Srx& srx = Srx::from(ep);
  return srx.receive({&iov, 1, from, context, srx.tagged_op_flags(), true, tag, ignore, &desc});
}

ssize_t srx_trecvv(fid_ep* ep, const iovec* iov, void** desc, std::size_t count, fi_addr_t from,
                   std::uint64_t tag, std::uint64_t ignore, void* context) noexcept {
  Srx& srx = Srx::from(ep);
  return srx.receive({iov, count, from, context, srx.tagged_op_flags(), true, tag, ignore, desc});
}

ssize_t srx_trecvmsg(fid_ep* ep, const fi_msg_tagged* msg, std::uint64_t flags) noexcept {
  return Srx::from(ep).receive({msg->msg_iov, msg->iov_count, msg->addr, msg->context, flags, true,
                                msg->tag, msg->ignore, msg->desc});
}

fi_ops srx_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_srx,
    .bind = no_bind,
    .control = srx_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_ep srx_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = srx_cancel,
    .getopt = srx_getopt,
    .setopt = srx_setopt,
    .tx_ctx = not_supported<&fi_ops_ep::tx_ctx>,
    .rx_ctx = not_supported<&fi_ops_ep::rx_ctx>,
    .rx_size_left = not_supported<&fi_ops_ep::rx_size_left>,
    .tx_size_left = not_supported<&fi_ops_ep::tx_size_left>,
};

fi_ops_cm srx_cm_ops = name_only(not_supported<&fi_ops_cm::getname>);

fi_ops_msg srx_msg_ops = receive_only(fi_ops_msg{
    .size = sizeof(fi_ops_msg),
    .recv = srx_recv,
    .recvv = srx_recvv,
    .recvmsg = srx_recvmsg,
});

fi_ops_tagged srx_tagged_ops = receive_only(fi_ops_tagged{
    .size = sizeof(fi_ops_tagged),
    .recv = srx_trecv,
    .recvv = srx_trecvv,
    .recvmsg = srx_trecvmsg,
});

// Of receives that their owner posts and cancels.
fi_ops_ep peer_srx_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = not_supported<&fi_ops_ep::cancel>,
    .getopt = not_supported<&fi_ops_ep::getopt>,
    .setopt = not_supported<&fi_ops_ep::setopt>,
    .tx_ctx = not_supported<&fi_ops_ep::tx_ctx>,
    .rx_ctx = not_supported<&fi_ops_ep::rx_ctx>,
    .rx_size_left = not_supported<&fi_ops_ep::rx_size_left>,
    .tx_size_left = not_supported<&fi_ops_ep::tx_size_left>,
};

// So many messages at a time, as SES has states for messages.
constexpr std::size_t kPeerMessages = ses::Parameters{}.rx_messages;

}  // namespace

Srx::Srx(Domain& domain, const fi_rx_attr& attr, void* context)
    : fid_ep{},
      engine_(domain.engine()),
      hold_(domain.references()),
      op_flags_(attr.op_flags),
      size_(attr.size != 0 ? attr.size : engine_.params().rx_size),
      settings_(ReceiveSettings::of(attr.caps)) {
  set_ops();
  fid.context = context;
  const Guard guard(engine_.lock());
  queue_ = engine_.fep().ses().open_receive_queue(size_, settings_.tagged_directed, *this);
}

Srx::Srx(Domain& domain, PeerSrx& owner)
    : fid_ep{},
      engine_(domain.engine()),
      hold_(domain.references()),
      op_flags_(0),
      size_(kPeerMessages),
      peer_(std::make_unique<PeerReceives>(*this, owner, kPeerMessages)) {
  set_ops();
  const Guard guard(engine_.lock());
  queue_ = engine_.fep().ses().open_receive_queue(size_, true, *this, peer_.get());
}

int Srx::open_linked() {
  EngineLink* const link = engine_.link();
  if (link == nullptr) return 0;
  const Guard guard(engine_.lock());
  const auto opened = link->open_queue(size_, settings_.tagged_directed, *this);
  if (!opened) return to_fi_errno(opened.error());
  linked_ = opened.value();
  return 0;
}

void Srx::set_ops() noexcept {
  const bool own = peer_ == nullptr;
  fid.fclass = FI_CLASS_SRX_CTX;
  fid.ops = &srx_fid_ops;
  ops = own ? &srx_ops : &peer_srx_ops;
  cm = &srx_cm_ops;
  msg = own ? &srx_msg_ops : &no_msg;
  rma = &no_rma;
  tagged = own ? &srx_tagged_ops : &no_tagged;
  atomic = &no_atomics;
  collective = &no_collectives;
}

int Srx::close() noexcept {
  if (references_.any()) return -FI_EBUSY;
  if (!engine_.dead()) {
    const Guard guard(engine_.lock());
    if (EngineLink* const link = engine_.link(); link != nullptr && linked_) {
      link->close_context(*linked_);
    }
    engine_.fep().ses().close_receive_queue(*queue_);
  }
  delete this;
  return 0;
}

ssize_t Srx::receive(const RxCall& call) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  const auto post = [&](const RxSource& source, Time now) {
    if (EngineLink* const link = engine_.link()) {
      return hand_over_to(*link, *linked_, engine_, call, settings_, source, now);
    }
    return hand_over(engine_, *queue_, call, settings_, source, now);
  };
  return post_receive(
      engine_, call, settings_, [this] { return av(); }, post);
}

ssize_t Srx::cancel(void* operation_context) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  const Guard guard(engine_.lock());
  EngineLink* const link = engine_.link();
  const auto result = link != nullptr
                          ? link->cancel(*linked_, operation_context)
                          : engine_.fep().ses().cancel(*queue_, operation_context, clock_now());
  return result ? 0 : to_fi_errno(result.error());
}

int Srx::control(int command, void* argument) noexcept {
  if (engine_.dead()) return -FI_EOPNOTSUPP;
  if (command == FI_ENABLE) return 0;  // it works from the start
  if (command != FI_GETOPSFLAG && command != FI_SETOPSFLAG) return -FI_ENOSYS;
  auto* flags = static_cast<std::uint64_t*>(argument);
  const bool of_receives = flags != nullptr && (*flags & (FI_TRANSMIT | FI_RECV)) == FI_RECV;
  if (!of_receives || (command == FI_SETOPSFLAG && (*flags & ~(kRxOpFlags | FI_RECV)) != 0)) {
    FI_WARN(&provider, FI_LOG_EP_CTRL,
            "fi_control: shared receive context: wrong operation flags; pass FI_RECV and flags of "
            "receives\n");
    return -FI_EINVAL;
  }
  if (command == FI_GETOPSFLAG) {
    *flags = op_flags_;
  } else {
    op_flags_ = *flags & ~static_cast<std::uint64_t>(FI_RECV);
  }
  return 0;
}

int Srx::get_option(int name, void* value, std::size_t* length) const noexcept {
  if (name == FI_OPT_RX_SIZE) return give_option(size_, value, length);
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  return give_option(settings_.min_multi_receive, value, length);
}

int Srx::set_option(int name, const void* value, std::size_t length) noexcept {
  if (name != FI_OPT_MIN_MULTI_RECV) return -FI_ENOPROTOOPT;
  const auto wanted = read_option<std::size_t>(value, length);
  if (!wanted) return -FI_EINVAL;
  settings_.min_multi_receive = *wanted;  // counts for buffers posted from now on
  return 0;
}

const AvFid* Srx::av() const { return endpoints_.empty() ? nullptr : endpoints_.front()->av(); }

void Srx::join(Endpoint& endpoint) {
  endpoints_.push_back(&endpoint);
  hold_places();
}

// The endpoint's places in its CQ go with it.
void Srx::leave(Endpoint& endpoint) noexcept {
  const auto at = std::find(endpoints_.begin(), endpoints_.end(), &endpoint);
  if (at == endpoints_.end()) return;
  if (at == endpoints_.begin()) held_ = 0;
  endpoints_.erase(at);
  hold_places();
}

void Srx::hold_places() noexcept {
  if (endpoints_.empty()) return;
  while (held_ < owed_ && endpoints_.front()->reporter().reserve_receive()) ++held_;
}

bool Srx::reserve_receive() noexcept {
  if (!endpoints_.empty()) {
    if (!endpoints_.front()->reporter().reserve_receive()) return false;
    ++held_;
  }
  ++owed_;
  return true;
}

void Srx::release_receive() noexcept {
  --owed_;
  if (held_ == 0) return;
  --held_;
  endpoints_.front()->reporter().release_receive();
}

void Srx::complete(const ses::Completion& completion) noexcept {
  if (peer_ != nullptr) {  // a receive that has lost its message, and its place with it
    if (endpoints_.empty()) return peer_->vanished(completion.context);
    EpReporter& reporter = endpoints_.front()->reporter();
    reporter.reserve_receive();
    return reporter.complete(completion);
  }
  --owed_;
  if (held_ == 0) return;
  --held_;
  endpoints_.front()->reporter().complete(completion);
}

int srx_open(fid_domain* domain, fi_rx_attr* attr, fid_ep** srx, void* context) noexcept {
  return guarded([&] {
    Domain& parent = Domain::from(domain);
    if (parent.engine().dead()) return -FI_EOPNOTSUPP;
    const fi_rx_attr preset{};
    const fi_rx_attr& asked = attr != nullptr ? *attr : preset;
    if ((asked.op_flags & FI_PEER) != 0) {
      auto* peer = parent.is_peer() ? peer_context<PeerSrxContext>(context) : nullptr;
      if (peer == nullptr || peer->srx == nullptr || !is_complete(peer->srx->owner_ops)) {
        FI_WARN(&provider, FI_LOG_EP_CTRL,
                "fi_srx_context: FI_PEER needs a domain with FI_PEER and a fi_peer_srx_context "
                "of the libfabric in use\n");
        return -FI_EINVAL;
      }
      *srx = create<Srx>(parent, *peer->srx);
      return 0;
    }
    if (const char* why = refuse_rx(asked, Limits{})) {
      FI_WARN(&provider, FI_LOG_EP_CTRL,
              "fi_srx_context: %s: not supported; use attributes of fi_getinfo\n", why);
      return -FI_EINVAL;
    }
    Srx* const opened = create<Srx>(parent, asked, context);
    const int result = opened->open_linked();
    if (result == 0) {
      *srx = opened;
    } else {
      opened->close();
    }
    return result;
  });
}

}  // namespace uet::prov
