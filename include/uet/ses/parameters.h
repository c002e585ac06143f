// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The sizes that SES is built with; everything is allocated from them at construction.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uet::ses {

struct Parameters {
  std::uint32_t payload_mtu = 4096;     // bytes of payload in all but a message's last packet
  std::size_t tx_messages = 8192;       // operations in progress, all contexts; at most 65535
  std::size_t rx_messages = 8192;       // messages being received or unexpected
  std::size_t posted_receives = 65536;  // receives, all contexts together
  std::size_t return_messages = 4096;   // read answers on their way
  std::size_t outstanding_reads_bytes = 1 << 20;  // asked for and not yet arrived, per PDC
  std::size_t unexpected_bytes_per_context = 16 << 20;
  std::size_t contexts = 4096;  // endpoints of the FEP
};

}  // namespace uet::ses
