// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The provider's interface, call by call, in one process: discovery, opening and closing, and each
// kind of transfer between two domains on loopback.
#include <gtest/gtest.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "uet/fi_ext_uet.h"

namespace {

constexpr std::uint32_t kVersion = FI_VERSION(1, 17);

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

Info make_hints() {
  Info hints(fi_allocinfo());
  hints->fabric_attr->prov_name = strdup("uet");
  hints->ep_attr->type = FI_EP_RDM;
  return hints;
}

int get_info(const char* node, const char* service, std::uint64_t flags, const fi_info* hints,
             Info& out) {
  fi_info* list = nullptr;
  const int result = fi_getinfo(kVersion, node, service, flags, hints, &list);
  out.reset(list);
  return result;
}

Info loopback_info(const fi_info* hints, const char* service = nullptr) {
  Info info;
  EXPECT_EQ(get_info("127.0.0.1", service, FI_SOURCE, hints, info), 0);
  return info;
}

template <class Fid>
int close_fid(Fid* object) {
  return fi_close(&object->fid);
}

// ---- discovery ---------------------------------------------------------------------------------

TEST(GetInfo, NamesItselfOnceAndNothingIsLayeredOnTop) {
  Info hints(fi_allocinfo());
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, hints.get(), info), 0);
  int own = 0;
  for (const fi_info* item = info.get(); item != nullptr; item = item->next) {
    const std::string name = item->fabric_attr->prov_name;
    EXPECT_EQ(name.find("uet;"), std::string::npos) << name;
    if (name == "uet") {
      ++own;
      EXPECT_TRUE(item->ep_attr->type == FI_EP_RDM || item->ep_attr->type == FI_EP_MSG);
    }
  }
  EXPECT_GT(own, 0);
}

TEST(GetInfo, LoopbackComesLastAndNicIsDescribed) {
  Info info;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, make_hints().get(), info), 0);
  const fi_info* last = nullptr;
  for (const fi_info* item = info.get(); item != nullptr; item = item->next) {
    ASSERT_NE(item->nic, nullptr);
    ASSERT_NE(item->nic->device_attr, nullptr);
    ASSERT_NE(item->nic->bus_attr, nullptr);
    ASSERT_NE(item->nic->link_attr, nullptr);
    EXPECT_STREQ(item->nic->device_attr->name, item->domain_attr->name);
    EXPECT_GT(item->nic->link_attr->mtu, 0U);
    EXPECT_EQ(item->src_addrlen, std::size_t{FI_ADDR_UET_SIZE});
    last = item;
  }
  EXPECT_STREQ(last->domain_attr->name, "lo");
}

TEST(GetInfo, BadNodesAndServicesAreNoData) {
  Info info;
  const Info hints = make_hints();
  EXPECT_EQ(get_info("no.such.host.invalid", "1", 0, hints.get(), info), -FI_ENODATA);
  EXPECT_EQ(get_info("localhost", "1", FI_NUMERICHOST, hints.get(), info), -FI_ENODATA);
  EXPECT_EQ(get_info("127.0.0.1", "no-such-service", 0, hints.get(), info), -FI_ENODATA);
  EXPECT_EQ(get_info("fi_addr_uet://nonsense", nullptr, 0, hints.get(), info), -FI_ENODATA);
  // Not an address of this host.
  EXPECT_EQ(get_info("198.51.100.7", nullptr, FI_SOURCE, hints.get(), info), -FI_ENODATA);
}

TEST(GetInfo, SourceNeedsNodeOrService) {
  // Only the provider knows; libfabric reports -FI_ENODATA when no provider has anything.
  Info info;
  EXPECT_LT(get_info(nullptr, nullptr, FI_SOURCE, make_hints().get(), info), 0);
}

TEST(GetInfo, NodeIsTheDestinationAndTheSourceRoutesToIt) {
  Info info;
  ASSERT_EQ(get_info("127.0.0.1", "4800", 0, make_hints().get(), info), 0);
  ASSERT_EQ(info->dest_addrlen, std::size_t{FI_ADDR_UET_SIZE});
  const auto* destination = static_cast<const std::uint8_t*>(info->dest_addr);
  EXPECT_EQ(destination[4], 127);
  EXPECT_EQ(destination[26] << 8 | destination[27], 4800);
  const auto* source = static_cast<const std::uint8_t*>(info->src_addr);
  EXPECT_EQ(source[4], 127);
  EXPECT_STREQ(info->domain_attr->name, "lo");
  EXPECT_STREQ(info->fabric_attr->name, "127.0.0.0/8");
}

// 9228 = 5132 + 4 * 1024: the fifth endpoint at UDP port 5132.
TEST(GetInfo, ServiceOutsideTheRangeNamesPortAndEndpoint) {
  Info info;
  ASSERT_EQ(get_info("127.0.0.1", "9228", 0, make_hints().get(), info), 0);
  const auto* destination = static_cast<const std::uint8_t*>(info->dest_addr);
  EXPECT_EQ(destination[26] << 8 | destination[27], 5132);
  EXPECT_EQ(destination[23], 5);
}

TEST(GetInfo, TextFormIsAcceptedAsNode) {
  Info info;
  ASSERT_EQ(get_info("fi_addr_uet://127.0.0.1:4801?pid=3&ri=2&n=1&init=9", nullptr, 0,
                     make_hints().get(), info),
            0);
  const auto* destination = static_cast<const std::uint8_t*>(info->dest_addr);
  EXPECT_EQ(destination[26] << 8 | destination[27], 4801);
  EXPECT_EQ(destination[21], 3);
  EXPECT_EQ(destination[23], 2);
  EXPECT_EQ(destination[31], 9);
}

TEST(GetInfo, InfosWorkAsHintsAgain) {
  Info first;
  ASSERT_EQ(get_info("127.0.0.1", nullptr, 0, make_hints().get(), first), 0);
  Info again;
  ASSERT_EQ(get_info(nullptr, nullptr, 0, first.get(), again), 0);
  EXPECT_STREQ(again->domain_attr->name, first->domain_attr->name);
  EXPECT_STREQ(again->fabric_attr->name, first->fabric_attr->name);
  ASSERT_EQ(again->dest_addrlen, first->dest_addrlen);
  EXPECT_EQ(std::memcmp(again->dest_addr, first->dest_addr, first->dest_addrlen), 0);
  const Info copy(fi_dupinfo(again.get()));
  EXPECT_STREQ(copy->nic->device_attr->name, "lo");
}

TEST(GetInfo, HintsThatCannotBeMetAreNoData) {
  Info info;
  Info hints = make_hints();
  // FI_EP_SOCK_STREAM, which headers of libfabric 2 define as FI_EP_UNSPEC.
  hints->ep_attr->type = static_cast<fi_ep_type>(4);
  EXPECT_EQ(get_info(nullptr, nullptr, 0, hints.get(), info), -FI_ENODATA);
  hints = make_hints();
  constexpr std::uint64_t kXpu = std::uint64_t{1} << 44;  // FI_XPU of newer headers
  for (const std::uint64_t caps : {std::uint64_t{FI_COLLECTIVE}, kXpu}) {
    hints->caps = caps;
    EXPECT_EQ(get_info(nullptr, nullptr, 0, hints.get(), info), -FI_ENODATA) << caps;
  }
  hints = make_hints();
  hints->domain_attr->name = strdup("no-such-interface");
  EXPECT_EQ(get_info(nullptr, nullptr, 0, hints.get(), info), -FI_ENODATA);
}

// ---- objects -----------------------------------------------------------------------------------

struct Options {
  fi_wait_obj wait_obj = FI_WAIT_NONE;
  std::uint64_t order = 0;
  int mr_mode = 0;
  fi_progress progress = FI_PROGRESS_MANUAL;
  std::uint64_t selective = 0;  // FI_SELECTIVE_COMPLETION
};

// A domain with one enabled endpoint and one of each object.
class Node {
 public:
  explicit Node(const Options& options = {}) {
    Info hints = make_hints();
    hints->caps = FI_MSG | FI_TAGGED | FI_RMA | FI_SOURCE | FI_DIRECTED_RECV;
    hints->tx_attr->msg_order = options.order;
    hints->rx_attr->msg_order = options.order;
    hints->domain_attr->data_progress = options.progress;
    info = loopback_info(hints.get());
    info->domain_attr->mr_mode = options.mr_mode;  // none is required; these are wanted
    check(fi_fabric(info->fabric_attr, &fabric, nullptr));
    check(fi_domain(fabric, info.get(), &domain, nullptr));
    check(fi_endpoint(domain, info.get(), &ep, nullptr));
    fi_cq_attr cq_attr{};
    cq_attr.size = 4;  // RM_ENABLED: never overruns
    cq_attr.format = FI_CQ_FORMAT_TAGGED;
    cq_attr.wait_obj = options.wait_obj;
    check(fi_cq_open(domain, &cq_attr, &cq, nullptr));
    fi_cntr_attr cntr_attr{};
    check(fi_cntr_open(domain, &cntr_attr, &sent, nullptr));
    check(fi_cntr_open(domain, &cntr_attr, &written_to, nullptr));
    fi_av_attr av_attr{};
    check(fi_av_open(domain, &av_attr, &av, nullptr));
    check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV | options.selective));
    check(fi_ep_bind(ep, &sent->fid, FI_SEND));
    check(fi_ep_bind(ep, &written_to->fid, FI_REMOTE_WRITE));
    check(fi_ep_bind(ep, &av->fid, 0));
    check(fi_enable(ep));
  }
  ~Node() {
    if (ep != nullptr) check(close_fid(ep));
    check(close_fid(cq));
    check(close_fid(sent));
    check(close_fid(written_to));
    check(close_fid(av));
    check(close_fid(domain));
    check(close_fid(fabric));
  }

  static void check(int result) { EXPECT_EQ(result, 0) << fi_strerror(-result); }

  std::array<std::byte, 32> name() {
    std::array<std::byte, 32> bytes{};
    std::size_t length = bytes.size();
    check(fi_getname(&ep->fid, bytes.data(), &length));
    return bytes;
  }
  fi_addr_t insert(Node& other) {
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(av, other.name().data(), 1, &address, 0, nullptr), 1);
    return address;
  }

  Info info;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_ep* ep = nullptr;
  fid_cq* cq = nullptr;
  fid_cntr* sent = nullptr;
  fid_cntr* written_to = nullptr;
  fid_av* av = nullptr;
};

TEST(Close, ParentsAreBusyWhileChildrenLive) {
  Node node;
  EXPECT_EQ(close_fid(node.fabric), -FI_EBUSY);
  EXPECT_EQ(close_fid(node.domain), -FI_EBUSY);
  EXPECT_EQ(close_fid(node.cq), -FI_EBUSY);
  EXPECT_EQ(close_fid(node.av), -FI_EBUSY);
  EXPECT_EQ(close_fid(node.sent), -FI_EBUSY);
}

TEST(Domain, ExplicitSourcePortThatIsTakenIsAddressInUse) {
  const Info hints = make_hints();
  const Info info = loopback_info(hints.get(), "4870");
  fid_fabric* fabric = nullptr;
  fid_domain* first = nullptr;
  fid_domain* second = nullptr;
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  ASSERT_EQ(fi_domain(fabric, info.get(), &first, nullptr), 0);
  EXPECT_EQ(fi_domain(fabric, info.get(), &second, nullptr), -FI_EADDRINUSE);
  EXPECT_EQ(close_fid(first), 0);
  EXPECT_EQ(close_fid(fabric), 0);
}

TEST(Names, OfNoInterfaceAreRefused) {
  const Info hints = make_hints();
  Info info = loopback_info(hints.get());
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  const auto rename = [](char*& name, const char* to) {
    free(name);
    name = strdup(to);
  };
  const std::string subnet = info->fabric_attr->name;
  rename(info->fabric_attr->name, "192.0.2.0/24");
  EXPECT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), -FI_EINVAL);
  rename(info->fabric_attr->name, subnet.c_str());
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  rename(info->domain_attr->name, "no-such-interface");
  EXPECT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), -FI_EINVAL);
  rename(info->domain_attr->name, "lo");
  ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
  EXPECT_EQ(close_fid(domain), 0);
  EXPECT_EQ(close_fid(fabric), 0);
}

TEST(Endpoint, EnableNeedsQueueAndAddressVector) {
  const Info hints = make_hints();
  const Info info = loopback_info(hints.get());
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_ep* ep = nullptr;
  fid_av* av = nullptr;
  fi_av_attr av_attr{};
  ASSERT_EQ(fi_fabric(info->fabric_attr, &fabric, nullptr), 0);
  ASSERT_EQ(fi_domain(fabric, info.get(), &domain, nullptr), 0);
  ASSERT_EQ(fi_endpoint(domain, info.get(), &ep, nullptr), 0);
  ASSERT_EQ(fi_av_open(domain, &av_attr, &av, nullptr), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOAV);
  EXPECT_EQ(fi_ep_bind(ep, &av->fid, 0), 0);
  EXPECT_EQ(fi_enable(ep), -FI_ENOCQ);
  EXPECT_EQ(fi_ep_bind(ep, &domain->fid, 0), -FI_EINVAL);
  EXPECT_EQ(close_fid(ep), 0);
  EXPECT_EQ(close_fid(av), 0);
  EXPECT_EQ(close_fid(domain), 0);
  EXPECT_EQ(close_fid(fabric), 0);
}

TEST(Endpoint, NameTooLongForTheBufferSaysHowLong) {
  Node node;
  std::array<std::byte, 8> small{};
  std::size_t length = small.size();
  EXPECT_EQ(fi_getname(&node.ep->fid, small.data(), &length), -FI_ETOOSMALL);
  EXPECT_EQ(length, std::size_t{FI_ADDR_UET_SIZE});
}

TEST(Endpoint, UnknownOptionIsNoProtocolOption) {
  Node node;
  bool value = false;
  constexpr int kNoSuchOption = 9999;
  EXPECT_EQ(fi_setopt(&node.ep->fid, FI_OPT_ENDPOINT, kNoSuchOption, &value, sizeof value),
            -FI_ENOPROTOOPT);
}

TEST(Endpoint, UnknownFlagsPeersAndBuffersAreInvalid) {
  Node node;
  const fi_addr_t self = node.insert(node);
  fi_msg msg{};
  msg.addr = self;
  EXPECT_EQ(fi_sendmsg(node.ep, &msg, std::uint64_t{1} << 60), -FI_EINVAL);
  EXPECT_EQ(fi_send(node.ep, nullptr, 0, nullptr, self + 1, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_send(node.ep, nullptr, 8, nullptr, self, nullptr), -FI_EINVAL);
  EXPECT_EQ(fi_inject(node.ep, nullptr, 8, self), -FI_EINVAL);
}

TEST(AddressVector, StraddrLookupRemoveAndReuse) {
  Node node;
  const auto name = node.name();
  std::array<fi_addr_t, 3> addresses{};
  std::vector<std::byte> three(3 * name.size());
  for (std::size_t i = 0; i < 3; ++i) {
    std::copy(name.begin(), name.end(),
              three.begin() + static_cast<std::ptrdiff_t>(i * name.size()));
  }
  ASSERT_EQ(fi_av_insert(node.av, three.data(), 3, addresses.data(), 0, nullptr), 3);
  EXPECT_EQ(addresses, (std::array<fi_addr_t, 3>{0, 1, 2}));
  char text[128];
  std::size_t length = sizeof text;
  EXPECT_EQ(std::string(fi_av_straddr(node.av, name.data(), text, &length))
                .find("fi_addr_uet://127.0.0.1:"),
            0U);
  fi_addr_t from_text = FI_ADDR_NOTAVAIL;
  EXPECT_EQ(fi_av_insertsvc(node.av, text, nullptr, &from_text, 0, nullptr), 1);
  std::array<std::byte, 40> back{};
  length = back.size();
  ASSERT_EQ(fi_av_lookup(node.av, from_text, back.data(), &length), 0);
  EXPECT_EQ(length, name.size());
  EXPECT_EQ(std::memcmp(back.data(), name.data(), name.size()), 0);
  EXPECT_EQ(fi_av_remove(node.av, &addresses[1], 1, 0), 0);
  EXPECT_EQ(fi_av_remove(node.av, &addresses[1], 1, 0), -FI_EINVAL);
  EXPECT_EQ(node.insert(node), 1U);
  const std::array<std::byte, 32> nonsense{};
  fi_addr_t bad = 0;
  EXPECT_EQ(fi_av_insert(node.av, nonsense.data(), 1, &bad, 0, nullptr), 0);
  EXPECT_EQ(bad, FI_ADDR_NOTAVAIL);
}

TEST(MemoryRegion, KeysAreUniqueOnlyWherePeersCanUseThem) {
  Node node;
  char memory[64];
  fid_mr* a = nullptr;
  fid_mr* b = nullptr;
  ASSERT_EQ(fi_mr_reg(node.domain, memory, 64, FI_REMOTE_WRITE, 0, 7, 0, &a, nullptr), 0);
  EXPECT_EQ(fi_mr_key(a), 7U);
  EXPECT_EQ(fi_mr_reg(node.domain, memory, 64, FI_REMOTE_READ, 0, 7, 0, &b, nullptr), -FI_ENOKEY);
  ASSERT_EQ(fi_mr_reg(node.domain, memory, 64, FI_SEND | FI_RECV, 0, 7, 0, &b, nullptr), 0);
  EXPECT_EQ(close_fid(node.domain), -FI_EBUSY);
  EXPECT_EQ(close_fid(b), 0);
  EXPECT_EQ(close_fid(a), 0);
  ASSERT_EQ(fi_mr_reg(node.domain, memory, 64, FI_REMOTE_READ, 0, 7, 0, &b, nullptr), 0);
  EXPECT_EQ(close_fid(b), 0);
}

TEST(EventQueue, WriteReadPeekAndWaitDescriptor) {
  Node node;
  fid_eq* eq = nullptr;
  fi_eq_attr attr{};
  attr.flags = FI_WRITE;
  attr.wait_obj = FI_WAIT_FD;
  ASSERT_EQ(fi_eq_open(node.fabric, &attr, &eq, nullptr), 0);
  int fd = -1;
  ASSERT_EQ(fi_control(&eq->fid, FI_GETWAIT, &fd), 0);
  pollfd poll_fd{fd, POLLIN, 0};
  fid* fids[] = {&eq->fid};
  EXPECT_EQ(fi_trywait(node.fabric, fids, 1), 0);
  EXPECT_EQ(poll(&poll_fd, 1, 0), 0);
  fi_eq_entry entry{&node.ep->fid, nullptr, 42};
  ASSERT_EQ(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0), ssize_t{sizeof entry});
  EXPECT_EQ(poll(&poll_fd, 1, 0), 1);
  EXPECT_EQ(fi_trywait(node.fabric, fids, 1), -FI_EAGAIN);
  std::uint32_t event = 99;
  fi_eq_entry read{};
  EXPECT_EQ(fi_eq_read(eq, &event, &read, sizeof read, FI_PEEK), ssize_t{sizeof read});
  EXPECT_EQ(fi_eq_sread(eq, &event, &read, sizeof read, 1000, 0), ssize_t{sizeof read});
  EXPECT_EQ(read.data, 42U);
  EXPECT_EQ(event, std::uint32_t{FI_NOTIFY});
  EXPECT_EQ(fi_eq_read(eq, &event, &read, sizeof read, 0), -FI_EAGAIN);
  EXPECT_EQ(close_fid(eq), 0);
}

// ---- transfers ---------------------------------------------------------------------------------

using Clock = std::chrono::steady_clock;

class Transfer : public testing::TestWithParam<std::uint64_t> {  // message order, 0 = RUD
 protected:
  explicit Transfer(Options options = {}) : options_(options) {
    options_.order = GetParam();
    a_ = std::make_unique<Node>(options_);
    b_ = std::make_unique<Node>(options_);
    to_b_ = a_->insert(*b_);
    to_a_ = b_->insert(*a_);
  }

  // The next entry of `at`; the other side's protocol runs meanwhile. On an error entry
  // `error` is filled in and flags are 0.
  fi_cq_tagged_entry next(Node& at, fi_addr_t* source = nullptr) {
    Node& other = &at == a_.get() ? *b_ : *a_;
    const auto end = Clock::now() + std::chrono::seconds(20);
    fi_cq_tagged_entry entry{};
    while (Clock::now() < end) {
      fi_cq_read(other.cq, nullptr, 0);
      fi_addr_t from = FI_ADDR_NOTAVAIL;
      const ssize_t result = fi_cq_readfrom(at.cq, &entry, 1, &from);
      if (result == 1) {
        if (source != nullptr) *source = from;
        return entry;
      }
      if (result == -FI_EAVAIL) {
        error_ = {};
        EXPECT_EQ(fi_cq_readerr(at.cq, &error_, 0), 1);
        return {};
      }
      EXPECT_EQ(result, -FI_EAGAIN);
    }
    ADD_FAILURE() << "no completion within 20 s";
    return {};
  }

  static std::vector<std::uint8_t> pattern(std::size_t length) {
    std::vector<std::uint8_t> bytes(length);
    for (std::size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    return bytes;
  }

  Options options_;
  std::unique_ptr<Node> a_;
  std::unique_ptr<Node> b_;
  fi_addr_t to_a_ = FI_ADDR_UNSPEC;
  fi_addr_t to_b_ = FI_ADDR_UNSPEC;
  fi_cq_err_entry error_{};
};

INSTANTIATE_TEST_SUITE_P(BothModes, Transfer,
                         testing::Values(std::uint64_t{0}, std::uint64_t{FI_ORDER_SAS}),
                         [](const auto& info) { return info.param == 0 ? "Rud" : "Rod"; });

TEST_P(Transfer, MessagesOfManySizesArriveWhole) {
  int context = 0;
  for (const std::size_t size : {0, 1, 100, 4096, 8192, 8193, 100'000, 1'000'000}) {
    const auto data = pattern(size);
    std::vector<std::uint8_t> room(size + 1);
    ASSERT_EQ(fi_recv(b_->ep, room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, &context), 0);
    ASSERT_EQ(fi_send(a_->ep, data.data(), size, nullptr, to_b_, &context), 0);
    fi_addr_t source = FI_ADDR_NOTAVAIL;
    const auto received = next(*b_, &source);
    EXPECT_EQ(received.flags, FI_RECV | FI_MSG);
    EXPECT_EQ(received.len, size);
    EXPECT_EQ(received.op_context, &context);
    EXPECT_EQ(source, to_a_);
    EXPECT_EQ(next(*a_).flags, FI_SEND | FI_MSG);
    room.resize(size);
    EXPECT_EQ(room, data) << size;
  }
  EXPECT_EQ(fi_cntr_read(a_->sent), 8U);
}

TEST_P(Transfer, TagsSelectTheReceive) {
  char one[8] = "";
  char two[8] = "";
  ASSERT_EQ(fi_trecv(b_->ep, one, sizeof one, nullptr, FI_ADDR_UNSPEC, 0x10, 0, one), 0);
  ASSERT_EQ(fi_trecv(b_->ep, two, sizeof two, nullptr, to_a_, 0x20, 0xF, two), 0);
  ASSERT_EQ(fi_tinjectdata(a_->ep, "second", 7, 77, to_b_, 0x25), 0);
  const auto second = next(*b_);
  EXPECT_EQ(second.op_context, two);
  EXPECT_EQ(second.flags, FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(second.data, 77U);
  EXPECT_EQ(second.tag, 0x25U);
  EXPECT_STREQ(two, "second");
  ASSERT_EQ(fi_tsend(a_->ep, "first", 6, nullptr, to_b_, 0x10, nullptr), 0);
  EXPECT_EQ(next(*b_).op_context, one);
  EXPECT_STREQ(one, "first");
}

TEST_P(Transfer, UnexpectedMessageWaitsForItsReceive) {
  const auto data = pattern(20'000);
  ASSERT_EQ(fi_tsend(a_->ep, data.data(), data.size(), nullptr, to_b_, 5, nullptr), 0);
  EXPECT_EQ(next(*a_).flags, FI_SEND | FI_TAGGED);
  std::vector<std::uint8_t> room(data.size());
  ASSERT_EQ(fi_trecv(b_->ep, room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, 5, 0, nullptr), 0);
  EXPECT_EQ(next(*b_).len, data.size());
  EXPECT_EQ(room, data);
}

TEST_P(Transfer, TruncatedMessageIsAnErrorWithBothLengths) {
  char room[10];
  ASSERT_EQ(fi_recv(b_->ep, room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0);
  ASSERT_EQ(fi_inject(a_->ep, "0123456789abcdef", 16, to_b_), 0);
  EXPECT_EQ(next(*b_).flags, 0U);
  EXPECT_EQ(error_.err, FI_ETRUNC);
  EXPECT_EQ(error_.len, 10U);
  EXPECT_EQ(error_.olen, 6U);
  EXPECT_EQ(error_.op_context, room);
}

TEST_P(Transfer, CancelledReceiveIsAnError) {
  char room[10];
  ASSERT_EQ(fi_recv(b_->ep, room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0);
  EXPECT_EQ(fi_cancel(&b_->ep->fid, room), 0);
  next(*b_);
  EXPECT_EQ(error_.err, FI_ECANCELED);
  EXPECT_EQ(error_.op_context, room);
  EXPECT_EQ(fi_cancel(&b_->ep->fid, room), -FI_ENOENT);
}

TEST_P(Transfer, WriteReadAndWriteWithData) {
  std::vector<std::uint8_t> remote(300'000);
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(b_->domain, remote.data(), remote.size(), FI_REMOTE_READ | FI_REMOTE_WRITE, 0,
                      11, 0, &mr, nullptr),
            0);
  const auto data = pattern(200'000);
  ASSERT_EQ(fi_write(a_->ep, data.data(), data.size(), nullptr, to_b_, 1000, 11, nullptr), 0);
  EXPECT_EQ(next(*a_).flags, FI_WRITE | FI_RMA);
  EXPECT_EQ(std::memcmp(remote.data() + 1000, data.data(), data.size()), 0);
  std::vector<std::uint8_t> back(data.size());
  ASSERT_EQ(fi_read(a_->ep, back.data(), back.size(), nullptr, to_b_, 1000, 11, nullptr), 0);
  EXPECT_EQ(next(*a_).flags, FI_READ | FI_RMA);
  EXPECT_EQ(back, data);
  ASSERT_EQ(fi_writedata(a_->ep, "x", 1, nullptr, 0xABCDEF0123456789, to_b_, 0, 11, nullptr), 0);
  const auto event = next(*b_);
  EXPECT_EQ(event.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(event.data, 0xABCDEF0123456789U);
  EXPECT_EQ(next(*a_).flags, FI_WRITE | FI_RMA);
  EXPECT_EQ(remote[0], 'x');
  EXPECT_EQ(fi_cntr_read(b_->written_to), 2U);
  EXPECT_EQ(close_fid(mr), 0);
}

TEST_P(Transfer, Ses156_WriteDataTakeNoReceive_SendDataDo) {
  char remote[4] = "";
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(b_->domain, remote, sizeof remote, FI_REMOTE_WRITE, 0, 12, 0, &mr, nullptr),
            0);
  char room[8];
  ASSERT_EQ(fi_recv(b_->ep, room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0);
  ASSERT_EQ(fi_writedata(a_->ep, "w", 1, nullptr, 71, to_b_, 0, 12, nullptr), 0);
  auto event = next(*b_);
  EXPECT_EQ(event.flags, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(event.data, 71U);
  ASSERT_EQ(fi_senddata(a_->ep, "send", 4, nullptr, 72, to_b_, nullptr), 0);
  event = next(*b_);
  EXPECT_EQ(event.flags, FI_RECV | FI_MSG | FI_REMOTE_CQ_DATA);
  EXPECT_EQ(event.op_context, room);
  EXPECT_EQ(event.data, 72U);
  EXPECT_EQ(next(*a_).flags & (FI_RMA | FI_MSG), FI_RMA);
  EXPECT_EQ(next(*a_).flags & (FI_RMA | FI_MSG), FI_MSG);
  EXPECT_EQ(close_fid(mr), 0);
}

TEST_P(Transfer, RemoteRefusalIsAnErrorWithItsReturnCode) {
  char local = 0;
  ASSERT_EQ(fi_write(a_->ep, &local, 1, nullptr, to_b_, 0, 999, &local), 0);
  next(*a_);
  EXPECT_EQ(error_.err, FI_ENOKEY);
  EXPECT_EQ(error_.prov_errno, 0x1C);
  EXPECT_EQ(error_.op_context, &local);
  char text[100];
  EXPECT_NE(std::string(fi_cq_strerror(a_->cq, error_.prov_errno, nullptr, text, sizeof text))
                .find("memory key"),
            std::string::npos);
}

// SES-26: only the target can see it, and the sender is told.
TEST_P(Transfer, DifferentPayloadMtusAreAnErrorAtTheSender) {
  a_.reset();
  ASSERT_EQ(setenv("FI_UET_PAYLOAD_MTU", "1024", 1), 0);
  a_ = std::make_unique<Node>(options_);
  ASSERT_EQ(unsetenv("FI_UET_PAYLOAD_MTU"), 0);
  to_b_ = a_->insert(*b_);
  std::vector<std::uint8_t> room(4096);
  ASSERT_EQ(fi_recv(b_->ep, room.data(), room.size(), nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  const auto data = pattern(4096);
  ASSERT_EQ(fi_send(a_->ep, data.data(), data.size(), nullptr, to_b_, nullptr), 0);
  next(*a_);
  EXPECT_EQ(error_.err, FI_EACCES);
  EXPECT_EQ(error_.prov_errno, 0x18);
}

TEST_P(Transfer, MoreCompletionsThanTheQueueSize_AreKept) {
  constexpr int kMessages = 200;
  std::vector<std::array<char, 4>> rooms(kMessages);
  for (auto& room : rooms) {
    ASSERT_EQ(fi_recv(b_->ep, room.data(), 4, nullptr, FI_ADDR_UNSPEC, room.data()), 0);
  }
  for (int i = 0; i < kMessages; ++i) {
    ssize_t result = -FI_EAGAIN;
    while ((result = fi_inject(a_->ep, &i, sizeof i, to_b_)) == -FI_EAGAIN) {
      fi_cq_read(b_->cq, nullptr, 0);
    }
    ASSERT_EQ(result, 0);
  }
  for (int i = 0; i < kMessages; ++i) ASSERT_EQ(next(*b_).flags, FI_RECV | FI_MSG);
  fi_cq_tagged_entry none{};
  EXPECT_EQ(fi_cq_read(a_->cq, &none, 1), -FI_EAGAIN) << "inject writes no entry";
}

// MPI waits in its own post until the receive is taken: with four ranks, 500 each way are 1500.
TEST_P(Transfer, ThousandsOfReceivesFitByDefault) {
  char room[4];
  for (int i = 0; i < 8192; ++i) {
    ASSERT_EQ(fi_recv(b_->ep, room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0) << i;
  }
  EXPECT_EQ(fi_recv(b_->ep, room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), -FI_EAGAIN);
}

TEST_P(Transfer, EndpointClosesWithReceivesPosted) {
  char room[10];
  ASSERT_EQ(fi_recv(b_->ep, room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0);
  EXPECT_EQ(close_fid(b_->ep), 0);
  b_->ep = nullptr;
  fi_cq_tagged_entry none{};
  EXPECT_EQ(fi_cq_read(b_->cq, &none, 1), -FI_EAGAIN);
}

class VirtualAddresses : public Transfer {
 protected:
  VirtualAddresses() : Transfer({.mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY}) {}
};
INSTANTIATE_TEST_SUITE_P(Rud, VirtualAddresses, testing::Values(std::uint64_t{0}));

TEST_P(VirtualAddresses, AreWhatRmaNames) {
  char remote[16] = "";
  fid_mr* mr = nullptr;
  ASSERT_EQ(fi_mr_reg(b_->domain, remote, sizeof remote, FI_REMOTE_WRITE, 0, 0, 0, &mr, nullptr),
            0);
  const auto address = reinterpret_cast<std::uintptr_t>(remote);
  ASSERT_EQ(fi_write(a_->ep, "here", 5, nullptr, to_b_, address + 2, fi_mr_key(mr), nullptr), 0);
  EXPECT_EQ(next(*a_).flags, FI_WRITE | FI_RMA);
  EXPECT_STREQ(remote + 2, "here");
  EXPECT_EQ(close_fid(mr), 0);
}

class Selective : public Transfer {
 protected:
  Selective() : Transfer({.selective = FI_SELECTIVE_COMPLETION}) {}
};
INSTANTIATE_TEST_SUITE_P(Rud, Selective, testing::Values(std::uint64_t{0}));

// SES-158
TEST_P(Selective, OnlyMarkedOperationsAreTold) {
  char room[8];
  ASSERT_EQ(fi_recv(b_->ep, room, sizeof room, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
  ASSERT_EQ(fi_send(a_->ep, "quiet", 6, nullptr, to_b_, nullptr), 0);
  iovec iov{const_cast<char*>("loud"), 5};
  fi_msg msg{};
  msg.msg_iov = &iov;
  msg.iov_count = 1;
  msg.addr = to_b_;
  msg.context = &msg;
  iovec room_iov{room, sizeof room};
  fi_msg receive{};
  receive.msg_iov = &room_iov;
  receive.iov_count = 1;
  receive.addr = FI_ADDR_UNSPEC;
  receive.context = &receive;
  while (fi_cntr_read(a_->sent) < 1) fi_cq_read(b_->cq, nullptr, 0);
  ASSERT_EQ(fi_recvmsg(b_->ep, &receive, FI_COMPLETION), 0);
  ASSERT_EQ(fi_sendmsg(a_->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE), 0);
  EXPECT_EQ(next(*a_).op_context, &msg);
  EXPECT_EQ(next(*b_).op_context, &receive);
}

class Blocking : public Transfer {
 protected:
  Blocking() : Transfer({.wait_obj = FI_WAIT_FD, .progress = FI_PROGRESS_AUTO}) {}
};
INSTANTIATE_TEST_SUITE_P(Rud, Blocking, testing::Values(std::uint64_t{0}));

TEST_P(Blocking, ReadSleepsUntilACompletionComes) {
  char room[8];
  ASSERT_EQ(fi_recv(b_->ep, room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_cq_sread(b_->cq, &entry, 1, nullptr, 20), -FI_EAGAIN);
  std::thread sender([&] { EXPECT_EQ(fi_inject(a_->ep, "wake", 5, to_b_), 0); });
  EXPECT_EQ(fi_cq_sread(b_->cq, &entry, 1, nullptr, 20'000), 1);
  EXPECT_EQ(entry.op_context, room);
  sender.join();
  std::thread signaller([&] { EXPECT_EQ(fi_cq_signal(b_->cq), 0); });
  EXPECT_EQ(fi_cq_sread(b_->cq, &entry, 1, nullptr, 20'000), -FI_EAGAIN);
  signaller.join();
}

TEST_P(Blocking, DescriptorReportsCompletions) {
  char room[8];
  int fd = -1;
  ASSERT_EQ(fi_control(&b_->cq->fid, FI_GETWAIT, &fd), 0);
  ASSERT_EQ(fi_recv(b_->ep, room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0);
  fid* fids[] = {&b_->cq->fid};
  ASSERT_EQ(fi_trywait(b_->fabric, fids, 1), 0);
  pollfd poll_fd{fd, POLLIN, 0};
  EXPECT_EQ(poll(&poll_fd, 1, 0), 0);
  ASSERT_EQ(fi_inject(a_->ep, "wake", 5, to_b_), 0);
  EXPECT_EQ(poll(&poll_fd, 1, 20'000), 1);
  fi_cq_tagged_entry entry{};
  EXPECT_EQ(fi_trywait(b_->fabric, fids, 1), -FI_EAGAIN);
  EXPECT_EQ(fi_cq_read(b_->cq, &entry, 1), 1);
  EXPECT_EQ(fi_trywait(b_->fabric, fids, 1), 0);
}

class BlockingManual : public Transfer {
 protected:
  BlockingManual() : Transfer({.wait_obj = FI_WAIT_FD}) {}
};
INSTANTIATE_TEST_SUITE_P(Rud, BlockingManual, testing::Values(std::uint64_t{0}));

// Two threads that only ever sleep: packets and deadlines must wake them.
TEST_P(BlockingManual, PingPongWithBlockingReadsOnly) {
  constexpr int kRounds = 50;
  const auto side = [&](Node& node, fi_addr_t to, bool first) {
    int room = -1;
    for (int round = 0; round < kRounds; ++round) {
      EXPECT_EQ(fi_recv(node.ep, &room, sizeof room, nullptr, FI_ADDR_UNSPEC, nullptr), 0);
      if (first) {
        EXPECT_EQ(fi_inject(node.ep, &round, sizeof round, to), 0);
      }
      fi_cq_tagged_entry entry{};
      EXPECT_EQ(fi_cq_sread(node.cq, &entry, 1, nullptr, 20'000), 1);
      EXPECT_EQ(room, round);
      if (!first) {
        EXPECT_EQ(fi_inject(node.ep, &round, sizeof round, to), 0);
      }
    }
    // The last message may still have to be repeated.
    fi_cq_tagged_entry entry{};
    if (!first) fi_cq_sread(node.cq, &entry, 1, nullptr, 200);
  };
  std::thread other([&] { side(*b_, to_a_, false); });
  side(*a_, to_b_, true);
  other.join();
}

}  // namespace
