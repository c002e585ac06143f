// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/framed/socket_filter.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <cstring>
#include <span>
#include <vector>

namespace uet::nic {
namespace {

constexpr std::uint32_t kTakeAll = 0xFFFFFFFF;
constexpr std::uint32_t kUdp = 17;
constexpr std::uint32_t kIpAt = 14;  // behind the Ethernet header

using Program = std::vector<sock_filter>;

// "equal, or drop": the jump over the rest is filled in by finish().
constexpr std::uint8_t kDrop = 0xFF;

void load(Program& program, std::uint16_t width, std::uint32_t offset) {
  program.push_back(BPF_STMT(static_cast<std::uint16_t>(BPF_LD | width | BPF_ABS), offset));
}
void require(Program& program, std::uint32_t value) {
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, kDrop));
}

void finish(Program& program) {
  program.push_back(BPF_STMT(BPF_RET | BPF_K, kTakeAll));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, 0));
  for (std::size_t i = 0; i < program.size(); ++i) {
    const auto to_drop = static_cast<std::uint8_t>(program.size() - 2 - i);
    if (BPF_CLASS(program[i].code) != BPF_JMP) continue;
    if (program[i].jt == kDrop) program[i].jt = to_drop;
    if (program[i].jf == kDrop) program[i].jf = to_drop;
  }
}

std::uint32_t word_at(const FabricAddress& ip, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | ip.bytes[offset + i];
  return value;
}

Program ipv4_program(const FepAddress& self, const wire::FrameFormat& format) {
  const bool udp = format.encapsulation == wire::Encapsulation::Udp;
  Program program;
  load(program, BPF_B, kIpAt + 9);
  require(program, udp ? kUdp : format.native_protocol);
  load(program, BPF_W, kIpAt + 16);
  require(program, word_at(self.ip, 0));
  load(program, BPF_H, kIpAt + 6);  // no fragments
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3FFF, kDrop, 0));
  if (udp) {
    program.push_back(BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, kIpAt));
    program.push_back(BPF_STMT(BPF_LD | BPF_H | BPF_IND, kIpAt + 2));
    require(program, self.port);
  }
  return program;
}

Program ipv6_program(const FepAddress& self, const wire::FrameFormat& format) {
  const bool udp = format.encapsulation == wire::Encapsulation::Udp;
  Program program;
  for (std::uint32_t i = 0; i < 16; i += 4) {
    load(program, BPF_W, kIpAt + 24 + i);
    require(program, word_at(self.ip, i));
  }
  load(program, BPF_B, kIpAt + 6);
  // Our protocol: look at the port. Headers that may be in front of it (WIRE 1.1): take.
  const std::uint8_t port_check = udp ? 2 : 0;
  const std::uint32_t protocol = udp ? kUdp : format.native_protocol;
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, protocol, 4, 0));
  for (const std::uint32_t header : {0U, 43U, 60U}) {
    const auto left = static_cast<std::uint8_t>(header == 0 ? 3 : header == 43 ? 2 : 1);
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, header,
                               static_cast<std::uint8_t>(left + port_check), 0));
  }
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 135, port_check, kDrop));
  if (udp) {
    load(program, BPF_H, kIpAt + 40 + 2);
    require(program, self.port);
  }
  return program;
}

bool attach(int socket, std::span<sock_filter> program) {
  const sock_fprog filter{.len = static_cast<std::uint16_t>(program.size()),
                          .filter = program.data()};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

}  // namespace

bool drop_everything(int socket) {
  Program program = {BPF_STMT(BPF_RET | BPF_K, 0)};
  return attach(socket, program);
}

bool take_only_frames_to(int socket, const FepAddress& self, const wire::FrameFormat& format) {
  Program program = self.ip.is_ipv6 ? ipv6_program(self, format) : ipv4_program(self, format);
  finish(program);
  return attach(socket, program);
}

}  // namespace uet::nic
