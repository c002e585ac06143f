// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/slot_filter.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "nic/bpf.h"
#include "nic/shared_steer.h"
#include "slot_filter_image.h"

namespace uet::nic {

// The socket keeps the program, which has the only reference to the map with what it looks for.
bool take_only_frames_to_slot(int socket, const FepAddress& self) {
  const QuietBpf quiet;
  const std::unique_ptr<bpf_object, BpfObjectFree> object(
      bpf_object__open_mem(kSlotFilterImage.data(), kSlotFilterImage.size(), nullptr));
  if (!object) return false;
  UetSlotFilter filter{};
  std::memcpy(filter.ip, self.ip.bytes.data(), self.ip.is_ipv6 ? 16 : 4);
  filter.is_ipv6 = self.ip.is_ipv6 ? 1 : 0;
  filter.slot = slot_of_port(self.port).value_or(UET_SLOTS);
  bpf_map* const constants = bpf_object__find_map_by_name(object.get(), ".rodata");
  const int error = bpf_map__set_initial_value(constants, &filter, sizeof filter);
  if (error != 0 || bpf_object__load(object.get()) != 0) return false;
  const int program =
      bpf_program__fd(bpf_object__find_program_by_name(object.get(), UET_NAME_OF(UET_SLOT_FILTER)));
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_BPF, &program, sizeof program) == 0;
}

}  // namespace uet::nic
