// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sizes that SES is built with.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ri/key_sequence.h"
#include "uet/base/device_memory.h"
#include "uet/base/time.h"
#include "uet/ses/api.h"

namespace uet::ses {

struct Parameters {
  std::uint32_t payload_mtu = 4096;     // bytes of payload in all but a message's last packet
  std::size_t tx_messages = 8192;       // operations in progress, all contexts; at most 65535
  std::size_t rx_messages = 8192;       // messages being received; unexpected ones count as memory
  std::size_t posted_receives = 65536;  // receives, all contexts together
  std::size_t return_messages = 4096;   // read answers on their way
  std::size_t outstanding_reads_bytes = 1 << 20;  // asked for and not yet arrived, per PDC
  // Memory of unexpected messages, their states included. One host has at most as much of all
  // contexts' as unexpected_bytes_per_peer, 0: three quarters of unexpected_bytes_per_context, and
  // three times what is free in a context (Shares).
  std::size_t unexpected_bytes_per_context = 16 << 20;
  std::size_t unexpected_bytes_per_peer = 0;
  std::size_t eager_bytes = 64 << 10;                  // kept of a message that can be read again
  std::size_t contexts = 65536;                        // names of endpoints of the FEP
  std::uint64_t rendezvous_threshold_bytes = 4 << 10;  // longer sends can be read by the target
  Duration rendezvous_timeout{0};  // Rndv_Timeout of SES-64; 0 = as long as the peer lives
  // Read_Timeout of SES-86: since the target has accepted a read, or since its data last came; 0 =
  // as long as the peer lives.
  Duration read_timeout{std::chrono::seconds(30)};
  // true: without memory for an unexpected message, answer NO_MATCH and, on ROD, disable the
  // generation (SES-52), so that the sender restarts the message. false: answer with a NACK.
  bool no_match = false;
  // Of operations refused with a code that passes (SES-54): how often they are sent again, how long
  // they wait for the second time, about; every further wait is twice as long, up to the last.
  std::uint16_t retries = 16;
  Duration retry_wait = std::chrono::milliseconds(1);
  Duration retry_wait_most = std::chrono::milliseconds(100);
  // Longer writes and reads are the caller's to cut (SES-162), longer sends are read in pieces of
  // so many bytes (SES-164); at most kMaxMessageBytes.
  std::uint64_t rma_piece_bytes = kMaxMessageBytes;
  std::size_t pulls = 64;  // reads of a target's own at a time
  // How long messages are sent to peers that serve it, else eagerly (SES-161).
  bool rendezvous = true;   // to the HPC profile
  bool deferrable = false;  // without order, to the AI Full profile; ours puts them off (SES-66)
  std::uint64_t deferrable_threshold_bytes = 8 << 10;  // sends of this length and more
  // How long they wait at either end, until the target wants them and until they are here then; 0 =
  // as long as the peer lives.
  Duration deferred_timeout{std::chrono::seconds(60)};
  std::size_t parked_per_context = 1024;  // put off at a time; the next are ordinary sends
  bool short_headers = true;              // medium and small where the peer takes them (SES-5)
  std::uint64_t seed = 1;                 // of waits, and of which hosts share a share
  ri::KeySecret key_secret{};     // of the read keys: a peer must not learn others' from its own
  HostCopy* host_copy = nullptr;  // writes payload to memory, if not memcpy; outlives SES
  // Sends from device memory are copied to chunks of so many bytes, of at most so many altogether
  // for each StagingMemory; at least one chunk, which holds at least one packet.
  std::size_t staging_chunk_bytes = 1 << 20;
  std::size_t staging_bytes = 128 << 20;
  bool rudi = false;  // use RUDI where it is safe (SES-137, SES-138)
};

}  // namespace uet::ses
