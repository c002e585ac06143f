// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Finding a device, bringing its queue pair up, and the rule that steers our packets to it; what it
// refuses is told with what to do about it.
#include "nic/verbs_port.h"

#include <endian.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "nic/socket.h"

namespace uet::nic {
namespace {

constexpr std::size_t kMostGids = 1024;
constexpr std::uint32_t kControlSends = 128;

std::string begin_message(const Interface& interface) {
  return "FI_UET_NIC=verbs on " + interface.name + ": ";
}

struct DeviceList {
  DeviceList() : all(ibv_get_device_list(&count)), error(errno) {}
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;
  ~DeviceList() {
    if (all != nullptr) ibv_free_device_list(all);
  }
  std::span<ibv_device*> devices() const {
    return {all, all == nullptr ? 0 : static_cast<std::size_t>(count)};
  }
  std::string names() const {
    std::string text;
    for (ibv_device* device : devices()) {
      text += (text.empty() ? "" : ", ") + std::string(ibv_get_device_name(device));
    }
    return text;
  }
  int count = 0;
  ibv_device** all;
  int error;
};

// The port that `interface` is of, or 0. RoCE's table of addresses tells; without RoCE sysfs does.
// A VLAN is of the port that carries it.
std::uint8_t port_of(ibv_context* context, const Interface& interface) {
  std::string name = interface.name;
  int below = interface.index;
  if (interface.vlan) {
    below = interface.vlan->interface_index;
    std::array<char, IF_NAMESIZE> text{};
    if (::if_indextoname(static_cast<unsigned>(below), text.data()) != nullptr) name = text.data();
  }
  std::vector<ibv_gid_entry> gids(kMostGids);
  const ssize_t count = ibv_query_gid_table(context, gids.data(), gids.size(), 0);
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& gid = gids[static_cast<std::size_t>(i)];
    const auto index = static_cast<int>(gid.ndev_ifindex);
    if (index == interface.index || index == below) {
      return static_cast<std::uint8_t>(gid.port_num);
    }
  }
  namespace fs = std::filesystem;
  const fs::path net = fs::path(context->device->ibdev_path) / "device/net" / name;
  std::error_code ignored;
  if (context->device->ibdev_path[0] == '\0' || !fs::exists(net, ignored)) return 0;
  unsigned number = 0;
  std::ifstream(net / "dev_port") >> number;
  return static_cast<std::uint8_t>(number + 1);
}

// Opens the device; `port`: which of its ports it is.
Result<VerbsPointer<ibv_context>> find(const Interface& interface, const VerbsOptions& options,
                                       std::uint8_t& port, std::string& message) {
  const DeviceList list;
  message = begin_message(interface);
  if (list.devices().empty()) {
    message += "there is no RDMA device" +
               (list.all == nullptr ? " (" + error_text(list.error) + ")" : std::string()) +
               "; load the driver of the NIC (see 'rdma link'), or use FI_UET_NIC=udp";
    return Error::NoDevice;
  }
  const bool named = !options.device.empty();
  for (ibv_device* device : list.devices()) {
    if (named && options.device != ibv_get_device_name(device)) continue;
    VerbsPointer<ibv_context> context(ibv_open_device(device));
    if (context == nullptr) {
      if (!named) continue;
      message += "cannot open the device " + options.device + ": " + error_text(errno) +
                 "; is /dev/infiniband/ readable, and the driver's library installed "
                 "(ibverbs-providers)?";
      return Error::NotSupported;
    }
    const std::uint8_t found = port_of(context.get(), interface);
    if (!named && (found == 0 || (options.port != 0 && options.port != found))) continue;
    port = options.port != 0 ? options.port : std::max<std::uint8_t>(found, 1);
    return context;
  }
  message += named ? "there is no RDMA device " + options.device + ", only " + list.names()
                   : "it belongs to none of the RDMA devices " + list.names() +
                         ": name another interface by FI_UET_IFACE, or the device as "
                         "FI_UET_NIC=verbs:DEVICE";
  return Error::NoDevice;
}

// ---- steering -----------------------------------------------------------------------------------

// An attribute block with the rules behind it, as ibv_create_flow reads it.
class FlowRule {
 public:
  explicit FlowRule(std::uint8_t port) {
    attributes_.type = IBV_FLOW_ATTR_NORMAL;
    attributes_.size = sizeof attributes_;
    attributes_.port = port;
  }
  template <class Spec>
  void add(Spec spec) {
    spec.size = sizeof spec;
    std::memcpy(bytes_.data() + attributes_.size, &spec, sizeof spec);
    attributes_.size = static_cast<std::uint16_t>(attributes_.size + sizeof spec);
    ++attributes_.num_of_specs;
  }
  ibv_flow* create(ibv_qp* queue_pair) {
    std::memcpy(bytes_.data(), &attributes_, sizeof attributes_);
    return ibv_create_flow(queue_pair, reinterpret_cast<ibv_flow_attr*>(bytes_.data()));
  }

 private:
  ibv_flow_attr attributes_{};
  alignas(ibv_flow_attr) std::array<std::byte, 512> bytes_{};
};

void add_ethernet(FlowRule& rule, const Interface& interface) {
  ibv_flow_spec_eth ethernet{};
  ethernet.type = IBV_FLOW_SPEC_ETH;
  std::copy(interface.mac.begin(), interface.mac.end(), std::begin(ethernet.val.dst_mac));
  std::fill(std::begin(ethernet.mask.dst_mac), std::end(ethernet.mask.dst_mac), 0xFF);
  if (interface.vlan) {
    ethernet.val.vlan_tag = htobe16(interface.vlan->id);
    ethernet.mask.vlan_tag = htobe16(wire::kVlanIdMask);
  }
  rule.add(ethernet);
}

void add_ip(FlowRule& rule, const FabricAddress& ip, std::optional<std::uint8_t> protocol) {
  if (ip.is_ipv6) {
    ibv_flow_spec_ipv6 spec{};
    spec.type = IBV_FLOW_SPEC_IPV6;
    std::copy(ip.bytes.begin(), ip.bytes.end(), std::begin(spec.val.dst_ip));
    std::fill(std::begin(spec.mask.dst_ip), std::end(spec.mask.dst_ip), 0xFF);
    spec.val.next_hdr = protocol.value_or(0);
    spec.mask.next_hdr = protocol ? 0xFF : 0;
    rule.add(spec);
  } else if (protocol) {
    ibv_flow_spec_ipv4_ext spec{};
    spec.type = IBV_FLOW_SPEC_IPV4_EXT;
    std::memcpy(&spec.val.dst_ip, ip.bytes.data(), sizeof spec.val.dst_ip);
    spec.mask.dst_ip = 0xFFFFFFFF;
    spec.val.proto = *protocol;
    spec.mask.proto = 0xFF;
    rule.add(spec);
  } else {
    ibv_flow_spec_ipv4 spec{};
    spec.type = IBV_FLOW_SPEC_IPV4;
    std::memcpy(&spec.val.dst_ip, ip.bytes.data(), sizeof spec.val.dst_ip);
    spec.mask.dst_ip = 0xFFFFFFFF;
    rule.add(spec);
  }
}

void add_udp(FlowRule& rule, std::uint16_t port) {
  ibv_flow_spec_tcp_udp spec{};
  spec.type = IBV_FLOW_SPEC_UDP;
  spec.val.dst_port = htobe16(port);
  spec.mask.dst_port = 0xFFFF;
  rule.add(spec);
}

}  // namespace

void VerbsDelete::operator()(ibv_context* object) const { ibv_close_device(object); }
void VerbsDelete::operator()(ibv_pd* object) const { ibv_dealloc_pd(object); }
void VerbsDelete::operator()(ibv_mr* object) const { ibv_dereg_mr(object); }
void VerbsDelete::operator()(ibv_comp_channel* object) const { ibv_destroy_comp_channel(object); }
void VerbsDelete::operator()(ibv_cq* object) const { ibv_destroy_cq(object); }
void VerbsDelete::operator()(ibv_qp* object) const { ibv_destroy_qp(object); }
void VerbsDelete::operator()(ibv_flow* object) const { ibv_destroy_flow(object); }

Result<VerbsOptions> parse_verbs_options(std::string_view text, std::string& message) {
  VerbsOptions options;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string_view item = text.substr(start, end - start);
    const std::string_view number = item.substr(std::min<std::size_t>(item.size(), 5));
    const char* const last = number.data() + number.size();
    bool good = !item.empty();
    if (item.starts_with("port=")) {
      const auto parsed = std::from_chars(number.data(), last, options.port);
      good = parsed.ec == std::errc{} && parsed.ptr == last && options.port != 0;
    } else if (good) {
      good = start == 0 && item.find('=') == std::string_view::npos;
      options.device = item;
    }
    if (!good) {
      message = "FI_UET_NIC=verbs: '" + std::string(item) +
                "' is no option of it; allowed: verbs[:DEVICE][,port=N][,native], as in "
                "verbs:mlx5_0,port=1";
      return Error::Invalid;
    }
    start = end + 1;
  }
  return options;
}

Result<std::unique_ptr<VerbsPort>> VerbsPort::open(const Interface& interface,
                                                   const VerbsOptions& options, VerbsQueues queues,
                                                   std::string& message) {
  std::error_code ignored;
  if (!interface.vlan && std::filesystem::exists("/proc/net/vlan/" + interface.name, ignored)) {
    message = begin_message(interface) +
              "a VLAN interface with other tags than 802.1Q's; use FI_UET_NIC=packet";
    return Error::NotSupported;
  }
  std::unique_ptr<VerbsPort> port(new VerbsPort);
  auto context = find(interface, options, port->port_, message);
  if (!context) return context.error();
  port->context_ = std::move(context).value();
  if (const auto error = port->create(interface, queues, message)) return *error;
  message.clear();
  return port;
}

std::optional<Error> VerbsPort::create(const Interface& interface, VerbsQueues wished,
                                       std::string& message) {
  message = begin_message(interface);
  const auto refused = [&](const char* what) {
    const int error = errno;
    message += std::string(what) + ": " + error_text(error);
    if (error == ENOMEM) {
      message += "; allow more locked memory (ulimit -l), or a smaller FI_UET_SOCKET_BUFFER_BYTES";
      return Error::NoMemory;
    }
    message += "; see 'rdma link', or use FI_UET_NIC=udp";
    return Error::NotSupported;
  };
  ibv_port_attr state{};
  if (const int error = ibv_query_port(context_.get(), port_, &state); error != 0) {
    message += "the device has no port " + std::to_string(port_) + ": " + error_text(error);
    return Error::NoDevice;
  }
  if (state.link_layer != IBV_LINK_LAYER_ETHERNET || state.state != IBV_PORT_ACTIVE) {
    message += "the port of the device is no Ethernet port, or it is down: see 'rdma link'";
    return Error::NoDevice;
  }
  ibv_device_attr_ex device{};
  if (ibv_query_device_ex(context_.get(), nullptr, &device) != 0) {
    return refused("cannot ask the device");
  }
  const auto most = static_cast<std::uint32_t>(std::max(device.orig_attr.max_qp_wr, 1));
  wished.sends = std::min(wished.sends, most);
  wished.receives = std::min(wished.receives, most);
  wished.pieces =
      std::min(wished.pieces, static_cast<std::uint32_t>(std::max(device.orig_attr.max_sge, 1)));

  domain_.reset(ibv_alloc_pd(context_.get()));
  channel_.reset(domain_ != nullptr ? ibv_create_comp_channel(context_.get()) : nullptr);
  if (channel_ == nullptr) return refused("cannot make a protection domain");
  ::fcntl(channel_->fd, F_SETFL, ::fcntl(channel_->fd, F_GETFL) | O_NONBLOCK);
  received_.reset(
      ibv_create_cq(context_.get(), static_cast<int>(wished.receives), nullptr, channel_.get(), 0));
  if (received_ == nullptr) return refused("cannot make completion queues");
  if (create_queue_pair(wished, received_.get(), main_)) {
    VerbsQueues control = wished;
    control.sends = std::min(control.sends, kControlSends);
    control.receives = 0;
    control.pieces = 1;
    static_cast<void>(create_queue_pair(control, nullptr, control_));  // else all frames share one
    return {};
  }
  if (errno == EPERM || errno == EACCES) {
    message +=
        "raw-packet queue pairs need CAP_NET_RAW: run as root, give the program the right with "
        "'setcap cap_net_raw+ep', or use FI_UET_NIC=udp";
    return Error::NotSupported;
  }
  return refused("the device gives no raw-packet queue pair");
}

// Devices differ in how much they take inline, and say so by refusing.
bool VerbsPort::create_queue_pair(VerbsQueues wished, ibv_cq* received, VerbsQueuePair& pair) {
  const int sends = static_cast<int>(wished.sends);
  pair.sent.reset(ibv_create_cq(context_.get(), sends, nullptr, nullptr, 0));
  if (pair.sent == nullptr) return false;
  for (;; wished.inline_bytes /= 2) {
    ibv_qp_init_attr attributes{};
    attributes.send_cq = pair.sent.get();
    attributes.recv_cq = received != nullptr ? received : pair.sent.get();
    attributes.qp_type = IBV_QPT_RAW_PACKET;
    attributes.cap.max_send_wr = wished.sends;
    attributes.cap.max_recv_wr = std::max(wished.receives, 1U);
    attributes.cap.max_send_sge = wished.pieces;
    attributes.cap.max_recv_sge = 1;
    attributes.cap.max_inline_data = wished.inline_bytes;
    pair.queue.reset(ibv_create_qp(domain_.get(), &attributes));
    if (pair.queue != nullptr) {
      pair.sizes = wished;
      pair.sizes.inline_bytes = attributes.cap.max_inline_data;
      return true;
    }
    if (wished.inline_bytes == 0 || (errno != EINVAL && errno != ENOMEM)) return false;
  }
}

VerbsPort::~VerbsPort() = default;

VerbsPointer<ibv_mr> VerbsPort::add_region(std::span<const std::byte> memory, bool write) {
  auto* const begin = const_cast<std::byte*>(memory.data());  // only written to if asked for
  const int access = write ? IBV_ACCESS_LOCAL_WRITE : 0;
  return VerbsPointer<ibv_mr>(ibv_reg_mr(domain_.get(), begin, memory.size(), access));
}

VerbsPointer<ibv_mr> VerbsPort::add_dmabuf(const DmabufRange& range) {
  const auto address = reinterpret_cast<std::uintptr_t>(range.memory.data());
  return VerbsPointer<ibv_mr>(
      ibv_reg_dmabuf_mr(domain_.get(), range.offset, range.memory.size(), address, range.fd, 0));
}

bool VerbsPort::modify(ibv_qp_attr& attributes, int mask) {
  if (ibv_modify_qp(main_.queue.get(), &attributes, mask) != 0) return false;
  return control_.queue == nullptr || ibv_modify_qp(control_.queue.get(), &attributes, mask) == 0;
}

bool VerbsPort::reset_and_init() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RESET;
  if (!modify(attributes, IBV_QP_STATE)) return false;
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = port_;
  return modify(attributes, IBV_QP_STATE | IBV_QP_PORT);
}

bool VerbsPort::start() {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  if (!modify(attributes, IBV_QP_STATE)) return false;
  attributes.qp_state = IBV_QPS_RTS;
  return modify(attributes, IBV_QP_STATE);
}

std::optional<Error> VerbsPort::steer(const Interface& interface, const FepAddress& self,
                                      const wire::FrameFormat& format, std::string& message) {
  const bool udp = format.encapsulation == wire::Encapsulation::Udp;
  FlowRule rule(port_);
  add_ethernet(rule, interface);
  add_ip(rule, self.ip, udp ? std::nullopt : std::optional(format.native_protocol));
  if (udp) add_udp(rule, self.port);
  flow_.reset(rule.create(main_.queue.get()));
  if (flow_ != nullptr) return {};
  const int error = errno;
  message =
      begin_message(interface) +
      "the device does not steer packets by address and port to a queue: " + error_text(error) +
      (error == EPERM ? "; give the program CAP_NET_RAW with 'setcap cap_net_raw+ep'"
                      : "; switch flow steering on where the driver has a switch for it "
                        "(mlx4: log_num_mgm_entry_size=-1)") +
      ", or use FI_UET_NIC=packet";
  return Error::NotSupported;
}

void VerbsPort::abandon() {
  static_cast<void>(flow_.release());
  for (VerbsQueuePair* pair : {&control_, &main_}) {
    static_cast<void>(pair->queue.release());
    static_cast<void>(pair->sent.release());
  }
  static_cast<void>(received_.release());
  static_cast<void>(channel_.release());
  static_cast<void>(domain_.release());
  static_cast<void>(context_.release());
}

}  // namespace uet::nic
