// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_trace/why.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "live/fields.h"
#include "uet_trace/events.h"

namespace uet::tracing {

using live::OperationRecord;
using live::PdcRecord;
using live::TraceDump;
using trace::Kind;
using trace::Record;

namespace {

constexpr std::int64_t kLong = 500'000'000;  // ns: more is worth a word about the process
constexpr std::uint8_t kCreating = 1;        // pds::PdcState
constexpr std::size_t kMostFailures = 5;
enum Waits : std::uint8_t { kPackets, kFence, kRead, kDeferred, kData, kRetry };

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string seconds(std::int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f s",
                static_cast<double>(std::max<std::int64_t>(ns, 0)) / 1e9);
  return text;
}

std::string plural(std::uint64_t count, const std::string& noun) {
  return number(count) + " " + noun + (count == 1 ? "" : "s");
}

class Explanation {
 public:
  Explanation(const TraceDump& dump, std::span<const TraceDump> others)
      : dump_(dump), others_(others) {}

  std::string text() {
    out_ = "process " + number(static_cast<std::uint64_t>(dump_.pid)) + " (" + dump_.program +
           "), domain " + dump_.address + ", at " + time_text(dump_.realtime_ns) + "\n";
    say_own_process();
    for (const OperationRecord& operation : dump_.operations) say_operation(operation);
    if (dump_.operations_known > dump_.operations.size()) {
      line(plural(dump_.operations_known - dump_.operations.size(), "further operation") +
           " of this domain are not listed.");
    }
    for (const PdcRecord& pdc : dump_.pdcs) {
      if (!said(pdc)) say_pdc_alone(pdc);
    }
    say_failures();
    if (dump_.operations.empty()) {
      line(
          "No operation of this domain is outstanding. If the program waits, it waits for "
          "messages: none that matches its receives has arrived.");
    }
    return out_;
  }

 private:
  std::int64_t now() const { return dump_.monotonic_ns; }
  void line(const std::string& text) { out_ += "  " + text + "\n"; }
  void cause(const std::string& text) { out_ += "    - " + text + "\n"; }
  std::string moment(std::int64_t monotonic_ns) const {
    return time_text(monotonic_ns + dump_.realtime_ns - dump_.monotonic_ns);
  }

  // The absence of a process by its trace; empty: it calls libfabric.
  static std::string absence(const TraceDump& dump) {
    if (dump.owner == live::Owner::Gone) return "has ended";
    const std::int64_t away = dump.monotonic_ns - dump.last_pass_ns;
    if (dump.last_pass_ns == 0 || away < kLong) return "";
    const bool sleeps = dump.sleeping_since_ns >= dump.last_pass_ns;
    return sleeps ? "" : "has not called libfabric for " + seconds(away);
  }

  void say_own_process() {
    const std::string absent = absence(dump_);
    if (!absent.empty()) line("This process " + absent + ".");
  }

  void say_operation(const OperationRecord& operation) {
    const std::string peer =
        live::address_text(operation.ip, operation.is_ipv6 != 0, operation.port);
    line(std::string(live::operation_name(operation.kind)) + " of " +
         plural(operation.bytes, "byte") + ", message " + number(operation.message_id) + ", to " +
         peer + " waits " + seconds(now() - operation.posted_ns) + ":");
    switch (operation.waits) {
      case kFence:
        return cause("it starts when earlier operations of its endpoint have completed (fence).");
      case kRead:
        cause(
            "the target has its first packets and must read the rest: no receive matches yet, "
            "or the target makes no progress.");
        break;
      case kDeferred:
        cause("the target has no receive for it and has put it off until there is one.");
        break;
      case kData:
        cause("the target has the request; the data that it asked for have not all come.");
        break;
      case kRetry:
        cause(
            "the target has refused it for now, for lack of memory or of a receive; it is sent "
            "again.");
        break;
      default:
        cause(plural(operation.packets_answered, "packet") + " of " +
              number(operation.packets_made) + " sent so far are answered.");
    }
    const PdcRecord* const pdc = find_pdc(operation.pdc);
    if (pdc != nullptr) {
      said_[pdc->pdc] = true;
      say_pdc(*pdc);
    } else if (operation.pdc == 0) {
      cause("it has no PDC yet: all PDCs to that peer are in use, or the peer refuses new ones.");
      say_nacks(0);
    }
    say_peer(peer);
  }

  // The newest operations that have ended with an error: a dump at a failure shows it.
  void say_failures() {
    std::vector<const Record*> failed;
    for (const Record& record : dump_.records) {
      const bool counts = record.kind == Kind::Ended && record.detail != 0 && record.detail != 2;
      if (counts) failed.push_back(&record);
    }
    const std::size_t skipped = failed.size() > kMostFailures ? failed.size() - kMostFailures : 0;
    if (skipped > 0) line(plural(skipped, "earlier failure") + " not listed.");
    for (std::size_t i = skipped; i < failed.size(); ++i) say_failure(*failed[i]);
  }

  void say_failure(const Record& ended) {
    line("message " + number(ended.psn) + " failed " + seconds(now() - ended.time_ns) +
         " ago: " + describe(ended) + ":");
    const Record* sent = nullptr;  // the newest packet of the message
    const Record* heard = nullptr;
    const auto peers = peers_of(dump_);
    for (const Record& record : dump_.records) {
      if (ended.pdc == 0 || record.pdc != ended.pdc || record.time_ns > ended.time_ns) continue;
      if (record.kind == Kind::Sent && (record.b & 0xFFFF) == ended.psn) sent = &record;
      if (record.kind == Kind::AckReceived || record.kind == Kind::NackReceived) heard = &record;
    }
    const auto peer = peers.find(ended.pdc);
    const std::string to = peer != peers.end() ? " to " + peer->second : "";
    if (sent != nullptr) {
      const std::uint64_t transmissions = sent->b >> 16 & 0xFFFF;
      cause("PSN " + hex(sent->psn) + " on PDC " + hex(ended.pdc) + to + " was sent " +
            plural(transmissions, "time") + ", last " + seconds(ended.time_ns - sent->time_ns) +
            " before the failure.");
    }
    say_nacks(ended.pdc);
    if (heard == nullptr) {
      cause(
          "the trace has no answer of that peer on this PDC: its packets, or its answers, are "
          "lost, or its process does not run.");
    } else {
      cause("the last answer of that peer came " + seconds(ended.time_ns - heard->time_ns) +
            " before the failure.");
    }
    if (peer != peers.end()) say_peer(peer->second);
  }

  void say_pdc_alone(const PdcRecord& pdc) {
    const std::string peer = live::address_text(pdc.ip, pdc.is_ipv6 != 0, pdc.port);
    line("PDC " + hex(pdc.pdc) + " with " + peer +
         (pdc.target != 0 ? " sends answers:" : " has no operation of the application:"));
    say_pdc(pdc);
    say_peer(peer);
  }

  void say_pdc(const PdcRecord& pdc) {
    if (pdc.state == kCreating) {
      cause("the peer has not answered on PDC " + hex(pdc.pdc) + " yet: it is not open.");
    }
    if (pdc.oldest_transmissions > 0) say_oldest(pdc);
    if (pdc.wait != 0) {
      cause(plural(pdc.messages_queued, "message") + " wait for " + wait_text(pdc.wait) +
            " since " + moment(pdc.wait_since_ns) + " (" + seconds(now() - pdc.wait_since_ns) +
            "; window " + number(pdc.window_bytes) + " bytes, in flight " +
            number(pdc.inflight_bytes) + ").");
    } else if (pdc.messages_queued > 0) {
      cause(plural(pdc.messages_queued, "message") + " of PDC " + hex(pdc.pdc) +
            " are not sent completely.");
    }
  }

  void say_oldest(const PdcRecord& pdc) {
    cause("PSN " + hex(pdc.oldest_psn) + " on PDC " + hex(pdc.pdc) + " was sent " +
          plural(pdc.oldest_transmissions, "time") + ", first " +
          seconds(now() - pdc.oldest_first_sent_ns) + " ago, last " +
          seconds(now() - pdc.oldest_last_sent_ns) + " ago" + losses_of(pdc) + ".");
    say_nacks(pdc.pdc);
    if (pdc.oldest_sacked != 0) {
      cause(
          "the peer has that packet; its final answer is missing: the peer's application has to "
          "make progress.");
    }
    if (pdc.peer_heard_ns == 0) {
      cause(
          "nothing has ever come from that peer: wrong address, host down, firewall, or the "
          "process does not run.");
    } else if (pdc.peer_heard_ns < pdc.oldest_first_sent_ns) {
      cause("nothing came from that peer since " + moment(pdc.peer_heard_ns) + " (" +
            seconds(now() - pdc.peer_heard_ns) + ").");
    } else if (pdc.oldest_transmissions > 1 && pdc.oldest_sacked == 0) {
      cause("the peer answers other packets (the last answer came " +
            seconds(now() - pdc.peer_heard_ns) +
            " ago): this packet or its answer is lost again and again; look at MTU and paths.");
    }
  }

  // ", lost 5 times (4 time_out, 1 inferred)"
  std::string losses_of(const PdcRecord& pdc) const {
    std::map<std::uint8_t, std::uint64_t> counts;
    std::uint64_t all = 0;
    for (const Record& record : dump_.records) {
      if (record.kind != Kind::Lost || record.pdc != pdc.pdc || record.psn != pdc.oldest_psn)
        continue;
      ++counts[record.detail];
      ++all;
    }
    if (all == 0) return "";
    std::string text;
    for (const auto& [why, count] : counts) {
      text += (text.empty() ? "" : ", ") + number(count) + " " +
              live::name_of(static_cast<trace::Loss>(why));
    }
    return "; lost " + plural(all, "time") + " (" + text + ")";
  }

  // NACKs on a PDC, the newest code first; PDC 0: that belong to none.
  void say_nacks(std::uint16_t pdc) {
    std::uint64_t count = 0;
    const Record* last = nullptr;
    for (const Record& record : dump_.records) {
      if (record.kind != Kind::NackReceived || record.pdc != pdc) continue;
      ++count;
      last = &record;
    }
    if (last == nullptr) return;
    cause("the peer has refused packets " + plural(count, "time") + ", last with " +
          live::nack_name(last->detail) + " " + seconds(now() - last->time_ns) + " ago.");
  }

  void say_peer(const std::string& address) {
    for (const TraceDump& other : others_) {
      if (other.address != address) continue;
      std::string text = "the peer is process " + number(static_cast<std::uint64_t>(other.pid)) +
                         " (" + other.program + ") of this user: it ";
      const std::string absent = absence(other);
      const bool sleeps = other.sleeping_since_ns >= other.last_pass_ns && other.last_pass_ns != 0;
      if (!absent.empty()) {
        if (absent != "has ended") text += "is alive but ";
        text += absent;
      } else if (sleeps) {
        text += "sleeps in libfabric until packets come";
      } else {
        text +=
            "calls libfabric; if nothing came from it, packets to it or its answers are lost on "
            "the way";
      }
      text += '.';
      cause(text);
      return;
    }
  }

  static std::string wait_text(std::uint8_t wait) {
    switch (static_cast<trace::Wait>(wait)) {
      case trace::Wait::Window:
        return "the congestion window";
      case trace::Wait::Credit:
        return "credit of the receiver";
      case trace::Wait::PeerWindow:
        return "the peer's window (MPR): its oldest packet is not acknowledged";
      case trace::Wait::Packets:
        return "a packet of the pool of this domain";
      case trace::Wait::Nic:
        return "the NIC, which takes no more packets";
      default:
        return "an unknown cause";
    }
  }

  const PdcRecord* find_pdc(std::uint16_t id) const {
    for (const PdcRecord& pdc : dump_.pdcs) {
      if (id != 0 && pdc.pdc == id) return &pdc;
    }
    return nullptr;
  }
  bool said(const PdcRecord& pdc) const { return said_.contains(pdc.pdc); }

  const TraceDump& dump_;
  std::span<const TraceDump> others_;
  std::string out_;
  std::map<std::uint16_t, bool> said_;
};

}  // namespace

std::string explain(const TraceDump& dump, std::span<const TraceDump> others) {
  return Explanation(dump, others).text();
}

}  // namespace uet::tracing
