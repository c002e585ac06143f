// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A BPF link attaches the program, because it vanishes with its last descriptor; a program that is
// attached through netlink would outlive a process that is killed. Later processes get the
// descriptors of program, maps and link from the kernel.
#include "nic/xdp_program.h"

#include <linux/if_link.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "nic/bpf.h"
#include "nic/xdp_endpoint.h"
#include "nic/xdp_redirect.h"
#include "xdp_redirect_image.h"

namespace uet::nic {
namespace {

constexpr const char* kProgramName = UET_NAME_OF(UET_XDP_PROGRAM);
constexpr std::string_view kEndpointsName = UET_NAME_OF(UET_XDP_ENDPOINTS);
constexpr std::string_view kSocketsName = UET_NAME_OF(UET_XDP_SOCKETS);
constexpr std::string_view kGuardsName = UET_NAME_OF(UET_XDP_GUARDS);
constexpr std::string_view kQueueOfName = UET_NAME_OF(UET_XDP_QUEUE_OF);

// How often, and after which pause, opening starts again when others open or close at that moment.
constexpr int kTries = 50;
constexpr std::chrono::milliseconds kPause(4);

std::string explain(const Interface& interface, const std::string& what, int error) {
  std::string text = "FI_UET_NIC=xdp on " + interface.name + ": " + what + ": " + error_text(error);
  if (error == EPERM || error == EACCES) {
    return text +
           "; an XDP program needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and to share that of "
           "another process "
           "CAP_SYS_ADMIN: run as root, give the program the rights with "
           "'setcap cap_net_raw,cap_bpf,cap_net_admin,cap_sys_admin+ep', or use FI_UET_NIC=udp";
  }
  if (error == ENOMEM || error == ENOBUFS) {
    return text + "; raise the limit of locked memory (ulimit -l), or give CAP_IPC_LOCK";
  }
  if (error == ERANGE || error == EINVAL || error == ENOSPC) {
    return text +
           "; the driver may want a smaller MTU or fewer queues for XDP (dmesg says which): "
           "try FI_UET_NIC=xdp:generic";
  }
  return text + "; try FI_UET_NIC=xdp:generic, or use FI_UET_NIC=udp";
}

}  // namespace

int XdpProgram::load(XdpProgram& program) {
  const QuietBpf quiet;
  int error = EINVAL;
  // A kernel from before 5.18 does not know programs that take frames of several buffers.
  for (const bool frags : {true, false}) {
    const std::unique_ptr<bpf_object, BpfObjectFree> object(
        bpf_object__open_mem(kXdpRedirectImage.data(), kXdpRedirectImage.size(), nullptr));
    if (!object) return errno;
    bpf_program* const found = bpf_object__find_program_by_name(object.get(), kProgramName);
    if (!frags) bpf_program__set_flags(found, 0);
    error = -bpf_object__load(object.get());
    if (error == EINVAL) continue;
    if (error != 0) break;
    const auto map = [&](std::string_view name) {
      return duplicate(bpf_object__find_map_fd_by_name(object.get(), name.data()));
    };
    program.program_ = duplicate(bpf_program__fd(found));
    program.endpoints_ = map(kEndpointsName);
    program.sockets_ = map(kSocketsName);
    program.guards_ = map(kGuardsName);
    program.queue_of_ = map(kQueueOfName);
    return program.program_.valid() && program.has_maps() ? 0 : EMFILE;
  }
  return error;
}

Result<XdpProgram> XdpProgram::open(const Interface& interface, bool generic,
                                    std::string& message) {
  int error = EBUSY;
  for (int i = 0; i < kTries && error == EBUSY; ++i) {
    if (i > 0) std::this_thread::sleep_for(kPause);
    bpf_xdp_query_opts attached{};
    attached.sz = sizeof attached;
    if (const int result = bpf_xdp_query(interface.index, 0, &attached); result != 0) {
      message = explain(interface, "cannot ask which XDP program is attached", -result);
      return Error::NotSupported;
    }
    if (attached.attach_mode == XDP_ATTACHED_NONE) {
      XdpProgram program;
      if (const int refused = load(program); refused != 0) {
        message = explain(interface, "cannot load the XDP program", refused);
        return Error::NotSupported;
      }
      error = program.attach(interface, generic);
      if (error == 0) return program;
      continue;
    }
    XdpProgram program;
    program.generic_ = attached.attach_mode == XDP_ATTACHED_SKB;
    const std::uint32_t id = program.generic_ ? attached.skb_prog_id : attached.drv_prog_id;
    if (program.join(interface, id)) return program;
    error = errno;
    if (error == EEXIST) {
      message = "FI_UET_NIC=xdp on " + interface.name +
                ": another XDP program is attached, and there can only be one: end the program "
                "that has attached it, or remove it with 'ip link set dev " +
                interface.name + " xdp off' (see 'ip link show " + interface.name + "')";
      return Error::AddressInUse;
    }
    if (error == ENOENT) error = EBUSY;  // its last process has just ended
  }
  message = explain(interface, "cannot attach the XDP program", error);
  return Error::NotSupported;
}

// Returns 0 or errno; EBUSY: another process attached its program first.
int XdpProgram::attach(const Interface& interface, bool generic) {
  const QuietBpf quiet;
  int error = EOPNOTSUPP;
  for (const bool behind : {false, true}) {
    if (!behind && generic) continue;
    bpf_link_create_opts options{};
    options.sz = sizeof options;
    options.flags = behind ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
    const int link = bpf_link_create(program_.get(), interface.index, BPF_XDP, &options);
    if (link >= 0) {
      link_ = FileDescriptor(link);
      generic_ = behind;
      return 0;
    }
    error = -link;
    if (error != EOPNOTSUPP) break;
  }
  return error;
}

// False with errno: EEXIST (not ours), ENOENT (gone meanwhile), EPERM.
bool XdpProgram::join(const Interface& interface, std::uint32_t program_id) {
  program_ = FileDescriptor(bpf_prog_get_fd_by_id(program_id));
  if (!program_.valid()) return false;
  std::array<std::uint32_t, 8> maps{};
  bpf_prog_info info{};
  info.nr_map_ids = maps.size();
  info.map_ids = reinterpret_cast<std::uintptr_t>(maps.data());
  if (!read_info(program_.get(), info)) return false;
  const bool ours = std::string_view(info.name) == kProgramName;
  for (std::size_t i = 0; ours && i < std::min<std::size_t>(info.nr_map_ids, maps.size()); ++i) {
    if (!find_map(maps[i])) return false;
  }
  if (!has_maps()) {
    errno = EEXIST;
    return false;
  }
  // Indices of interfaces are those of a name space, identifiers of programs are not.
  for (std::uint32_t id = 0; bpf_link_get_next_id(id, &id) == 0;) {
    FileDescriptor link(bpf_link_get_fd_by_id(id));
    bpf_link_info about{};
    if (!link.valid() || !read_info(link.get(), about) || about.type != BPF_LINK_TYPE_XDP) continue;
    if (about.prog_id != program_id) continue;
    // A link without an interface is about to go.
    if (about.xdp.ifindex != static_cast<std::uint32_t>(interface.index)) continue;
    link_ = std::move(link);
    return true;
  }
  errno = ENOENT;
  return false;
}

bool XdpProgram::find_map(std::uint32_t id) {
  FileDescriptor map(bpf_map_get_fd_by_id(id));
  bpf_map_info info{};
  if (!map.valid() || !read_info(map.get(), info)) return false;
  const std::string_view name(info.name);
  if (name == kEndpointsName && info.value_size == sizeof(UetXdpEndpoint)) {
    endpoints_ = std::move(map);
  } else if (name == kSocketsName) {
    sockets_ = std::move(map);
  } else if (name == kGuardsName) {
    guards_ = std::move(map);
  } else if (name == kQueueOfName) {
    queue_of_ = std::move(map);
  }
  return true;
}

// A place that has a socket does not take another one: the kernel empties it while that socket is
// closed, long before it frees the queue itself.
bool XdpProgram::claim_queue(std::uint32_t queue, int socket) {
  const UetXdpEndpoint nobody{};
  return bpf_map_update_elem(sockets_.get(), &queue, &socket, BPF_NOEXIST) == 0 &&
         bpf_map_update_elem(endpoints_.get(), &queue, &nobody, BPF_ANY) == 0;
}

// The guard comes before the endpoint, without which the program does not ask it.
bool XdpProgram::give_queue(std::uint32_t queue, const Owner& owner) {
  const UetXdpEndpoint endpoint = xdp_endpoint(owner.self, owner.protocol);
  return bpf_map_update_elem(guards_.get(), &queue, &owner.guard, BPF_ANY) == 0 &&
         bpf_map_update_elem(sockets_.get(), &queue, &owner.socket, BPF_ANY) == 0 &&
         bpf_map_update_elem(endpoints_.get(), &queue, &endpoint, BPF_ANY) == 0 &&
         bpf_map_update_elem(queue_of_.get(), &endpoint, &queue, BPF_ANY) == 0;
}

}  // namespace uet::nic
