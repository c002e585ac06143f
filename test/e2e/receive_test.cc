// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Receives beyond the plain one: multi-receive buffers, peek, claim and discard, directed receives,
// unknown senders. Two domains in one process, on loopback.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint64_t kTaggedDirectedRecv = 1ULL << 45;  // libfabric 2.0
constexpr std::uint64_t kTaggedMultiRecv = 1ULL << 46;

// `a` sends to `b`, in order.
class ReceiveCase : public testing::Test {
 protected:
  static void in_order(fi_info& info) {
    info.tx_attr->msg_order = FI_ORDER_SAS;
    info.rx_attr->msg_order = FI_ORDER_SAS;
  }
  void open(std::uint64_t receiver_caps, std::uint64_t cq_flags = 0, std::uint64_t rx_flags = 0) {
    constexpr std::uint64_t kSince2 = kTaggedDirectedRecv | kTaggedMultiRecv;
    a.emplace(SideOptions{.capabilities = FI_MSG | FI_TAGGED, .info = in_order});
    b.emplace(SideOptions{.capabilities = FI_MSG | FI_TAGGED | (receiver_caps & ~kSince2),
                          .info = [=](fi_info& info) {
                            in_order(info);
                            info.caps |= receiver_caps & kSince2;
                            info.rx_attr->op_flags = rx_flags;
                          }});
    sender = a->open_endpoint(0);
    receiver = b->open_endpoint(cq_flags);
    to_receiver = a->insert(*receiver);
  }
  // Sends and waits until the peer's provider has it.
  void send(std::size_t length, std::optional<std::uint64_t> tag = {}) {
    std::memset(out, static_cast<int>('a' + sent++), sizeof out);
    if (tag) {
      ASSERT_EQ(fi_tsend(sender.get(), out, length, nullptr, to_receiver, *tag, nullptr), 0);
    } else {
      ASSERT_EQ(fi_send(sender.get(), out, length, nullptr, to_receiver, nullptr), 0);
    }
    ASSERT_EQ(a->next(*b).error, 0);
  }
  ssize_t receive(void* room, std::size_t length, std::uint64_t flags, void* context,
                  fi_addr_t from = FI_ADDR_UNSPEC) {
    const iovec iov{room, length};
    fi_msg msg{};
    msg.msg_iov = &iov;
    msg.iov_count = length > 0 ? 1 : 0;
    msg.addr = from;
    msg.context = context;
    return fi_recvmsg(receiver.get(), &msg, flags);
  }
  ssize_t receive_tagged(void* room, std::size_t length, std::uint64_t flags, void* context,
                         std::uint64_t tag, fi_addr_t from = FI_ADDR_UNSPEC) {
    const iovec iov{room, length};
    fi_msg_tagged msg{};
    msg.msg_iov = &iov;
    msg.iov_count = length > 0 ? 1 : 0;
    msg.addr = from;
    msg.tag = tag;
    msg.context = context;
    return fi_trecvmsg(receiver.get(), &msg, flags);
  }
  Event received() { return b->next(*a); }

  std::optional<Side> a;
  std::optional<Side> b;
  Owned<fid_ep> sender;
  Owned<fid_ep> receiver;
  fi_addr_t to_receiver = 0;
  char out[512];
  char room[1024] = "";
  int sent = 0;
  fi_context context{};
  fi_context other_context{};
};

TEST_F(ReceiveCase, MultiReceiveHoldsOneMessageAfterTheOther) {
  open(FI_MULTI_RECV);
  std::size_t min = 0;
  std::size_t length = sizeof min;
  ASSERT_EQ(fi_getopt(&receiver->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, &length), 0);
  EXPECT_EQ(min, 16384U);
  min = 100;
  ASSERT_EQ(fi_setopt(&receiver->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof min), 0);
  ASSERT_EQ(receive(room, 350, FI_MULTI_RECV, &context), 0);
  for (int i = 0; i < 3; ++i) {
    send(100);
    const Event event = received();
    EXPECT_EQ(event.context, &context);
    EXPECT_EQ(event.length, 100U);
    EXPECT_EQ(event.buffer, room + 100 * i);
    EXPECT_EQ(room[100 * i + 99], 'a' + i);
    const std::uint64_t released = i == 2 ? FI_MULTI_RECV : 0;
    EXPECT_EQ(event.flags, FI_MSG | FI_RECV | released);
  }
  send(100);  // finds no buffer
  EXPECT_FALSE(b->poll());
}

TEST_F(ReceiveCase, MessageTooLong_BufferReleasedByOwnEntry) {
  open(FI_MULTI_RECV, FI_SELECTIVE_COMPLETION);
  const std::size_t min = 1;
  ASSERT_EQ(fi_setopt(&receiver->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof min), 0);
  ASSERT_EQ(receive(room, 250, FI_MULTI_RECV, &context), 0);
  send(200);  // suppressed
  send(100);
  const Event release = received();
  EXPECT_EQ(release.context, &context);
  EXPECT_EQ(release.flags, FI_MULTI_RECV);
  EXPECT_EQ(release.length, 0U);
  EXPECT_EQ(room[199], 'a');
  ASSERT_EQ(receive(room + 250, 100, FI_MULTI_RECV, &other_context), 0);
  const Event last = received();  // told, although successes are suppressed
  EXPECT_EQ(last.flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
  EXPECT_EQ(room[250], 'b');
}

TEST_F(ReceiveCase, OperationFlags_MakeUntaggedMultiReceives) {
  open(FI_MULTI_RECV, 0, FI_MULTI_RECV);
  const std::size_t min = 10;
  ASSERT_EQ(fi_setopt(&receiver->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof min), 0);
  ASSERT_EQ(fi_recv(receiver.get(), room, 200, nullptr, FI_ADDR_UNSPEC, &context), 0);
  ASSERT_EQ(fi_trecv(receiver.get(), room + 200, 200, nullptr, FI_ADDR_UNSPEC, 1, 0, &context), 0);
  send(100);
  send(100, 1);
  EXPECT_EQ(received().buffer, room);
  EXPECT_EQ(received().flags, FI_TAGGED | FI_RECV);
  send(100, 1);
  EXPECT_FALSE(b->poll());
  send(100);
  EXPECT_EQ(received().buffer, room + 100);
}

TEST_F(ReceiveCase, TaggedMultiReceiveNeedsItsCapability) {
  open(kTaggedMultiRecv);
  ASSERT_EQ(receive_tagged(room, 300, FI_MULTI_RECV, &context, 7), 0);
  send(100, 7);
  EXPECT_EQ(received().flags, FI_TAGGED | FI_RECV | FI_MULTI_RECV);  // 200 are less than 16 KiB
}

TEST_F(ReceiveCase, TaggedMultiReceiveWithoutCapability_Refused) {
  open(FI_MULTI_RECV);
  EXPECT_EQ(receive_tagged(room, 300, FI_MULTI_RECV, &context, 7), -FI_EINVAL);
}

TEST_F(ReceiveCase, CancelledMultiReceiveSaysThatTheBufferIsFree) {
  open(FI_MULTI_RECV);
  ASSERT_EQ(receive(room, sizeof room, FI_MULTI_RECV, &context), 0);
  ASSERT_EQ(fi_cancel(&receiver->fid, &context), 0);
  const Event event = received();
  EXPECT_EQ(event.error, FI_ECANCELED);
  EXPECT_EQ(event.context, &context);
  EXPECT_EQ(event.flags, FI_MSG | FI_RECV | FI_MULTI_RECV);
}

// Many programs meet outside the fabric when they have the messages that they wait for.
TEST_F(ReceiveCase, SendCompletesIfReceiverStopsAfterMessage) {
  open(0);
  for (const std::size_t length : {20'000U, 60'000U}) {
    std::vector<char> data(length, 'd');
    std::vector<char> memory(length);
    ASSERT_EQ(fi_send(sender.get(), data.data(), length, nullptr, to_receiver, nullptr), 0);
    for (int i = 0; i < 3; ++i) fi_cq_read(b->cq.get(), nullptr, 0);  // it comes unexpectedly
    ASSERT_EQ(receive(memory.data(), length, 0, &context), 0);
    EXPECT_EQ(received().length, length);
    EXPECT_EQ(memory, data);
    EXPECT_EQ(a->next(*a).error, 0) << "without a call of the receiver";
  }
}

TEST_F(ReceiveCase, PeekDescribesAMessageAndLeavesIt) {
  open(0);
  ASSERT_EQ(receive_tagged(nullptr, 0, FI_PEEK, &context, 7), 0);
  Event event = received();
  EXPECT_EQ(event.error, FI_ENOMSG);
  EXPECT_EQ(event.context, &context);
  send(100, 7);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(receive_tagged(nullptr, 0, FI_PEEK, &context, 7), 0);
    event = received();
    EXPECT_EQ(event.error, 0);
    EXPECT_EQ(event.flags, FI_TAGGED | FI_RECV);
    EXPECT_EQ(event.length, 100U);
    EXPECT_EQ(event.tag, 7U);
    EXPECT_EQ(event.buffer, nullptr);
  }
  ASSERT_EQ(receive_tagged(room, sizeof room, 0, &context, 7), 0);
  EXPECT_EQ(received().length, 100U);
}

TEST_F(ReceiveCase, ClaimedMessageGoesToItsClaim) {
  open(0);
  send(100);
  send(50);
  ASSERT_EQ(receive(nullptr, 0, FI_PEEK | FI_CLAIM, &context), 0);
  EXPECT_EQ(received().length, 100U);
  ASSERT_EQ(receive(room, 512, 0, &other_context), 0);
  EXPECT_EQ(received().length, 50U);
  EXPECT_EQ(receive(room + 512, 512, FI_CLAIM, &other_context), -FI_ENOENT);
  ASSERT_EQ(receive(room + 512, 512, FI_CLAIM, &context), 0);
  const Event event = received();
  EXPECT_EQ(event.context, &context);
  EXPECT_EQ(event.length, 100U);
  EXPECT_EQ(room[512], 'a');
  EXPECT_EQ(room[0], 'b');
}

TEST_F(ReceiveCase, DiscardedMessagesAreGone) {
  open(0);
  send(100, 7);
  send(100, 8);
  ASSERT_EQ(receive_tagged(nullptr, 0, FI_PEEK | FI_DISCARD, &context, 7), 0);
  EXPECT_EQ(received().error, 0);
  ASSERT_EQ(receive_tagged(nullptr, 0, FI_PEEK | FI_CLAIM, &context, 8), 0);
  EXPECT_EQ(received().error, 0);
  ASSERT_EQ(receive_tagged(nullptr, 0, FI_CLAIM | FI_DISCARD, &context, 8), 0);
  EXPECT_EQ(received().error, 0);
  for (const std::uint64_t tag : {7, 8}) {
    ASSERT_EQ(receive_tagged(nullptr, 0, FI_PEEK, &context, tag), 0);
    EXPECT_EQ(received().error, FI_ENOMSG);
  }
}

TEST_F(ReceiveCase, FlagsThatDoNotGoTogetherAreRefused) {
  open(FI_MULTI_RECV);
  EXPECT_EQ(receive(nullptr, 0, FI_DISCARD, &context), -FI_EINVAL);
  EXPECT_EQ(receive(nullptr, 0, FI_PEEK | FI_CLAIM | FI_DISCARD, &context), -FI_EINVAL);
  EXPECT_EQ(receive(nullptr, 0, FI_PEEK | FI_CLAIM, nullptr), -FI_EINVAL);
  EXPECT_EQ(receive(room, sizeof room, FI_PEEK | FI_MULTI_RECV, &context), -FI_EINVAL);
  EXPECT_EQ(receive(room, sizeof room, FI_INJECT, &context), -FI_EINVAL);
}

TEST_F(ReceiveCase, DirectedPeeksAndReceivesWaitForTheirPeer) {
  open(FI_DIRECTED_RECV);
  const auto stranger = a->open_endpoint(0);
  const fi_addr_t from_stranger = b->insert(*stranger);
  const fi_addr_t from_sender = b->insert(*sender);
  send(100);
  ASSERT_EQ(receive(nullptr, 0, FI_PEEK, &context, from_stranger), 0);
  EXPECT_EQ(received().error, FI_ENOMSG);
  ASSERT_EQ(receive(nullptr, 0, FI_PEEK, &context, from_sender), 0);
  EXPECT_EQ(received().error, 0);
  ASSERT_EQ(receive(room, 512, 0, &context, from_stranger), 0);
  ASSERT_EQ(receive(room + 512, 512, 0, &other_context, from_sender), 0);
  EXPECT_EQ(received().context, &other_context);
}

TEST_F(ReceiveCase, TaggedDirectedOnly_UntaggedTakesAnyPeer) {
  open(kTaggedDirectedRecv);
  const auto stranger = a->open_endpoint(0);
  const fi_addr_t from_stranger = b->insert(*stranger);
  send(100);
  send(100, 7);
  ASSERT_EQ(receive(room, 512, 0, &context, from_stranger), 0);
  EXPECT_EQ(received().length, 100U);
  ASSERT_EQ(receive_tagged(room, 512, 0, &context, 7, from_stranger), 0);
  EXPECT_FALSE(b->poll());
}

TEST_F(ReceiveCase, PeeksAndReleasesDoNotCount) {
  open(FI_MULTI_RECV);
  Owned<fid_cntr> counter;
  fi_cntr_attr attr{};
  attr.events = FI_CNTR_EVENTS_COMP;
  Side::open(counter, "fi_cntr_open",
             [&](auto** out_) { return fi_cntr_open(b->domain.get(), &attr, out_, nullptr); });
  Owned<fid_ep> counted;
  Side::open(counted, "fi_endpoint", [&](auto** out_) {
    return fi_endpoint(b->domain.get(), b->info.get(), out_, nullptr);
  });
  ASSERT_EQ(fi_ep_bind(counted.get(), &b->av->fid, 0), 0);
  ASSERT_EQ(fi_ep_bind(counted.get(), &b->cq->fid, FI_TRANSMIT | FI_RECV), 0);
  ASSERT_EQ(fi_ep_bind(counted.get(), &counter->fid, FI_RECV), 0);
  ASSERT_EQ(fi_enable(counted.get()), 0);
  receiver = std::move(counted);
  to_receiver = a->insert(*receiver);
  ASSERT_EQ(receive(nullptr, 0, FI_PEEK, &context), 0);
  EXPECT_EQ(received().error, FI_ENOMSG);
  send(100);
  ASSERT_EQ(receive(nullptr, 0, FI_PEEK, &context), 0);
  EXPECT_EQ(received().error, 0);
  EXPECT_EQ(fi_cntr_read(counter.get()), 0U);
  EXPECT_EQ(fi_cntr_readerr(counter.get()), 0U);
  const std::size_t min = 1;
  ASSERT_EQ(fi_setopt(&receiver->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &min, sizeof min), 0);
  ASSERT_EQ(receive(room, 250, FI_MULTI_RECV, &context), 0);
  send(200);  // does not fit
  EXPECT_EQ(received().length, 100U);
  EXPECT_EQ(received().flags, FI_MULTI_RECV);
  EXPECT_EQ(fi_cntr_read(counter.get()), 1U);
  receiver.reset();
}

class UnknownSender : public ReceiveCase {
 protected:
  // The error entry of a message whose source is not in the AV.
  fi_cq_err_entry next_error(void* data, std::size_t size) {
    fi_cq_tagged_entry entry{};
    ssize_t result = -FI_EAGAIN;
    while (result == -FI_EAGAIN) {
      result = fi_cq_readfrom(b->cq.get(), &entry, 1, nullptr);
      a->poll();
    }
    EXPECT_EQ(result, -FI_EAVAIL);
    fi_cq_err_entry error{};
    error.err_data = data;
    error.err_data_size = size;
    EXPECT_EQ(fi_cq_readerr(b->cq.get(), &error, 0), 1);
    EXPECT_EQ(error.err, FI_EADDRNOTAVAIL);
    EXPECT_EQ(error.len, 100U);
    EXPECT_EQ(error.op_context, &context);
    return error;
  }
  void answer(const void* name) {
    fi_addr_t back = FI_ADDR_UNSPEC;
    ASSERT_EQ(fi_av_insert(b->av.get(), name, 1, &back, 0, nullptr), 1);
    char answered[8] = "";
    ASSERT_EQ(fi_recv(sender.get(), answered, sizeof answered, nullptr, FI_ADDR_UNSPEC, nullptr),
              0);
    ASSERT_EQ(fi_inject(receiver.get(), "hello", 6, back), 0);
    EXPECT_EQ(a->next(*b).length, 6U);
    EXPECT_STREQ(answered, "hello");
  }
};

TEST_F(UnknownSender, AddressComesInTheCallersBuffer) {
  open(FI_SOURCE | FI_SOURCE_ERR);
  ASSERT_EQ(receive(room, sizeof room, 0, &context), 0);
  send(100);
  std::array<std::byte, 64> name{};
  const fi_cq_err_entry error = next_error(name.data(), name.size());
  EXPECT_EQ(error.err_data, name.data());
  EXPECT_EQ(error.err_data_size, Side::name_of(*sender).size());
  EXPECT_EQ(room[99], 'a');
  answer(name.data());
}

TEST_F(UnknownSender, AddressIsOursUntilTheNextReadWithoutABuffer) {
  open(FI_SOURCE | FI_SOURCE_ERR);
  ASSERT_EQ(receive(room, sizeof room, 0, &context), 0);
  send(100);
  const fi_cq_err_entry error = next_error(nullptr, 0);
  ASSERT_NE(error.err_data, nullptr);
  EXPECT_EQ(error.err_data_size, Side::name_of(*sender).size());
  answer(error.err_data);
}

TEST_F(UnknownSender, SmallBufferGetsAsMuchAsItHolds) {
  open(FI_SOURCE | FI_SOURCE_ERR);
  ASSERT_EQ(receive(room, sizeof room, 0, &context), 0);
  send(100);
  std::array<std::byte, 8> name{};
  EXPECT_EQ(next_error(name.data(), 4).err_data_size, 4U);
  EXPECT_EQ(name[4], std::byte{});
}

TEST_F(UnknownSender, IsNotAvailableButNoErrorWithFiSourceAlone) {
  open(FI_SOURCE);
  ASSERT_EQ(receive(room, sizeof room, 0, &context), 0);
  send(100);
  fi_addr_t source = 0;
  EXPECT_EQ(Side::next(*b->cq, *a, &source).error, 0);
  EXPECT_EQ(source, FI_ADDR_NOTAVAIL);
}

TEST_F(UnknownSender, InTheAvItIsNamed) {
  open(FI_SOURCE | FI_SOURCE_ERR);
  const fi_addr_t known = b->insert(*sender);
  ASSERT_EQ(receive(room, sizeof room, 0, &context), 0);
  send(100);
  fi_addr_t source = FI_ADDR_UNSPEC;
  EXPECT_EQ(Side::next(*b->cq, *a, &source).error, 0);
  EXPECT_EQ(source, known);
}

// ---- messages that their sender gives up -------------------------------------------------------

// SES-113, SES-122: what was placed stays, the receive ends with FI_EIO, and nothing else is hurt.
// FI_SOURCE_ERR does not turn the end of a message into a message from an unknown sender.
class AbandonedMessage : public ReceiveCase, public testing::WithParamInterface<std::uint64_t> {
 protected:
  static constexpr std::size_t kBytes = 64 << 20;  // more than may be under way
  // Part of it has arrived when it is cancelled.
  void send_and_cancel(const std::vector<char>& message) {
    ASSERT_EQ(fi_send(sender.get(), message.data(), message.size(), nullptr, to_receiver, &context),
              0);
    do {
      ASSERT_FALSE(a->poll().has_value());
      ASSERT_FALSE(b->poll().has_value());
    } while (read_counter(*b->domain, "nic_packets_received") == 0);
    ASSERT_EQ(fi_cancel(&sender->fid, &context), 0);
    const Event event = a->next(*b);
    EXPECT_EQ(event.error, FI_ECANCELED);
    EXPECT_EQ(event.context, &context);
  }
  void expect_next_message_arrives() {
    ASSERT_EQ(receive(room, sizeof room, 0, &other_context), 0);
    send(100);
    const Event event = received();
    EXPECT_EQ(event.context, &other_context);
    EXPECT_EQ(event.length, 100U);
  }
};

TEST_P(AbandonedMessage, Ses113_Ses122_EndsItsReceiveWithAnErrorAndNoOther) {
  open(GetParam());
  const std::vector<char> message(kBytes, 'm');
  std::vector<char> into(kBytes, 0);
  ASSERT_EQ(receive(into.data(), into.size(), 0, &into), 0);
  send_and_cancel(message);
  const Event event = received();
  EXPECT_EQ(event.error, FI_EIO);
  EXPECT_EQ(event.context, &into);
  EXPECT_GT(event.length, 0U);
  EXPECT_LT(event.length, kBytes);
  EXPECT_TRUE(std::all_of(into.begin(), into.begin() + static_cast<std::ptrdiff_t>(event.length),
                          [](char c) { return c == 'm'; }));
  into.assign(kBytes, 0);  // it is the application's again
  if (GetParam() != (FI_SOURCE | FI_SOURCE_ERR)) expect_next_message_arrives();
  EXPECT_FALSE(b->poll().has_value());
  EXPECT_EQ(std::count(into.begin(), into.end(), 0), static_cast<std::ptrdiff_t>(kBytes));
}

TEST_P(AbandonedMessage, Ses113_UnexpectedOneIsForgotten) {
  open(GetParam());
  send_and_cancel(std::vector<char>(kBytes, 'm'));
  if (GetParam() != (FI_SOURCE | FI_SOURCE_ERR)) return expect_next_message_arrives();
  ASSERT_EQ(receive(nullptr, 0, FI_PEEK, &context), 0);
  EXPECT_EQ(received().error, FI_ENOMSG);
}

INSTANTIATE_TEST_SUITE_P(Capabilities, AbandonedMessage,
                         testing::Values(0, FI_SOURCE | FI_SOURCE_ERR), [](const auto& info) {
                           return std::string(info.param == 0 ? "None" : "SourceErr");
                         });

// Memory alone bounds unexpected messages, a million of them for 256 MiB and as many in proportion
// for the 16 MiB of the default: the receive of the last of many comes first.
TEST_F(ReceiveCase, ManyUnexpectedMessagesWaitForTheirReceives) {
  constexpr std::uint64_t kMessages = 62'500;
  open(0);
  for (std::uint64_t tag = 0; tag < kMessages; ++tag) {
    ssize_t result = 0;
    while ((result = fi_tinject(sender.get(), &tag, sizeof tag, to_receiver, tag)) == -FI_EAGAIN) {
      a->poll();
      b->poll();
    }
    ASSERT_EQ(result, 0);
  }
  for (std::uint64_t tag = kMessages; tag-- > 0;) {
    std::uint64_t in = 0;
    ASSERT_EQ(receive_tagged(&in, sizeof in, 0, &in, tag), 0);
    const Event event = received();
    ASSERT_EQ(event.error, 0);
    ASSERT_EQ(event.tag, tag);
    ASSERT_EQ(in, tag);
  }
}

// rx_attr.size is each endpoint's own, however many others have as many receives.
TEST_F(ReceiveCase, EachEndpointHasItsOwnReceiveQueue) {
  open(0);
  const std::size_t size = b->info->rx_attr->size;
  const std::size_t endpoints = 8192 / size + 2;
  std::vector<Owned<fid_ep>> receivers;
  std::uint64_t in64 = 0;
  for (std::size_t i = 0; i < endpoints; ++i) {
    receivers.push_back(b->open_endpoint(0));
    for (std::size_t posted = 0; posted < size; ++posted) {
      ASSERT_EQ(fi_trecv(receivers.back().get(), &in64, sizeof in64, nullptr, FI_ADDR_UNSPEC,
                         posted, 0, nullptr),
                0)
          << "receive " << posted << " of endpoint " << i;
    }
  }
  for (std::size_t i = 0; i < endpoints; ++i) {
    const fi_addr_t to = a->insert(*receivers[i]);
    const std::uint64_t out64 = i + 1;
    ASSERT_EQ(fi_tsend(sender.get(), &out64, sizeof out64, nullptr, to, size - 1, nullptr), 0);
    ASSERT_EQ(a->next(*b).error, 0);
    ASSERT_EQ(b->next(*a).error, 0);
    EXPECT_EQ(in64, out64) << "the last receive of endpoint " << i;
  }
}

// tx_attr.size is each endpoint's own, however many others wait for a peer that makes no progress.
TEST_F(ReceiveCase, EachEndpointHasItsOwnTransmitQueue) {
  open(0);
  const std::size_t size = a->info->tx_attr->size;
  const std::size_t endpoints = 8192 / size + 2;
  std::vector<Owned<fid_ep>> senders;
  std::uint64_t out64 = 0;
  for (std::size_t i = 0; i < endpoints; ++i) {
    senders.push_back(a->open_endpoint(0));
    for (std::size_t posted = 0; posted < size; ++posted) {
      ASSERT_EQ(
          fi_tsend(senders.back().get(), &out64, sizeof out64, nullptr, to_receiver, 7, nullptr), 0)
          << "send " << posted << " of endpoint " << i;
    }
  }
  for (std::size_t i = 0; i < endpoints * size; ++i) ASSERT_EQ(a->next(*b).error, 0);
}

}  // namespace
}  // namespace uet::e2e
