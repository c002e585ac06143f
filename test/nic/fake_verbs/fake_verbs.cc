// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A libibverbs.so.1 for tests, never installed: raw-packet queue pairs over packet sockets, one
// device for each Ethernet interface, named "fake_" and the interface's name. It checks the rules
// of the real library (states, keys, bounds, posted receives, steering). Frames in several regions
// are read as late as allowed, at the next call that polls; other frames leave at once, since the
// caller need not poll again after an answer. It cannot show DMA, hardware steering, or speed.
//
// Regions of dmabufs are read through a mapping of the descriptor, never at their addresses.
//
// UET_FAKE_VERBS, a list of words, takes things away: no_device, no_raw_packet, no_steering,
// no_checksum, no_dmabuf. With "breaks" each queue pair fails once, at its kBreaksAt-th frame. With
// "stalls" a queue pair that also receives sends nothing.
#include <infiniband/verbs.h>
#undef ibv_query_port
#undef ibv_reg_mr

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "checksums.h"

namespace {

using namespace fake_verbs;  // NOLINT(google-build-using-namespace)

constexpr int kMostWork = 4096;
constexpr int kMostPieces = 16;
constexpr std::uint32_t kMostInline = 200;  // less than is wished, so that asking again is tried
constexpr int kSocketBytes = 16 << 20;
constexpr int kBreaksAt = 100;
constexpr std::size_t kMostFrame = 65536 + 64;

bool lacks(std::string_view what) {
  const char* words = std::getenv("UET_FAKE_VERBS");
  return words != nullptr && std::string_view(words).find(what) != std::string_view::npos;
}

template <class T>
T* refuse(int error) {
  errno = error;
  return nullptr;
}

struct Device {
  ibv_device verbs{};
  std::array<std::byte, 1024> room{};  // what drivers keep behind it, and others look at
  int index = 0;
};

struct Region {
  ibv_mr verbs{};
  std::uint32_t access = 0;
  std::byte* dmabuf = nullptr;  // a mapping of it, from its beginning
  std::uint64_t offset = 0;     // of the first byte in the dmabuf
};

struct Context {
  verbs_context verbs{};
  std::list<Region> regions;
  std::uint32_t next_key = 0x1000;
  int objects = 0;  // that must go before it
};

struct Work {
  ibv_send_wr request{};
  std::vector<ibv_sge> pieces;
  std::vector<std::byte> inlined;
};

struct Queue;

struct Pair {
  ibv_qp verbs{};
  ibv_qp_init_attr attributes{};
  int socket = -1;
  bool bound = false;
  int until_break = lacks("breaks") ? kBreaksAt : -1;
  std::deque<Work> sends;  // posted, not yet read
  std::deque<ibv_recv_wr> receives;
  std::deque<ibv_sge> places;  // of the receives
  std::list<std::vector<std::byte>> rules;
};

struct Queue {
  ibv_cq verbs{};
  int most = 0;
  int events = 0;
  std::deque<ibv_wc> done;
  std::vector<Pair*> pairs;  // that complete here
};

struct Flow {
  ibv_flow verbs{};
  Pair* pair = nullptr;
  std::list<std::vector<std::byte>>::iterator rule;
};

Context& context_of(ibv_context* context) {
  return *reinterpret_cast<Context*>(verbs_get_ctx(context));
}
Pair& pair_of(ibv_qp* pair) { return *reinterpret_cast<Pair*>(pair); }
Queue& queue_of(ibv_cq* queue) { return *reinterpret_cast<Queue*>(queue); }

// ---- steering -----------------------------------------------------------------------------------

template <class Value>
bool agrees(const Value* seen, const Value& wanted, const Value& mask) {
  const auto* a = reinterpret_cast<const std::uint8_t*>(seen);
  const auto* b = reinterpret_cast<const std::uint8_t*>(&wanted);
  const auto* m = reinterpret_cast<const std::uint8_t*>(&mask);
  for (std::size_t i = 0; i < sizeof(Value); ++i) {
    if ((a[i] & m[i]) != (b[i] & m[i])) return false;
  }
  return true;
}

bool matches(const ibv_flow_spec& spec, std::uint8_t* frame, const Layout& at) {
  switch (spec.hdr.type) {
    case IBV_FLOW_SPEC_ETH: {
      ibv_flow_eth_filter seen{};
      std::memcpy(seen.dst_mac, frame, 6);
      std::memcpy(seen.src_mac, frame + 6, 6);
      if (at.ip - frame == 18) std::memcpy(&seen.vlan_tag, frame + 14, 2);
      return agrees(&seen, spec.eth.val, spec.eth.mask);
    }
    case IBV_FLOW_SPEC_IPV4: {
      if (at.is_ipv6) return false;
      ibv_flow_ipv4_filter seen{};
      std::memcpy(&seen.src_ip, at.ip + 12, 4);
      std::memcpy(&seen.dst_ip, at.ip + 16, 4);
      return agrees(&seen, spec.ipv4.val, spec.ipv4.mask);
    }
    case IBV_FLOW_SPEC_IPV4_EXT: {
      if (at.is_ipv6) return false;
      ibv_flow_ipv4_ext_filter seen{};
      std::memcpy(&seen.src_ip, at.ip + 12, 4);
      std::memcpy(&seen.dst_ip, at.ip + 16, 4);
      seen.proto = at.protocol;
      return agrees(&seen, spec.ipv4_ext.val, spec.ipv4_ext.mask);
    }
    case IBV_FLOW_SPEC_IPV6: {
      if (!at.is_ipv6) return false;
      ibv_flow_ipv6_filter seen{};
      std::memcpy(seen.src_ip, at.ip + 8, 16);
      std::memcpy(seen.dst_ip, at.ip + 24, 16);
      seen.next_hdr = at.protocol;
      return agrees(&seen, spec.ipv6.val, spec.ipv6.mask);
    }
    case IBV_FLOW_SPEC_UDP: {
      if (at.udp == nullptr) return false;
      ibv_flow_tcp_udp_filter seen{};
      std::memcpy(&seen.src_port, at.udp, 2);
      std::memcpy(&seen.dst_port, at.udp + 2, 2);
      return agrees(&seen, spec.tcp_udp.val, spec.tcp_udp.mask);
    }
    default:
      return false;
  }
}

// A trimmed packet's lengths may say more than there is; a device looks at headers only.
bool is_steered_here(const Pair& pair, std::uint8_t* frame, std::size_t length) {
  Layout layout;
  if (!lay_out(frame, length, layout)) return false;
  for (const std::vector<std::byte>& rule : pair.rules) {
    const auto* attributes = reinterpret_cast<const ibv_flow_attr*>(rule.data());
    const std::byte* at = rule.data() + sizeof *attributes;
    bool all = true;
    for (int i = 0; i < attributes->num_of_specs; ++i) {
      ibv_flow_spec spec{};
      const auto* header = reinterpret_cast<const ibv_flow_spec*>(at);
      std::memcpy(&spec, at, header->hdr.size);
      all = all && matches(spec, frame, layout);
      at += header->hdr.size;
    }
    if (all) return true;
  }
  return false;
}

// ---- the data path ------------------------------------------------------------------------------

void complete(Queue& queue, const Pair& pair, std::uint64_t id, ibv_wc_opcode opcode,
              ibv_wc_status status, std::uint32_t bytes = 0, unsigned flags = 0) {
  if (static_cast<int>(queue.done.size()) >= queue.most) std::abort();  // the queue overran
  ibv_wc completion{};
  completion.wr_id = id;
  completion.status = status;
  completion.opcode = opcode;
  completion.byte_len = bytes;
  completion.qp_num = pair.verbs.qp_num;
  completion.wc_flags = flags;
  queue.done.push_back(completion);
}

// Everything posted comes back unused.
void go_to_error(Pair& pair) {
  pair.verbs.state = IBV_QPS_ERR;
  for (const Work& work : pair.sends) {
    complete(queue_of(pair.verbs.send_cq), pair, work.request.wr_id, IBV_WC_SEND,
             IBV_WC_WR_FLUSH_ERR);
  }
  for (const ibv_recv_wr& receive : pair.receives) {
    complete(queue_of(pair.verbs.recv_cq), pair, receive.wr_id, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
  }
  pair.sends.clear();
  pair.receives.clear();
  pair.places.clear();
}

const Region* region_of(Pair& pair, const ibv_sge& piece, bool write) {
  for (const Region& region : context_of(pair.verbs.context).regions) {
    const auto begin = reinterpret_cast<std::uintptr_t>(region.verbs.addr);
    if (region.verbs.lkey != piece.lkey || piece.addr < begin) continue;
    if (piece.addr - begin + piece.length > region.verbs.length) return nullptr;
    return write && (region.access & IBV_ACCESS_LOCAL_WRITE) == 0 ? nullptr : &region;
  }
  return nullptr;
}

const void* place_of(const Region& region, std::uint64_t address) {
  if (region.dmabuf == nullptr) return reinterpret_cast<const void*>(address);
  return region.dmabuf + region.offset +
         (address - reinterpret_cast<std::uintptr_t>(region.verbs.addr));
}

// False: the socket is full, later.
bool transmit(Pair& pair, const Work& work, ibv_wc_status& status) {
  static thread_local std::array<std::uint8_t, kMostFrame> frame;
  std::size_t length = 0;
  const auto put = [&](const void* from, std::size_t bytes) {
    if (length + bytes > frame.size()) return false;
    std::memcpy(frame.data() + length, from, bytes);
    length += bytes;
    return true;
  };
  status = IBV_WC_SUCCESS;
  if ((work.request.send_flags & IBV_SEND_INLINE) != 0) {
    put(work.inlined.data(), work.inlined.size());
  }
  for (const ibv_sge& piece : work.pieces) {
    const Region* const region = region_of(pair, piece, false);
    if (region == nullptr || !put(place_of(*region, piece.addr), piece.length)) {
      status = IBV_WC_LOC_PROT_ERR;
      return true;
    }
  }
  if ((work.request.send_flags & IBV_SEND_IP_CSUM) != 0) write_checksums(frame.data(), length);
  const ssize_t sent = ::send(pair.socket, frame.data(), length, MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return false;
  if (sent < 0 && errno != ENETDOWN) status = IBV_WC_LOC_QP_OP_ERR;
  if (pair.until_break >= 0 && pair.until_break-- == 0) status = IBV_WC_LOC_QP_OP_ERR;
  return true;
}

void transmit_all(Pair& pair) {
  if (pair.attributes.recv_cq->channel != nullptr && lacks("stalls")) return;
  while (pair.verbs.state == IBV_QPS_RTS && !pair.sends.empty()) {
    ibv_wc_status status;
    if (!transmit(pair, pair.sends.front(), status)) return;
    const Work work = std::move(pair.sends.front());
    pair.sends.pop_front();
    const bool tell = (work.request.send_flags & IBV_SEND_SIGNALED) != 0 ||
                      pair.attributes.sq_sig_all != 0 || status != IBV_WC_SUCCESS;
    if (tell) {
      complete(queue_of(pair.verbs.send_cq), pair, work.request.wr_id, IBV_WC_SEND, status);
    }
    if (status != IBV_WC_SUCCESS) go_to_error(pair);
  }
}

// One frame from the socket; false if there is none.
bool take_frame(Pair& pair) {
  static thread_local std::array<std::uint8_t, kMostFrame> frame;
  iovec iov{frame.data(), frame.size() - 4};
  alignas(cmsghdr) std::array<std::byte, 256> control{};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = ::recvmsg(pair.socket, &message, MSG_DONTWAIT);
  if (received < 0) return false;
  auto length = static_cast<std::size_t>(received);
  bool unfinished = false;  // a kernel on this machine left the checksum to hardware
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA) continue;
    tpacket_auxdata data;
    std::memcpy(&data, CMSG_DATA(c), sizeof data);
    unfinished = (data.tp_status & TP_STATUS_CSUMNOTREADY) != 0;
    if ((data.tp_status & TP_STATUS_VLAN_VALID) == 0 || length < 14) continue;
    std::memmove(&frame[16], &frame[12], length - 12);  // the tag, which the kernel has taken out
    frame[12] = 0x81;
    frame[13] = 0;
    frame[14] = static_cast<std::uint8_t>(data.tp_vlan_tci >> 8);
    frame[15] = static_cast<std::uint8_t>(data.tp_vlan_tci);
    length += 4;
  }
  if (!is_steered_here(pair, frame.data(), length)) return true;
  if (pair.receives.empty()) return true;  // nothing posted: dropped
  const ibv_recv_wr receive = pair.receives.front();
  const ibv_sge place = pair.places.front();
  pair.receives.pop_front();
  pair.places.pop_front();
  ibv_wc_status status = IBV_WC_SUCCESS;
  if (region_of(pair, place, true) == nullptr) status = IBV_WC_LOC_PROT_ERR;
  if (length > place.length) status = IBV_WC_LOC_LEN_ERR;
  unsigned flags = 0;
  if (status == IBV_WC_SUCCESS) {
    std::memcpy(reinterpret_cast<void*>(place.addr), frame.data(), length);
    if (!lacks("no_checksum") && (unfinished || checksums_are_right(frame.data(), length))) {
      flags = IBV_WC_IP_CSUM_OK;
    }
  }
  complete(queue_of(pair.verbs.recv_cq), pair, receive.wr_id, IBV_WC_RECV, status,
           static_cast<std::uint32_t>(length), flags);
  if (status != IBV_WC_SUCCESS) go_to_error(pair);
  return true;
}

int poll_cq(ibv_cq* cq, int most, ibv_wc* out) {
  Queue& queue = queue_of(cq);
  for (Pair* pair : queue.pairs) {
    transmit_all(*pair);
    const bool up = pair->verbs.state == IBV_QPS_RTR || pair->verbs.state == IBV_QPS_RTS;
    if (pair->verbs.recv_cq != cq || !up || !pair->bound) continue;
    while (static_cast<int>(queue.done.size()) < most && take_frame(*pair)) continue;
  }
  int count = 0;
  for (; count < most && !queue.done.empty(); ++count) {
    out[count] = queue.done.front();
    queue.done.pop_front();
  }
  return count;
}

// The channel's descriptor watches the sockets; one event, then it must be armed again.
int req_notify_cq(ibv_cq* cq, int) {
  Queue& queue = queue_of(cq);
  if (cq->channel == nullptr) return EINVAL;
  for (Pair* pair : queue.pairs) {
    transmit_all(*pair);
    if (pair->verbs.recv_cq != cq) continue;
    epoll_event event{.events = EPOLLIN | EPOLLONESHOT, .data = {.ptr = cq}};
    if (::epoll_ctl(cq->channel->fd, EPOLL_CTL_MOD, pair->socket, &event) != 0 &&
        ::epoll_ctl(cq->channel->fd, EPOLL_CTL_ADD, pair->socket, &event) != 0) {
      return errno;
    }
  }
  return 0;
}

int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** refused) {
  Pair& pair = pair_of(qp);
  bool at_once = false;
  for (; request != nullptr; request = request->next) {
    *refused = request;
    if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR) return EINVAL;
    if (request->opcode != IBV_WR_SEND) return EINVAL;
    if (request->num_sge > static_cast<int>(pair.attributes.cap.max_send_sge)) return EINVAL;
    if (pair.sends.size() >= pair.attributes.cap.max_send_wr) return ENOMEM;
    Work work;
    work.request = *request;
    const auto pieces = std::span(request->sg_list, static_cast<std::size_t>(request->num_sge));
    if ((request->send_flags & IBV_SEND_INLINE) != 0) {
      for (const ibv_sge& piece : pieces) {
        const auto* from = reinterpret_cast<const std::byte*>(piece.addr);
        work.inlined.insert(work.inlined.end(), from, from + piece.length);
      }
      if (work.inlined.size() > pair.attributes.cap.max_inline_data) return ENOMEM;
    } else {
      work.pieces.assign(pieces.begin(), pieces.end());
    }
    if (qp->state == IBV_QPS_ERR) {
      complete(queue_of(qp->send_cq), pair, request->wr_id, IBV_WC_SEND, IBV_WC_WR_FLUSH_ERR);
    } else {
      at_once = at_once || work.pieces.size() < 2;
      pair.sends.push_back(std::move(work));
    }
  }
  if (at_once) transmit_all(pair);
  return 0;
}

int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** refused) {
  Pair& pair = pair_of(qp);
  for (; request != nullptr; request = request->next) {
    *refused = request;
    if (qp->state == IBV_QPS_RESET || request->num_sge != 1) return EINVAL;
    if (pair.receives.size() >= pair.attributes.cap.max_recv_wr) return ENOMEM;
    if (qp->state == IBV_QPS_ERR) {
      complete(queue_of(qp->recv_cq), pair, request->wr_id, IBV_WC_RECV, IBV_WC_WR_FLUSH_ERR);
      continue;
    }
    pair.receives.push_back(*request);
    pair.places.push_back(request->sg_list[0]);
  }
  return 0;
}

// ---- objects behind the context's operations ----------------------------------------------------

// `receives`: frames shall come, too.
bool bind_to_interface(const Pair& pair, bool receives) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = receives ? htons(ETH_P_ALL) : 0;
  address.sll_ifindex = reinterpret_cast<Device*>(pair.verbs.context->device)->index;
  return ::bind(pair.socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

ibv_flow* create_flow(ibv_qp* qp, ibv_flow_attr* attributes) {
  Pair& pair = pair_of(qp);
  if (lacks("no_steering")) return refuse<ibv_flow>(EOPNOTSUPP);
  if (qp->qp_type != IBV_QPT_RAW_PACKET || attributes->type != IBV_FLOW_ATTR_NORMAL) {
    return refuse<ibv_flow>(EINVAL);
  }
  if (attributes->port != 1 || attributes->num_of_specs == 0) return refuse<ibv_flow>(EINVAL);
  const auto* begin = reinterpret_cast<const std::byte*>(attributes);
  std::size_t length = sizeof *attributes;
  for (int i = 0; i < attributes->num_of_specs; ++i) {
    const auto* spec = reinterpret_cast<const ibv_flow_spec*>(begin + length);
    length += spec->hdr.size;
  }
  if (length != attributes->size) return refuse<ibv_flow>(EINVAL);
  auto* flow = new Flow;
  flow->verbs.context = qp->context;
  flow->pair = &pair;
  flow->rule = pair.rules.insert(pair.rules.end(), std::vector(begin, begin + length));
  if (!pair.bound && !(pair.bound = bind_to_interface(pair, true))) {
    pair.rules.erase(flow->rule);
    delete flow;
    return nullptr;
  }
  return &flow->verbs;
}

int destroy_flow(ibv_flow* flow) {
  auto* object = reinterpret_cast<Flow*>(flow);
  object->pair->rules.erase(object->rule);
  delete object;
  return 0;
}

int query_device_ex(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex* attributes,
                    std::size_t) {
  *attributes = {};
  attributes->orig_attr.max_qp_wr = kMostWork;
  attributes->orig_attr.max_sge = kMostPieces;
  attributes->orig_attr.phys_port_cnt = 1;
  if (!lacks("no_checksum")) attributes->raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM;
  return 0;
}

int query_port(ibv_context*, std::uint8_t port, ibv_port_attr* attributes, std::size_t) {
  if (port != 1) return EINVAL;
  *attributes = {};
  attributes->state = IBV_PORT_ACTIVE;
  attributes->link_layer = IBV_LINK_LAYER_ETHERNET;
  attributes->gid_tbl_len = 1;
  return 0;
}

bool is_ethernet(const char* name) {
  if (::access(("/proc/net/vlan/" + std::string(name)).c_str(), F_OK) == 0) return false;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
  const bool asked = ::ioctl(fd, SIOCGIFHWADDR, &request) == 0;
  ::close(fd);
  return asked && request.ifr_hwaddr.sa_family == ARPHRD_ETHER;
}

}  // namespace

// ---- what the library exports -------------------------------------------------------------------

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  if (count != nullptr) *count = 0;
  if (lacks("no_device")) return refuse<ibv_device*>(ENOSYS);
  struct if_nameindex* const names = ::if_nameindex();
  std::vector<ibv_device*> found;
  for (auto* name = names; name != nullptr && name->if_index != 0; ++name) {
    if (!is_ethernet(name->if_name)) continue;
    auto* device = new Device;
    device->index = static_cast<int>(name->if_index);
    device->verbs.node_type = IBV_NODE_CA;
    device->verbs.transport_type = IBV_TRANSPORT_IB;
    const std::string text = "fake_" + std::string(name->if_name);
    text.copy(device->verbs.name, sizeof device->verbs.name - 1);
    found.push_back(&device->verbs);
  }
  if (names != nullptr) ::if_freenameindex(names);
  auto** list = new ibv_device* [found.size() + 1] {};
  std::copy(found.begin(), found.end(), list);
  if (count != nullptr) *count = static_cast<int>(found.size());
  return list;
}

// An open device stays; that is a few bytes for each context.
void ibv_free_device_list(ibv_device** list) {
  for (ibv_device** at = list; *at != nullptr; ++at) {
    auto* device = reinterpret_cast<Device*>(*at);
    if (device->room[0] == std::byte{0}) delete device;
  }
  delete[] list;
}

const char* ibv_get_device_name(ibv_device* device) { return device->name; }

ibv_context* ibv_open_device(ibv_device* device) {
  auto* context = new Context;
  context->verbs.sz = sizeof(verbs_context);
  context->verbs.query_port = query_port;
  context->verbs.query_device_ex = query_device_ex;
  context->verbs.ibv_create_flow = create_flow;
  context->verbs.ibv_destroy_flow = destroy_flow;
  ibv_context& verbs = context->verbs.context;
  verbs.device = device;
  verbs.ops.poll_cq = poll_cq;
  verbs.ops.req_notify_cq = req_notify_cq;
  verbs.ops.post_send = post_send;
  verbs.ops.post_recv = post_recv;
  verbs.cmd_fd = verbs.async_fd = -1;
  verbs.abi_compat = __VERBS_ABI_IS_EXTENDED;
  reinterpret_cast<Device*>(device)->room[0] = std::byte{1};
  return &verbs;
}

int ibv_close_device(ibv_context* context) {
  Context& object = context_of(context);
  if (object.objects != 0) return EBUSY;
  delete reinterpret_cast<Device*>(context->device);
  delete &object;
  return 0;
}

ssize_t _ibv_query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t most,
                             std::uint32_t, std::size_t) {
  if (most == 0) return 0;
  entries[0] = {};
  entries[0].port_num = 1;
  entries[0].ndev_ifindex =
      static_cast<std::uint32_t>(reinterpret_cast<Device*>(context->device)->index);
  return 1;
}

ibv_pd* ibv_alloc_pd(ibv_context* context) {
  ++context_of(context).objects;
  auto* domain = new ibv_pd{};
  domain->context = context;
  return domain;
}

int ibv_dealloc_pd(ibv_pd* domain) {
  Context& context = context_of(domain->context);
  for (const Region& region : context.regions) {
    if (region.verbs.pd == domain) return EBUSY;
  }
  --context.objects;
  delete domain;
  return 0;
}

ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t length, int access) {
  if (reinterpret_cast<std::uintptr_t>(address) + length < length) return refuse<ibv_mr>(EFAULT);
  Context& context = context_of(domain->context);
  Region& region = context.regions.emplace_back();
  region.access = static_cast<std::uint32_t>(access);
  region.verbs.context = domain->context;
  region.verbs.pd = domain;
  region.verbs.addr = address;
  region.verbs.length = length;
  region.verbs.lkey = region.verbs.rkey = context.next_key++;
  return &region.verbs;
}

ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* domain, std::uint64_t offset, std::size_t length,
                          std::uint64_t address, int fd, int access) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (lacks("no_dmabuf")) return refuse<ibv_mr>(EOPNOTSUPP);
  if (offset % page != address % page) return refuse<ibv_mr>(EINVAL);
  void* const mapping = ::mmap(nullptr, offset + length, PROT_READ, MAP_SHARED, fd, 0);
  if (mapping == MAP_FAILED) return nullptr;
  ibv_mr* const made = ibv_reg_mr(domain, reinterpret_cast<void*>(address), length, access);
  Region& region = context_of(domain->context).regions.back();
  region.dmabuf = static_cast<std::byte*>(mapping);
  region.offset = offset;
  return made;
}

ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t length, std::uint64_t,
                         unsigned access) {
  return ibv_reg_mr(domain, address, length, static_cast<int>(access));
}

int ibv_dereg_mr(ibv_mr* region) {
  context_of(region->context).regions.remove_if([region](const Region& other) {
    if (&other.verbs != region) return false;
    if (other.dmabuf != nullptr) ::munmap(other.dmabuf, other.offset + other.verbs.length);
    return true;
  });
  return 0;
}

ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  const int fd = ::epoll_create1(EPOLL_CLOEXEC);
  if (fd < 0) return nullptr;
  ++context_of(context).objects;
  auto* channel = new ibv_comp_channel{};
  channel->context = context;
  channel->fd = fd;
  return channel;
}

int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  if (channel->refcnt != 0) return EBUSY;
  --context_of(channel->context).objects;
  ::close(channel->fd);
  delete channel;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** queue, void** context) {
  const bool blocks = (::fcntl(channel->fd, F_GETFL) & O_NONBLOCK) == 0;
  epoll_event event{};
  const int count = ::epoll_wait(channel->fd, &event, 1, blocks ? -1 : 0);
  if (count <= 0) {
    if (count == 0) errno = EAGAIN;
    return -1;
  }
  *queue = static_cast<ibv_cq*>(event.data.ptr);
  *context = (*queue)->cq_context;
  ++queue_of(*queue).events;
  return 0;
}

void ibv_ack_cq_events(ibv_cq* queue, unsigned count) {
  queue_of(queue).events -= static_cast<int>(count);
}

ibv_cq* ibv_create_cq(ibv_context* context, int most, void* cq_context, ibv_comp_channel* channel,
                      int) {
  ++context_of(context).objects;
  auto* queue = new Queue;
  queue->most = most;
  queue->verbs.context = context;
  queue->verbs.channel = channel;
  queue->verbs.cq_context = cq_context;
  queue->verbs.cqe = most;
  if (channel != nullptr) ++channel->refcnt;
  return &queue->verbs;
}

int ibv_destroy_cq(ibv_cq* cq) {
  Queue& queue = queue_of(cq);
  if (!queue.pairs.empty()) return EBUSY;
  if (queue.events != 0) std::abort();  // the real one waits for the acknowledgement
  if (cq->channel != nullptr) --cq->channel->refcnt;
  --context_of(cq->context).objects;
  delete &queue;
  return 0;
}

ibv_qp* ibv_create_qp(ibv_pd* domain, ibv_qp_init_attr* attributes) {
  if (lacks("no_raw_packet") || attributes->qp_type != IBV_QPT_RAW_PACKET) {
    return refuse<ibv_qp>(EOPNOTSUPP);
  }
  const ibv_qp_cap& cap = attributes->cap;
  if (cap.max_inline_data > kMostInline || cap.max_send_sge > kMostPieces ||
      cap.max_send_wr > kMostWork || cap.max_recv_wr > kMostWork) {
    return refuse<ibv_qp>(EINVAL);
  }
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return nullptr;
  const int on = 1;
  ::setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof on);
  ::setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on);
  for (const int option : {SO_RCVBUFFORCE, SO_SNDBUFFORCE}) {
    ::setsockopt(fd, SOL_SOCKET, option, &kSocketBytes, sizeof kSocketBytes);
  }
  ++context_of(domain->context).objects;
  auto* pair = new Pair;
  pair->attributes = *attributes;
  pair->socket = fd;
  static std::uint32_t next_number = 1;
  pair->verbs.qp_num = next_number++;
  pair->verbs.context = domain->context;
  pair->verbs.pd = domain;
  pair->verbs.qp_type = IBV_QPT_RAW_PACKET;
  pair->verbs.state = IBV_QPS_RESET;
  pair->verbs.send_cq = attributes->send_cq;
  pair->verbs.recv_cq = attributes->recv_cq;
  queue_of(attributes->send_cq).pairs.push_back(pair);
  if (attributes->recv_cq != attributes->send_cq) {
    queue_of(attributes->recv_cq).pairs.push_back(pair);
  }
  return &pair->verbs;
}

int ibv_modify_qp(ibv_qp* qp, ibv_qp_attr* attributes, int mask) {
  if ((mask & IBV_QP_STATE) == 0) return EINVAL;
  Pair& pair = pair_of(qp);
  const ibv_qp_state to = attributes->qp_state;
  const bool with_port = (mask & IBV_QP_PORT) != 0 && attributes->port_num == 1;
  if (to == IBV_QPS_RESET) {
    pair.sends.clear();
    pair.receives.clear();
    pair.places.clear();
  } else if (to == IBV_QPS_ERR) {
    go_to_error(pair);
  } else if (!(to == IBV_QPS_INIT && qp->state == IBV_QPS_RESET && with_port) &&
             !(to == IBV_QPS_RTR && qp->state == IBV_QPS_INIT && mask == IBV_QP_STATE) &&
             !(to == IBV_QPS_RTS && qp->state == IBV_QPS_RTR && mask == IBV_QP_STATE)) {
    return EINVAL;
  }
  if (to == IBV_QPS_RTR && !pair.bound && !bind_to_interface(pair, false)) return errno;
  qp->state = to;
  return 0;
}

int ibv_destroy_qp(ibv_qp* qp) {
  Pair& pair = pair_of(qp);
  if (!pair.rules.empty()) return EBUSY;
  for (ibv_cq* queue : {qp->send_cq, qp->recv_cq}) std::erase(queue_of(queue).pairs, &pair);
  --context_of(qp->context).objects;
  ::close(pair.socket);
  delete &pair;
  return 0;
}

// Everything that others who are linked to the library ask it for (stubs).
int uet_fake_verbs_has_not() {
  errno = ENOSYS;
  return ENOSYS;
}

}  // extern "C"
