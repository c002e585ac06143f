// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The first process loads the program; later processes find it among the kernel's programs by the
// address in its map. One process at a time joins (Turn), so that two do not both load a program.
#include "nic/shared_port.h"

#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "nic/bpf.h"
#include "nic/guard_map.h"
#include "nic/interface.h"
#include "nic/shared_steer.h"
#include "nic/socket.h"
#include "shared_steer_image.h"

namespace uet::nic {
namespace {

static_assert(UET_SLOTS == kSharedSlots);

constexpr const char* kProgramName = UET_NAME_OF(UET_SHARED_PROGRAM);
constexpr std::string_view kSlotsName = UET_NAME_OF(UET_SHARED_SLOTS);
constexpr std::string_view kPortName = UET_NAME_OF(UET_SHARED_PORT);
constexpr std::string_view kGuardsName = UET_NAME_OF(UET_SHARED_GUARDS);

// Joining takes a millisecond; a process that has the turn for so long is stuck.
constexpr std::chrono::seconds kPatience(5);
constexpr std::chrono::milliseconds kPause(1);

// One process at a time joins at an address: it binds a socket name that no other process can have
// meanwhile, and that the kernel frees when the process ends.
class Turn {
 public:
  // Waits for the turn. False, with errno: the turn does not come.
  bool take(const FabricAddress& ip) {
    std::string name(1, '\0');
    name += "uet-shared-2-" + to_text(ip);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    holder_ = FileDescriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (::bind(holder_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      if (errno != EADDRINUSE || std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(kPause);
    }
    return true;
  }

 private:
  FileDescriptor holder_;
};

struct Steering {
  FileDescriptor program;
  FileDescriptor slots;
  FileDescriptor port;
  FileDescriptor guards;

  bool has_maps() const { return slots.valid() && port.valid() && guards.valid(); }
};

// The identity of the port among other addresses and network name spaces.
UetSharedPort name_of(const FabricAddress& ip) {
  UetSharedPort port{};
  struct stat name_space {};
  if (::stat("/proc/self/ns/net", &name_space) == 0) {
    port.name_space[0] = name_space.st_dev;
    port.name_space[1] = name_space.st_ino;
  }
  std::memcpy(port.ip, ip.bytes.data(), sizeof port.ip);
  port.is_ipv6 = ip.is_ipv6 ? 1 : 0;
  return port;
}

bool same_port(const UetSharedPort& a, const UetSharedPort& b) {
  return std::memcmp(&a, &b, offsetof(UetSharedPort, dropped)) == 0;
}

// Stores map `id` in `steering` if it is one of the maps of the program.
void take_map(std::uint32_t id, Steering& steering) {
  FileDescriptor map(bpf_map_get_fd_by_id(id));
  bpf_map_info info{};
  if (!map.valid() || !read_info(map.get(), info)) return;
  const std::string_view name(info.name);
  if (name == kSlotsName && info.max_entries == kSharedSlots) {
    steering.slots = std::move(map);
  } else if (name == kPortName && info.value_size == sizeof(UetSharedPort)) {
    steering.port = std::move(map);
  } else if (name == kGuardsName) {
    steering.guards = std::move(map);
  }
}

std::optional<UetSharedPort> read_port(const FileDescriptor& map) {
  const std::uint32_t first = 0;
  UetSharedPort port{};
  if (bpf_map_lookup_elem(map.get(), &first, &port) != 0) return {};
  return port;
}

// The kernel frees a program some time after its last socket.
bool has_sockets(const Steering& steering) {
  for (std::uint32_t slot = 0; slot < kSharedSlots; ++slot) {
    std::uint64_t cookie = 0;
    if (bpf_map_lookup_elem(steering.slots.get(), &slot, &cookie) == 0) return true;
  }
  return false;
}

// True with the program of this port; false with errno: ENOENT (there is none), EPERM.
bool find(const UetSharedPort& wanted, Steering& found) {
  for (std::uint32_t id = 0; bpf_prog_get_next_id(id, &id) == 0;) {
    Steering steering;
    steering.program = FileDescriptor(bpf_prog_get_fd_by_id(id));
    if (!steering.program.valid()) {
      if (errno == ENOENT) continue;  // it has just gone
      return false;
    }
    std::array<std::uint32_t, 8> maps{};
    bpf_prog_info info{};
    info.nr_map_ids = maps.size();
    info.map_ids = reinterpret_cast<std::uintptr_t>(maps.data());
    if (!read_info(steering.program.get(), info)) return false;
    if (info.type != BPF_PROG_TYPE_SK_REUSEPORT || std::string_view(info.name) != kProgramName) {
      continue;
    }
    for (std::size_t i = 0; i < std::min<std::size_t>(info.nr_map_ids, maps.size()); ++i) {
      take_map(maps[i], steering);
    }
    if (!steering.has_maps()) continue;
    const auto port = read_port(steering.port);
    if (!port || !same_port(*port, wanted) || !has_sockets(steering)) continue;
    found = std::move(steering);
    return true;
  }
  return false;  // with ENOENT behind the last one, or EPERM
}

// Returns 0 or errno.
int load(const UetSharedPort& name, Steering& steering) {
  const QuietBpf quiet;
  const std::unique_ptr<bpf_object, BpfObjectFree> object(
      bpf_object__open_mem(kSharedSteerImage.data(), kSharedSteerImage.size(), nullptr));
  if (!object) return errno;
  if (const int error = -bpf_object__load(object.get())) return error;
  const auto map = [&](std::string_view wanted) {
    return duplicate(bpf_object__find_map_fd_by_name(object.get(), wanted.data()));
  };
  steering.program =
      duplicate(bpf_program__fd(bpf_object__find_program_by_name(object.get(), kProgramName)));
  steering.slots = map(kSlotsName);
  steering.port = map(kPortName);
  steering.guards = map(kGuardsName);
  if (!steering.program.valid() || !steering.has_maps()) return EMFILE;
  const std::uint32_t first = 0;
  return bpf_map_update_elem(steering.port.get(), &first, &name, BPF_ANY) == 0 ? 0 : errno;
}

// Returns 0 or errno.
int bind_to(int socket, const FabricAddress& ip, std::uint16_t port) {
  SocketAddress address;
  write_socket_address(FepAddress{ip, port}, address);
  return ::bind(socket, &address.any, socket_address_length(ip.is_ipv6)) == 0 ? 0 : errno;
}

// Returns 0 if the port is free, or errno: EADDRINUSE if sockets of other software have it.
int try_port(const FabricAddress& ip) {
  const FileDescriptor probe(
      ::socket(ip.is_ipv6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe.valid() ? bind_to(probe.get(), ip, kUetUdpPort) : errno;
}

// Returns the slot, or errno negated.
int bind_slot(const FabricAddress& ip, std::optional<std::uint8_t> wanted, int sender) {
  const int first = wanted ? *wanted : 0;
  const int end = wanted ? first + 1 : int{kSharedSlots};
  for (int slot = first; slot < end; ++slot) {
    const int error = bind_to(sender, ip, static_cast<std::uint16_t>(kFirstSlotPort + slot));
    if (error == 0) return slot;
    if (error != EADDRINUSE) return -error;
  }
  return -EADDRINUSE;
}

bool share_port(int receiver, const FabricAddress& ip, int slot, const Steering& steering,
                const GuardMap& guard) {
  const int on = 1;
  const int program = steering.program.get();
  if (::setsockopt(receiver, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0) return false;
  if (const int error = bind_to(receiver, ip, kUetUdpPort)) {
    errno = error;
    return false;
  }
  // The group has it already, unless its last socket has just been closed.
  if (::setsockopt(receiver, SOL_SOCKET, SO_ATTACH_REUSEPORT_EBPF, &program, sizeof program) != 0) {
    return false;
  }
  const auto key = static_cast<std::uint32_t>(slot);
  const auto socket = static_cast<std::uint64_t>(receiver);
  const int guard_map = guard.fd();
  if (bpf_map_update_elem(steering.guards.get(), &key, &guard_map, BPF_ANY) != 0) return false;
  return bpf_map_update_elem(steering.slots.get(), &key, &socket, BPF_ANY) == 0;
}

Error explain(int error, const FabricAddress& ip, std::string& message) {
  const std::string ip_text = to_text(ip);
  switch (error) {
    case EPERM:
    case EACCES:
      message = "no right to share port 4793 of " + ip_text +
                ": the program that tells the processes' packets apart needs CAP_BPF and "
                "CAP_SYS_ADMIN (setcap cap_bpf,cap_sys_admin+ep, or root)";
      return Error::NotSupported;
    case EADDRINUSE:
      message =
          "port 4793 of " + ip_text +
          " is taken by a socket that does not share it, or by another user's: see 'ss -ulpn'";
      return Error::AddressInUse;
    case EADDRNOTAVAIL:
      message = ip_text + " is not an address of this host, or not ready yet: see 'ip address'";
      return Error::NoDevice;
    default:
      message = "port 4793 of " + ip_text + " cannot be shared: " + error_text(error);
      return error == EMFILE || error == ENFILE ? error_of(error) : Error::NotSupported;
  }
}

}  // namespace

Result<UdpBinding> join_shared_port(const FabricAddress& ip, std::optional<std::uint8_t> wanted,
                                    int receiver, int sender, std::string& message) {
  Turn turn;
  if (!turn.take(ip)) return explain(errno, ip, message);
  const UetSharedPort name = name_of(ip);
  Steering steering;
  if (!find(name, steering)) {
    if (errno != ENOENT) return explain(errno, ip, message);
    // A foreign group of sockets would accept our socket, and its packets would be lost.
    if (const int error = try_port(ip)) return explain(error, ip, message);
    if (const int error = load(name, steering)) return explain(error, ip, message);
  }
  const int slot = bind_slot(ip, wanted, sender);
  if (slot == -EADDRINUSE) {
    message = wanted ? "slot " + std::to_string(*wanted) + " at port 4793 of " + to_text(ip) +
                           " is another process's"
                     : "all " + std::to_string(kSharedSlots) + " slots at port 4793 of " +
                           to_text(ip) + " are taken";
    return Error::AddressInUse;
  }
  if (slot < 0) return explain(-slot, ip, message);
  std::shared_ptr<GuardMap> guard = GuardMap::make();
  if (guard == nullptr || !share_port(receiver, ip, slot, steering, *guard)) {
    return explain(errno, ip, message);
  }
  const auto map = std::make_shared<FileDescriptor>(std::move(steering.port));
  return UdpBinding{.address = {ip, static_cast<std::uint16_t>(kFirstSlotPort + slot)},
                    .dropped =
                        [map] {
                          const auto port = read_port(*map);
                          return port ? port->dropped : 0;
                        },
                    .guard = std::move(guard)};
}

std::optional<std::uint64_t> dropped_at_shared_port(const FabricAddress& ip) {
  Steering steering;
  if (!find(name_of(ip), steering)) return {};
  const auto port = read_port(steering.port);
  if (!port) return {};
  return port->dropped;
}

}  // namespace uet::nic
