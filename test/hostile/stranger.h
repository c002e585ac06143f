// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A hostile host: sends UET packets that it makes itself, in its own name or in another one's, and
// reads the answers. Knows headers and addresses, and nothing that a host cannot know: PDC ids,
// PSNs and keys of others are guessed.
#pragma once

#include <netinet/in.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <vector>

#include "uet/wire/pds.h"
#include "uet/wire/ses.h"

namespace uet::hostile {

using Bytes = std::vector<std::byte>;

// A PDC that the stranger has opened at the victim.
struct StrangerPdc {
  PdcId own;
  PdcId theirs;
  Psn start;
};

// The knowledge that a stranger may have before it begins.
struct Knowledge {
  sockaddr_in victim{};              // where the victim listens
  sockaddr_in peer{};                // where the victim's legitimate peer listens
  in_addr own{};                     // address of the stranger's host
  std::uint64_t key = 0;             // of a region of the victim that everybody may write
  std::uint64_t address = 0;         // offset of that region
  std::uint64_t idempotent_key = 0;  // of the same region, for RUDI
};

// One packet: a PDS header, then a SES header and payload.
template <class Header>
Bytes packet(const Header& header, std::span<const std::byte> rest = {}) {
  Bytes bytes(wire::kMaxPdsHeaderBytes);
  bytes.resize(header.encode(bytes.data()));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  return bytes;
}
// SES header of `request`, followed by `payload` bytes.
Bytes semantics(const wire::SesRequest& request, std::size_t payload = 0);

// Bytes of frames that have left this host, and that have come to it.
struct FrameBytes {
  std::uint64_t sent = 0;
  std::uint64_t came = 0;
};
FrameBytes frame_bytes();

class Stranger {
 public:
  // `packets_per_second`: no more leave; further ones wait. Throws where raw sockets are refused.
  Stranger(const Knowledge& knowledge, double packets_per_second);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  // Sends to the victim from the stranger's own UET port.
  void send(const Bytes& bytes);
  // Sends to `to` as if it came from `from`.
  void send_as(const sockaddr_in& from, const sockaddr_in& to, const Bytes& bytes);
  // An address that belongs to no host, another one each time.
  sockaddr_in invented();

  // Opens a PDC by a NOOP; nothing where the victim does not answer within a second.
  std::optional<StrangerPdc> open(PdcId own, bool rod = false);
  // Sends the packet until an ACK for the PDC `own` comes, ten times at most, 100 ms apart.
  std::optional<wire::AckHeader> ack_of(const Bytes& bytes, PdcId own);
  // Takes the answers that have come; none is looked at.
  void discard_answers();

  // The rate counts from now on.
  void begin();
  std::uint64_t sent() const { return sent_; }
  std::uint64_t draw() { return random_(); }
  const Knowledge& known() const { return known_; }

 private:
  void wait_for_turn();

  Knowledge known_;
  double interval_;
  std::chrono::steady_clock::time_point begin_{};
  std::uint64_t sent_ = 0;
  std::mt19937_64 random_{7};
  int own_socket_;
  int raw_socket_;
};

}  // namespace uet::hostile
