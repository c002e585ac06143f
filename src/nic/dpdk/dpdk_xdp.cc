// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Who has an interface is told by an abstract socket name of its name space, which goes with the
// process, in whatever way it ends.
#include "nic/dpdk_xdp.h"

#ifdef UET_DPDK_XDP
#include <linux/if_link.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "dpdk_xdp_image.h"
#include "nic/bpf.h"

namespace uet::nic {
namespace {

constexpr std::string_view kProgramName = "uet_dpdk";  // af_xdp.bpf.c

FileDescriptor own_interface(int index) {
  FileDescriptor fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "uet-dpdk-xdp-" + std::to_string(index);
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool bound = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  return bound ? std::move(fd) : FileDescriptor();
}

FileDescriptor write_file() {
  FileDescriptor file(::memfd_create("uet-xdp-program", MFD_CLOEXEC));
  const ssize_t written = ::write(file.get(), kDpdkXdpImage.data(), kDpdkXdpImage.size());
  return written == static_cast<ssize_t>(kDpdkXdpImage.size()) ? std::move(file) : FileDescriptor();
}

void detach_ours(int interface_index) {
  std::uint32_t id = 0;
  if (bpf_xdp_query_id(interface_index, 0, &id) != 0 || id == 0) return;
  const FileDescriptor program(bpf_prog_get_fd_by_id(id));
  bpf_prog_info info{};
  if (!program.valid() || !read_info(program.get(), info)) return;
  if (kProgramName != info.name) return;
  bpf_xdp_attach_opts options{};
  options.sz = sizeof options;
  options.old_prog_fd = program.get();
  bpf_xdp_detach(interface_index, XDP_FLAGS_REPLACE, &options);
}

std::optional<ino_t> number_of_xdp_socket(int fd) {
  int family = 0;
  socklen_t length = sizeof family;
  struct stat status {};
  if (::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0 || family != AF_XDP) return {};
  if (::fstat(fd, &status) != 0) return {};
  return status.st_ino;
}

// Of each descriptor of the process.
template <class Use>
void for_each_descriptor(Use use) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    use(std::atoi(entry.path().filename().c_str()));
  }
}

std::vector<XdpSocketOfProcess> sockets_of_process() {
  std::vector<XdpSocketOfProcess> all;
  for_each_descriptor([&](int fd) {
    if (const auto number = number_of_xdp_socket(fd)) all.push_back({fd, *number});
  });
  return all;
}

// The map of this name that the process has had last, by the kernel's numbers; the descriptors of
// others may be as old as this process.
FileDescriptor latest_map(std::string_view name) {
  FileDescriptor latest;
  std::uint32_t latest_number = 0;
  for_each_descriptor([&](int fd) {
    bpf_map_info info{};
    if (!read_info(fd, info) || info.type != BPF_MAP_TYPE_HASH || name != info.name) return;
    if (info.id < latest_number) return;
    latest_number = info.id;
    latest = duplicate(fd);
  });
  return latest;
}

}  // namespace

DpdkXdpProgram::DpdkXdpProgram(int interface_index)
    : interface_index_(interface_index),
      owner_pid_(::getpid()),
      print_before_(reinterpret_cast<void (*)()>(libbpf_set_print(nullptr))) {}

Result<std::unique_ptr<DpdkXdpProgram>> DpdkXdpProgram::open(const Interface& interface,
                                                             std::string& message) {
  message = "FI_UET_NIC=dpdk:net_af_xdp on " + interface.name + ": ";
  std::unique_ptr<DpdkXdpProgram> program(new DpdkXdpProgram(interface.index));
  program->owner_ = own_interface(program->interface_index_);
  if (!program->owner_.valid()) {
    message += "another process has the interface, and only one can; use FI_UET_NIC=xdp:queues=1";
    return Error::AddressInUse;
  }
  program->file_ = write_file();
  if (!program->file_.valid()) {
    message += "no memory for an XDP program: " + error_text(errno);
    return Error::NotSupported;
  }
  detach_ours(program->interface_index_);
  std::uint32_t id = 0;
  if (bpf_xdp_query_id(program->interface_index_, 0, &id) == 0 && id != 0) {
    message += "another XDP program is there ('ip link show " + interface.name +
               "'): take it away, or use another FI_UET_NIC";
    return Error::AddressInUse;
  }
  message.clear();
  return program;
}

void DpdkXdpProgram::expect_driver() { before_ = sockets_of_process(); }

// Were there several, another thread would have made one meanwhile: then it is not told which one
// the driver's is, and that stays open as without us.
void DpdkXdpProgram::find_driver() {
  listed_ = latest_map(UET_NAME_OF(UET_XDP_LISTED));
  std::vector<XdpSocketOfProcess> now = sockets_of_process();
  std::erase_if(now, [this](const XdpSocketOfProcess& socket) {
    return std::find(before_.begin(), before_.end(), socket) != before_.end();
  });
  if (now.size() == 1) socket_ = now.front();
}

bool DpdkXdpProgram::list(const UetXdpEndpoint& endpoint) {
  const std::uint32_t unused = 0;
  return listed_.valid() && bpf_map_update_elem(listed_.get(), &endpoint, &unused, BPF_ANY) == 0;
}

void DpdkXdpProgram::strike(const UetXdpEndpoint& endpoint) {
  bpf_map_delete_elem(listed_.get(), &endpoint);
}

DpdkXdpProgram::~DpdkXdpProgram() {
  if (::getpid() != owner_pid_) return;
  if (socket_ && number_of_xdp_socket(socket_->fd) == socket_->number) ::close(socket_->fd);
  if (owner_.valid()) detach_ours(interface_index_);
  libbpf_set_print(reinterpret_cast<libbpf_print_fn_t>(print_before_));
}

}  // namespace uet::nic

#else

namespace uet::nic {

Result<std::unique_ptr<DpdkXdpProgram>> DpdkXdpProgram::open(const Interface&,
                                                             std::string& message) {
  message =
      "FI_UET_NIC=dpdk:net_af_xdp: built without libbpf or clang (Debian: libxdp-dev libbpf-dev "
      "clang); use another FI_UET_NIC";
  return Error::NotSupported;
}

void DpdkXdpProgram::expect_driver() {}
void DpdkXdpProgram::find_driver() {}
bool DpdkXdpProgram::list(const UetXdpEndpoint&) { return false; }
void DpdkXdpProgram::strike(const UetXdpEndpoint&) {}
DpdkXdpProgram::~DpdkXdpProgram() = default;

}  // namespace uet::nic

#endif
