// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_peer(3): a provider that owns completion queue and receives, here the test, imports them into
// uet. Skipped under a libfabric whose peer interface uet does not know; there nothing is offered.
#include "../../prov/uet/peer.h"

#include <gtest/gtest.h>

#include <deque>
#include <list>
#include <string>

#include "objects.h"

namespace uet::e2e {
namespace {

using prov::PeerCq;
using prov::PeerCqContext;
using prov::PeerCqOwnerOps;
using prov::PeerMatchAttr;
using prov::PeerRxEntry;
using prov::PeerSrx;
using prov::PeerSrxContext;
using prov::PeerSrxOwnerOps;

constexpr std::uint64_t kPeerCaps = FI_TAGGED | FI_PEER | FI_AV_USER_ID;
constexpr fi_addr_t kUserId = 0x5500;

// The state of an owner: completions, posted receives, messages that have found none.
struct Owner {
  struct Receive : PeerRxEntry {
    iovec room{};
    void* desc_room = nullptr;
    bool posted = false;
  };

  Owner() {
    cq.fid.context = this;
    cq.owner_ops = &cq_ops;
    srx.ep_fid.fid.context = this;
    srx.owner_ops = &srx_ops;
  }
  static Owner& of(const PeerSrx* srx) { return *static_cast<Owner*>(srx->ep_fid.fid.context); }
  static Owner& of(const PeerCq* cq) { return *static_cast<Owner*>(cq->fid.context); }

  static ssize_t write(PeerCq* cq, void* context, std::uint64_t flags, std::size_t length,
                       void* buffer, std::uint64_t data, std::uint64_t tag, fi_addr_t) {
    of(cq).events.push_back(Event{context, flags, length, data, tag, 0, buffer});
    return 0;
  }
  static ssize_t writeerr(PeerCq* cq, const void* entry) {
    const auto& error = *static_cast<const fi_cq_err_entry*>(entry);
    of(cq).events.push_back(Event{error.op_context, error.flags, error.len, error.data, error.tag,
                                  error.err, error.buf});
    return 0;
  }
  static int get_msg(PeerSrx*, PeerMatchAttr*, PeerRxEntry**) { return -FI_ENOSYS; }
  static int get_tag(PeerSrx* srx, PeerMatchAttr* attr, PeerRxEntry** entry) {
    Owner& owner = of(srx);
    owner.asked.push_back(*attr);
    if (owner.on_ask) owner.on_ask();
    for (Receive& receive : owner.entries) {
      if (!receive.posted || receive.tag != attr->tag) continue;
      receive.posted = false;
      *entry = &receive;
      return 0;
    }
    Receive& record = owner.entries.emplace_back();
    record.addr = attr->addr;
    record.tag = attr->tag;
    record.flags = FI_TAGGED | FI_RECV;
    *entry = &record;
    return -FI_ENOENT;
  }
  static int queue_tag(PeerRxEntry* entry) {
    queue_of->waiting.push_back(static_cast<Receive*>(entry));
    return 0;
  }
  static void no_addresses(PeerSrx*, fi_addr_t (*)(PeerRxEntry*)) {}
  static void free_entry(PeerRxEntry* entry) {
    ++queue_of->freed;
    queue_of->entries.remove_if([&](const Receive& one) { return &one == entry; });
  }

  Receive& make(void* memory, std::size_t length, std::uint64_t tag, void* context) {
    Receive& receive = entries.emplace_back();
    fill(receive, memory, length, tag, context);
    receive.posted = true;
    return receive;
  }
  static void fill(Receive& receive, void* memory, std::size_t length, std::uint64_t tag,
                   void* context) {
    receive.room = {memory, length};
    receive.iov = &receive.room;
    receive.desc = &receive.desc_room;
    receive.count = 1;
    receive.tag = tag;
    receive.flags |= FI_TAGGED | FI_RECV | FI_COMPLETION;
    receive.context = context;
  }

  static inline Owner* queue_of = nullptr;  // the entries do not say
  static inline PeerCqOwnerOps cq_ops{sizeof(PeerCqOwnerOps), write, writeerr};
  static inline PeerSrxOwnerOps srx_ops{
      sizeof(PeerSrxOwnerOps), get_msg, get_tag, queue_tag, queue_tag, no_addresses, free_entry};
  PeerCq cq{};
  PeerSrx srx{};
  std::deque<Event> events;
  std::vector<PeerMatchAttr> asked;
  std::function<void()> on_ask;
  std::list<Receive> entries;
  std::deque<Receive*> waiting;
  int freed = 0;
};

// `owned_` gets its messages through the owner, from `sender_`.
class Peer : public testing::Test {
 protected:
  void SetUp() override {
    if (!prov::has_peer_interface()) {
      GTEST_SKIP() << "libfabric " << FI_MAJOR(fi_version()) << "." << FI_MINOR(fi_version())
                   << " has no peer interface that uet knows";
    }
    Owner::queue_of = &owner_;
    owned_.emplace(SideOptions{.capabilities = kPeerCaps});
    fi_cq_attr cq_attr{};
    cq_attr.flags = FI_PEER;
    PeerCqContext cq_context{sizeof cq_context, &owner_.cq};
    Side::open(cq_, "fi_cq_open", [&](auto** out) {
      return fi_cq_open(owned_->domain.get(), &cq_attr, out, &cq_context);
    });
    fi_rx_attr rx_attr{};
    rx_attr.op_flags = FI_PEER;
    PeerSrxContext srx_context{sizeof srx_context, &owner_.srx};
    Side::open(srx_, "fi_srx_context", [&](auto** out) {
      return fi_srx_context(owned_->domain.get(), &rx_attr, out, &srx_context);
    });
    Side::open(ep_, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(owned_->domain.get(), owned_->info.get(), out, nullptr);
    });
    check(fi_ep_bind(ep_.get(), &owned_->av->fid, 0), "bind AV");
    check(fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
    check(fi_ep_bind(ep_.get(), &srx_->fid, 0), "bind SRX");
    check(fi_enable(ep_.get()), "fi_enable");
    sender_.emplace();
    sender_ep_ = sender_->open_endpoint(0);
    to_owned_ = sender_->insert(*ep_);
  }
  void know_the_sender() {
    from_sender_ = kUserId;
    require(fi_av_insert(owned_->av.get(), Side::name_of(*sender_ep_).data(), 1, &from_sender_,
                         FI_AV_USER_ID, nullptr) == 1,
            "fi_av_insert");
  }
  // The sender cancels a long message with tag 4 that the owner knows of.
  void take_back_a_message_that_waits() {
    know_the_sender();
    const std::string longer(std::size_t{8} << 20, 'y');
    ASSERT_EQ(
        fi_tsend(sender_ep_.get(), longer.data(), longer.size(), nullptr, to_owned_, 4, nullptr),
        0);
    run_until([&] { return !owner_.waiting.empty(); });
    ASSERT_EQ(fi_cancel(&sender_ep_->fid, nullptr), 0);
    std::optional<Event> sent;
    run_until([&] { return (sent = sender_->poll()).has_value(); });
  }
  template <class Done>
  void run_until(Done done) {
    const Clock::time_point start = Clock::now();
    while (!done()) {
      ASSERT_EQ(fi_cq_read(cq_.get(), nullptr, 0), 0);
      fi_cq_read(sender_->cq.get(), nullptr, 0);
      ASSERT_LT(Clock::now() - start, kDeadline);
    }
  }
  void send(const std::string& text, std::uint64_t tag) {
    check(fi_tsend(sender_ep_.get(), text.data(), text.size(), nullptr, to_owned_, tag, nullptr),
          "fi_tsend");
  }
  Event next() {
    run_until([&] { return !owner_.events.empty(); });
    const Event event = owner_.events.front();
    owner_.events.pop_front();
    return event;
  }

  Owner owner_;
  std::optional<Side> owned_;
  Owned<fid_cq> cq_;
  Owned<fid_ep> srx_;
  Owned<fid_ep> ep_;
  std::optional<Side> sender_;
  Owned<fid_ep> sender_ep_;
  fi_addr_t to_owned_ = 0;
  fi_addr_t from_sender_ = FI_ADDR_UNSPEC;
  const std::string text_ = std::string(9000, 'x') + "end";
  std::string memory_ = std::string(9003, '.');
  int context_ = 0;
};

TEST(PeerInterface, IsOfferedOnlyWhereItIsKnown) {
  const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup(provider().c_str());
  hints->caps = kPeerCaps;
  fi_info* found = nullptr;
  const int result = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found);
  EXPECT_EQ(result, prov::has_peer_interface() ? 0 : -FI_ENODATA);
  const std::unique_ptr<fi_info, Node::FreeInfo> info(found);
  Side plain;
  EXPECT_EQ(plain.info->caps & (FI_PEER | FI_AV_USER_ID), 0U);
  Owner owner;
  fi_cq_attr attr{};
  attr.flags = FI_PEER;
  PeerCqContext context{sizeof context, &owner.cq};
  fid_cq* cq = nullptr;
  EXPECT_EQ(fi_cq_open(plain.domain.get(), &attr, &cq, &context), -FI_EINVAL);
  fi_rx_attr rx{};
  rx.op_flags = FI_PEER;
  PeerSrxContext srx_context{sizeof srx_context, &owner.srx};
  fid_ep* srx = nullptr;
  EXPECT_EQ(fi_srx_context(plain.domain.get(), &rx, &srx, &srx_context), -FI_EINVAL);
}

TEST_F(Peer, OwnedReceive_CompletesInTheOwnersQueue) {
  know_the_sender();
  owner_.make(memory_.data(), memory_.size(), 5, &context_);
  send(text_, 5);
  const Event event = next();
  EXPECT_EQ(event.context, &context_);
  EXPECT_EQ(event.error, 0);
  EXPECT_EQ(event.tag, 5U);
  EXPECT_EQ(event.length, text_.size());
  EXPECT_EQ(event.flags & (FI_TAGGED | FI_RECV), FI_TAGGED | FI_RECV);
  EXPECT_EQ(memory_, text_);
  EXPECT_EQ(owner_.freed, 1);
  ASSERT_EQ(owner_.asked.size(), 1U);
  EXPECT_EQ(owner_.asked[0].addr, kUserId);
  EXPECT_EQ(owner_.asked[0].msg_size, text_.size());
}

TEST_F(Peer, MessageWaitsUntilTheOwnerStartsIt) {
  know_the_sender();
  send(text_, 6);
  run_until([&] { return !owner_.waiting.empty(); });
  Owner::Receive& entry = *owner_.waiting.front();
  EXPECT_EQ(entry.addr, kUserId);
  EXPECT_EQ(entry.msg_size, text_.size());
  Owner::fill(entry, memory_.data(), memory_.size(), 6, &context_);
  ASSERT_EQ(owner_.srx.peer_ops->start_tag(&entry), 0);
  EXPECT_EQ(next().context, &context_);
  EXPECT_EQ(memory_, text_);
  EXPECT_EQ(owner_.freed, 1);
}

TEST_F(Peer, DiscardedMessageCompletesAtItsSenderOnly) {
  know_the_sender();
  send(text_, 7);
  run_until([&] { return !owner_.waiting.empty(); });
  ASSERT_EQ(owner_.srx.peer_ops->discard_tag(owner_.waiting.front()), 0);
  std::optional<Event> sent;
  run_until([&] { return (sent = sender_->poll()).has_value(); });
  EXPECT_EQ(sent->error, 0);
  EXPECT_TRUE(owner_.events.empty());
  EXPECT_EQ(owner_.freed, 0) << "that is the owner's";
}

TEST_F(Peer, TruncationIsAnErrorInTheOwnersQueue) {
  know_the_sender();
  owner_.make(memory_.data(), 100, 5, &context_);
  send(text_, 5);
  const Event event = next();
  EXPECT_EQ(event.error, FI_ETRUNC);
  EXPECT_EQ(event.context, &context_);
}

TEST_F(Peer, UnknownSenderWaitsForAReceive) {
  send(text_, 8);
  run_until([&] { return owner_.freed >= 2; });  // asked for, and refused
  EXPECT_TRUE(owner_.waiting.empty());
  owner_.make(memory_.data(), memory_.size(), 8, &context_);
  EXPECT_EQ(next().context, &context_);
  EXPECT_EQ(memory_, text_);
  EXPECT_EQ(owner_.asked.back().addr, FI_ADDR_UNSPEC);
}

TEST_F(Peer, OwnerMayRegisterMemoryWhenItIsAsked) {
  know_the_sender();
  Owned<fid_mr> region;
  owner_.on_ask = [&] {
    Side::open(region, "fi_mr_reg", [&](auto** out) {
      return fi_mr_reg(owned_->domain.get(), memory_.data(), memory_.size(), FI_RECV, 0, 0, 0, out,
                       nullptr);
    });
  };
  owner_.make(memory_.data(), memory_.size(), 9, &context_);
  send(text_, 9);
  EXPECT_EQ(next().context, &context_);
}

TEST_F(Peer, StartOfAMessageWhoseSenderIsGoneIsAnError) {
  take_back_a_message_that_waits();
  Owner::Receive& entry = *owner_.waiting.front();
  Owner::fill(entry, memory_.data(), memory_.size(), 4, &context_);
  ASSERT_EQ(owner_.srx.peer_ops->start_tag(&entry), 0);
  const Event event = next();
  EXPECT_NE(event.error, 0);
  EXPECT_EQ(event.context, &context_);
  EXPECT_EQ(owner_.freed, 1);
}

TEST_F(Peer, LostMessageWithoutEndpoint_FreesTheReceive) {
  take_back_a_message_that_waits();
  ep_.reset();
  Owner::Receive& entry = *owner_.waiting.front();
  Owner::fill(entry, memory_.data(), memory_.size(), 4, &context_);
  ASSERT_EQ(owner_.srx.peer_ops->start_tag(&entry), 0);
  EXPECT_EQ(owner_.freed, 1);
  EXPECT_TRUE(owner_.events.empty());
}

TEST_F(Peer, SendsCompleteInTheOwnersQueue) {
  const fi_addr_t to_sender = owned_->insert(*sender_ep_);
  std::string into(4, '.');
  ASSERT_EQ(
      fi_trecv(sender_ep_.get(), into.data(), into.size(), nullptr, FI_ADDR_UNSPEC, 1, 0, nullptr),
      0);
  ASSERT_EQ(fi_tsend(ep_.get(), "back", 4, nullptr, to_sender, 1, &context_), 0);
  const Event event = next();
  EXPECT_EQ(event.context, &context_);
  EXPECT_EQ(event.flags & (FI_TAGGED | FI_SEND), FI_TAGGED | FI_SEND);
}

TEST_F(Peer, TheOwnerReadsAndPostsNotWe) {
  fi_cq_err_entry error{};
  EXPECT_EQ(fi_cq_readerr(cq_.get(), &error, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_cq_sread(cq_.get(), nullptr, 0, nullptr, 0), -FI_ENOSYS);
  EXPECT_EQ(fi_trecv(srx_.get(), nullptr, 0, nullptr, 0, 0, 0, nullptr), -FI_ENOSYS);
  EXPECT_NE(fi_trecv(ep_.get(), nullptr, 0, nullptr, 0, 0, 0, nullptr), 0);
}

TEST_F(Peer, ClosesWithMessagesThatWait) {
  know_the_sender();
  send(text_, 6);
  run_until([&] { return !owner_.waiting.empty(); });
  ep_.reset();
  srx_.reset();
  EXPECT_TRUE(owner_.events.empty());
}

}  // namespace
}  // namespace uet::e2e
