// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_trace/events.h"

#include <algorithm>
#include <array>
#include <bit>
#include <ctime>
#include <limits>
#include <optional>

#include "live/fields.h"

namespace uet::tracing {

using trace::Kind;
using trace::Record;

namespace {

constexpr std::int64_t kClocksAgree = 1'000'000;  // ns: of one host, or well kept

std::string address_of(const Record& record) {
  std::array<std::uint8_t, 16> ip{};
  const std::array<std::uint64_t, 2> words{record.a, record.b};
  ip = std::bit_cast<std::array<std::uint8_t, 16>>(words);
  return live::address_text(ip, (record.detail & 4) != 0, static_cast<std::uint16_t>(record.psn));
}

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string duration(std::uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f ms", static_cast<double>(ns) / 1e6);
  return text;
}

std::string packets_text(const Record& record) {
  const std::uint64_t packets = record.a >> 32;
  std::string text = " psn " + hex(record.psn);
  if (packets > 1) {
    text += " to " + hex(static_cast<std::uint32_t>(record.psn + packets - 1)) + ", " +
            number(packets) + " packets";
  }
  text += ", bytes " + number(record.a & 0xFFFFFFFF);
  if ((record.b & 0xFFFF) != 0) text += ", message " + number(record.b & 0xFFFF);
  if ((record.detail & 2) != 0) text += ", control";
  if ((record.detail & 1) != 0) text += ", again";
  const std::uint64_t transmissions = record.b >> 16 & 0xFFFF;
  if (transmissions > 1) text += ", transmission " + number(transmissions);
  return text + ", entropy " + hex(record.b >> 32 & 0xFFFF);
}

std::string ended_text(const Record& record) {
  std::string text = " message " + number(record.psn) + ", " + live::status_name(record.detail);
  if (record.detail == 3) text += ", return code " + number(record.a);
  if (record.detail == 4) text += std::string(", ") + live::pdc_error_name(record.a);
  return text;
}

// Earliest arrival minus departure of packets from `from` to `to`; empty: no packet matches.
std::optional<std::int64_t> least_trip(const live::TraceDump& from, const live::TraceDump& to) {
  const Peers of_from = peers_of(from);
  const Peers of_to = peers_of(to);
  const auto offset = [](const live::TraceDump& dump) {
    return dump.realtime_ns - dump.monotonic_ns;
  };
  std::map<std::uint32_t, std::int64_t> left;  // by PSN: first transmissions
  for (const Record& record : from.records) {
    const auto peer = of_from.find(record.pdc);
    if (record.kind != Kind::Sent || record.detail != 0 || peer == of_from.end()) continue;
    if (peer->second == to.address) left[record.psn] = record.time_ns + offset(from);
  }
  std::optional<std::int64_t> least;
  for (const Record& record : to.records) {
    const auto peer = of_to.find(record.pdc);
    if (record.kind != Kind::Received || record.detail != 0 || peer == of_to.end()) continue;
    const auto sent = left.find(record.psn);
    if (peer->second != from.address || sent == left.end()) continue;
    const std::int64_t trip = record.time_ns + offset(to) - sent->second;
    if (!least || trip < *least) least = trip;
  }
  return least;
}

}  // namespace

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string time_text(std::int64_t realtime_ns) {
  const std::time_t seconds = realtime_ns / 1'000'000'000;
  std::tm local{};
  ::localtime_r(&seconds, &local);
  char text[64];
  const std::size_t length = std::strftime(text, sizeof text, "%F %T", &local);
  std::snprintf(text + length, sizeof text - length, ".%09lld",
                static_cast<long long>(realtime_ns % 1'000'000'000));
  return text;
}

Peers peers_of(const live::TraceDump& dump) {
  Peers peers;
  for (const live::PdcRecord& pdc : dump.pdcs) {
    peers[pdc.pdc] = live::address_text(pdc.ip, pdc.is_ipv6 != 0, pdc.port);
  }
  for (const live::OperationRecord& operation : dump.operations) {
    if (operation.pdc == 0) continue;
    peers[operation.pdc] = live::address_text(operation.ip, operation.is_ipv6 != 0, operation.port);
  }
  for (const Record& record : dump.records) {
    if (record.kind == Kind::PdcOpened) peers[record.pdc] = address_of(record);
  }
  return peers;
}

std::int64_t clock_difference(const live::TraceDump& a, const live::TraceDump& b) {
  const auto there = least_trip(a, b);
  const auto back = least_trip(b, a);
  if (!there || !back) return 0;
  const std::int64_t ahead = (*there - *back) / 2;  // of the clock of `b`
  return ahead > -kClocksAgree && ahead < kClocksAgree ? 0 : -ahead;
}

std::vector<Event> merge(std::span<const live::TraceDump> dumps) {
  std::vector<Event> events;
  for (std::size_t i = 0; i < dumps.size(); ++i) {
    const live::TraceDump& dump = dumps[i];
    std::int64_t offset = dump.realtime_ns - dump.monotonic_ns;
    if (i > 0) offset += clock_difference(dumps[0], dump);
    for (const Record& record : dump.records) {
      events.push_back({.realtime_ns = record.time_ns + offset,
                        .dump = i,
                        .record = record,
                        .packet = nullptr,
                        .note = {}});
    }
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.realtime_ns < b.realtime_ns; });
  return events;
}

std::string describe(const Record& record) {
  std::string text = live::name_of(record.kind);
  switch (record.kind) {
    case Kind::PdcOpened:
      text += " as " + std::string((record.detail & 1) != 0 ? "target" : "initiator");
      return text + ((record.detail & 2) != 0 ? ", ROD, peer " : ", RUD, peer ") +
             address_of(record);
    case Kind::PdcState:
      text += std::string(" ") + live::pdc_state_name(record.a & 0xFF) + " -> " +
              live::pdc_state_name(record.detail);
      if (record.b != 0) text += std::string(", ") + live::pdc_error_name(record.b);
      if ((record.a & trace::kThroughRing) != 0) text += ", through a ring of this host";
      return text;
    case Kind::Sent:
    case Kind::Received:
      return text + packets_text(record);
    case Kind::AckSent:
      text += " psn " + hex(record.psn) + ", cack " + hex(record.a);
      if (record.b != 0) text += ", sack " + hex(record.b);
      return text + (record.detail != 0 ? ", ECN mark" : "");
    case Kind::AckReceived:
      return text + " cack " + hex(record.psn) + ", window " + number(record.a >> 32) +
             ", in flight " + number(record.a & 0xFFFFFFFF) +
             (record.detail != 0 ? ", ECN mark" : "");
    case Kind::NackSent:
    case Kind::NackReceived:
      return text + " psn " + hex(record.psn) + ", " + live::nack_name(record.detail);
    case Kind::ControlSent:
    case Kind::ControlReceived:
      return text + " type " + number(record.detail) + ", psn " + hex(record.psn);
    case Kind::Lost:
      return text + " psn " + hex(record.psn) + ", " +
             live::name_of(static_cast<trace::Loss>(record.detail)) + " " + duration(record.a) +
             " after transmission " + number(record.b & 0xFFFF) + ", entropy " +
             hex(record.b >> 32);
    case Kind::Window:
      return text + " " + number(record.a) + ", in flight " + number(record.b);
    case Kind::PathBanned:
      return text + " entropy " + hex(record.a) + ", " + number(record.b) + " banned now";
    case Kind::Waited:
      return text + " " + duration(record.a) + " for " +
             live::name_of(static_cast<trace::Wait>(record.detail));
    case Kind::NotPolled:
      return text + " for " + duration(record.a) + ", " + number(record.b) + " packets waited";
    case Kind::Posted:
      return text + " message " + number(record.psn) + ", " + live::operation_name(record.detail) +
             ", bytes " + number(record.a);
    case Kind::Ended:
      return text + ended_text(record);
    case Kind::PeerLost:
      return text + " " + address_of(record);
    case Kind::None:
      break;
  }
  return text;
}

std::string line_of(const Event& event, const live::TraceDump& dump, const Peers& peers) {
  std::string line =
      time_text(event.realtime_ns) + " " + std::to_string(dump.pid) + " " + dump.address + " ";
  if (event.record.pdc != 0) {
    line += "pdc " + hex(event.record.pdc) + " ";
    const auto peer = peers.find(event.record.pdc);
    if (peer != peers.end()) line += "to " + peer->second + " ";
  }
  return line + describe(event.record) + event.note;
}

}  // namespace uet::tracing
