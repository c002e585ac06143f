// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The dialogue: opens a PDC by hand at a FEP, says one packet after the other, and has each answer
// judged. One step at a time, so that it is plain which packet an answer is for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "line.h"
#include "report.h"
#include "uet/wire/pds.h"
#include "uet/wire/ses.h"
#include "verdict.h"

namespace uet::probe {

struct Settings {
  JobId job{1};
  PidOnFep pid{0};
  ResourceIndex index{1};
  InitiatorId initiator{1};
  bool absolute = false;             // PIDonFEP counts on the FEP (SES-13)
  std::optional<Rkey> key;           // of memory that may be written and read; nothing: neither
  std::uint64_t offset = 0;          // in that memory; 256 bytes from there on are overwritten
  std::uint32_t payload_mtu = 1024;  // of the peer
  bool ordered = false;              // ROD instead of RUD
  std::chrono::milliseconds patience{1000};  // for an answer, before a packet is repeated
  Psn start{0x0005'1000};                    // Start_PSN of the first PDC
  PdcId pdc{0x0C41};                         // its id; the next one has the next id
};

class Probe {
 public:
  // All outlive it.
  Probe(Line& line, const Settings& settings, Report& report);
  // The whole dialogue. False if nothing answered at all.
  bool run();

 private:
  // The packets that arrived in answer to one of our packets.
  struct Exchange {
    std::optional<Answer> ack;  // of the packet itself
    std::optional<Answer> nack;
    std::optional<Answer> earlier;  // the ACK of a packet before it
    std::optional<Answer> data;     // read data in the return direction
    bool answered() const { return ack || nack; }
  };
  // Writes the packet, with the RETX flag or not.
  using Write = std::function<std::vector<std::byte>(bool retx)>;

  bool open();
  bool open_by_noop();
  void send_one();
  void send_again();
  void send_two();
  void ask_for_ack();
  void write_memory();
  void read_memory(std::uint32_t length);
  void be_refused(const char* step, const wire::SesRequest& request, const char* rule,
                  std::optional<wire::ReturnCode> wanted);
  void name_no_pdc();
  void change_mode();
  void probe_path();
  void close();

  // Sends the packet until it is answered, three times at most. asked.retx is empty afterwards if
  // the answer may be of a repeated one.
  Exchange exchange(const Write& write, Asked& asked);
  // A request with the next PSN; counts it when it was acknowledged.
  Exchange request(const wire::SesRequest& request, std::span<const std::byte> payload,
                   bool room_is_known = false);
  bool hear(const Asked& asked, Exchange& exchange);
  void wait_for_outcome(const Asked& asked, const Exchange& exchange);
  void report_end(const Asked& asked, const Exchange& exchange);

  Asked asked_for(Psn psn) const;
  wire::RequestHeader header(Psn psn, bool retx) const;
  wire::ControlHeader control(wire::CpType type, Psn psn, bool retx) const;
  wire::SesRequest to_context(wire::SesOpcode opcode, std::uint32_t length);
  std::vector<std::byte> packet(const wire::RequestHeader& pds, const wire::SesRequest& ses,
                                std::span<const std::byte> payload) const;
  void acknowledge(const Answer& data);

  Line& line_;
  const Settings& settings_;
  Report& report_;
  PdcId own_;
  PdcId peer_{};
  Psn start_;
  Psn next_;  // PSN of the next packet that consumes one
  MsgId message_{};
  bool lost_ = false;  // a packet that consumes a PSN found no answer: nothing more can be said
  bool heard_ = false;
  std::vector<std::byte> written_;  // by write_memory
  std::vector<std::byte> last_;     // the last SEND's packet
  Asked last_asked_;
};

}  // namespace uet::probe
