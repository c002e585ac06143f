// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What GIN of aws-ofi-nccl (proxy mode) asks of a provider and builds on: its hints, an endpoint in
// the domain of the plug-in's RDMA protocol, and immediate data of a write that come with the
// context of a receive. Two domains in one process, on loopback.
#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "objects.h"

namespace uet::e2e {
namespace {

constexpr std::uint32_t kVersion = FI_VERSION(1, 17);
constexpr std::uint64_t kKey = 7;

// The hints of the RDMA protocol, which GIN shares.
void ask_as_rdma(fi_info& hints) {
  hints.caps = FI_MSG | FI_RMA | FI_HMEM | FI_LOCAL_COMM | FI_REMOTE_COMM;
  hints.mode = FI_CONTEXT | FI_CONTEXT2;
  hints.ep_attr->type = FI_EP_RDM;
  hints.domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_HMEM | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints.domain_attr->mr_key_size = 2;
  hints.domain_attr->threading = FI_THREAD_COMPLETION;
  hints.domain_attr->control_progress = FI_PROGRESS_UNSPEC;
  hints.domain_attr->data_progress = FI_PROGRESS_UNSPEC;
  hints.domain_attr->cq_data_size = 4;
}

// One rail: a domain of the RDMA protocol, and an endpoint of GIN in it.
struct Rail {
  Rail() : side(SideOptions{.hints = ask_as_rdma}) {
    const std::unique_ptr<fi_info, Node::FreeInfo> hints(fi_allocinfo());
    ask_as_rdma(*hints);
    hints->caps |= FI_SOURCE;
    hints->mode |= FI_RX_CQ_DATA;
    hints->domain_attr->name = strdup(side.info->domain_attr->name);
    hints->fabric_attr->name = strdup(side.info->fabric_attr->name);
    hints->fabric_attr->prov_name = strdup(provider().c_str());
    fi_info* found = nullptr;
    check(fi_getinfo(kVersion, nullptr, nullptr, 0, hints.get(), &found), "fi_getinfo of GIN");
    info.reset(found);
    fi_cq_attr attr{};
    attr.format = FI_CQ_FORMAT_DATA;
    Side::open(cq, "fi_cq_open",
               [&](auto** out) { return fi_cq_open(side.domain.get(), &attr, out, nullptr); });
    Side::open(ep, "fi_endpoint", [&](auto** out) {
      return fi_endpoint(side.domain.get(), info.get(), out, nullptr);
    });
    check(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
    check(fi_ep_bind(ep.get(), &side.av->fid, 0), "bind AV");
    check(fi_enable(ep.get()), "fi_enable");
  }

  bool read(fi_cq_data_entry& entry, fi_addr_t& source) {
    const ssize_t result = fi_cq_readfrom(cq.get(), &entry, 1, &source);
    require(result == 1 || result == -FI_EAGAIN, "fi_cq_readfrom failed");
    return result == 1;
  }

  Side side;
  std::unique_ptr<fi_info, Node::FreeInfo> info;
  Owned<fid_cq> cq;
  Owned<fid_ep> ep;
};

class Gin : public testing::Test {
 protected:
  Gin() {
    to_ = initiator_.side.insert(*target_.ep);
    from_ = target_.side.insert(*initiator_.ep);
    fid_mr* made = nullptr;
    check(fi_mr_reg(target_.side.domain.get(), memory_.data(), memory_.size(), FI_REMOTE_WRITE, 0,
                    kKey, 0, &made, nullptr),
          "fi_mr_reg");
    mr_.reset(made);
  }
  // GIN's signal: fi_writemsg with 32 bits of immediate data.
  void signal(const char* text, std::uint64_t offset, std::uint32_t data) {
    iovec piece{const_cast<char*>(text), std::strlen(text)};
    fi_rma_iov there{offset, piece.iov_len, kKey};
    fi_msg_rma message{};
    message.msg_iov = &piece;
    message.iov_count = 1;
    message.addr = to_;
    message.rma_iov = &there;
    message.rma_iov_count = 1;
    message.data = data;
    message.context = &initiator_;
    check(fi_writemsg(initiator_.ep.get(), &message, FI_REMOTE_CQ_DATA), "fi_writemsg");
  }
  void receive(std::size_t number) {
    check(fi_recv(target_.ep.get(), buffers_[number].data(), buffers_[number].size(), nullptr,
                  FI_ADDR_UNSPEC, buffers_[number].data()),
          "fi_recv");
  }
  // The next entry of the target's queue, while the initiator makes progress.
  fi_cq_data_entry arrived() {
    fi_cq_data_entry entry{};
    fi_addr_t source = FI_ADDR_UNSPEC;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!target_.read(entry, source)) {
      fi_cq_data_entry sent{};
      fi_addr_t nowhere = 0;
      if (initiator_.read(sent, nowhere)) ++sent_;
      require(std::chrono::steady_clock::now() < end, "nothing arrives");
    }
    EXPECT_EQ(source, from_);
    return entry;
  }

  Rail initiator_;
  Rail target_;
  std::array<char, 64> memory_{};
  Owned<fid_mr> mr_;
  std::array<std::array<char, 16>, 3> buffers_{};
  fi_addr_t to_ = 0;
  fi_addr_t from_ = 0;
  int sent_ = 0;
};

// GIN refuses a second result, one without the mode bit, and one with less than 4 bytes of data.
TEST_F(Gin, ItsHintsBringOneResultThatItTakes) {
  const fi_info& info = *initiator_.info;
  EXPECT_EQ(info.next, nullptr);
  EXPECT_EQ(info.mode, FI_RX_CQ_DATA);
  EXPECT_EQ(info.rx_attr->mode, FI_RX_CQ_DATA);
  EXPECT_GE(info.domain_attr->cq_data_size, 4U);
  const std::uint64_t caps = FI_MSG | FI_RMA | FI_HMEM | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM;
  EXPECT_EQ(info.caps & caps, caps);
  EXPECT_EQ(info.domain_attr->threading, FI_THREAD_COMPLETION);
  EXPECT_EQ(info.domain_attr->mr_mode & FI_MR_ENDPOINT, 0) << "GIN cannot bind regions";
}

TEST_F(Gin, AddressesCountFromZeroInItsTable) {
  EXPECT_EQ(to_, 0U);
  EXPECT_EQ(from_, 0U);
}

TEST_F(Gin, EachSignalComesWithTheContextOfAReceive) {
  for (std::size_t number = 0; number < 3; ++number) receive(number);
  signal("first", 0, 0xFFFFFFFF);
  fi_cq_data_entry entry = arrived();
  EXPECT_EQ(entry.op_context, buffers_[0].data());
  EXPECT_EQ(entry.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(entry.data, 0xFFFFFFFFU);
  EXPECT_EQ(entry.len, 5U);
  EXPECT_STREQ(memory_.data(), "first");
  EXPECT_STREQ(buffers_[0].data(), "") << "the buffer of the receive stays as it is";
  ASSERT_EQ(fi_send(initiator_.ep.get(), "metadata", 9, nullptr, to_, nullptr), 0);
  entry = arrived();
  EXPECT_EQ(entry.op_context, buffers_[1].data());
  EXPECT_STREQ(buffers_[1].data(), "metadata");
  signal("second", 0, 2);
  EXPECT_EQ(arrived().op_context, buffers_[2].data());
}

// The target refuses the write for now, and the initiator repeats it.
TEST_F(Gin, SignalWithoutReceive_WaitsForOne) {
  signal("early", 0, 1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < end) {
    fi_cq_data_entry entry{};
    fi_addr_t source = 0;
    ASSERT_FALSE(target_.read(entry, source));
    ASSERT_FALSE(initiator_.read(entry, source));
  }
  receive(1);
  EXPECT_EQ(arrived().op_context, buffers_[1].data());
  EXPECT_STREQ(memory_.data(), "early");
}

// A mode bit of the result is a duty: who does not insist on it keeps his receives.
TEST(GinHints, OthersOweNoReceive) {
  for (const std::uint64_t mode : {std::uint64_t{FI_RX_CQ_DATA}, ~std::uint64_t{0}}) {
    const Side side(SideOptions{.hints = [&](fi_info& hints) {
      hints.mode = mode;
      hints.domain_attr->cq_data_size = mode == FI_RX_CQ_DATA ? 0 : 4;
    }});
    EXPECT_EQ(side.info->mode, 0U);
    EXPECT_EQ(side.info->rx_attr->mode, 0U);
  }
}

}  // namespace
}  // namespace uet::e2e
