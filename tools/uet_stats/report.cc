// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_stats/report.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "live_view/words.h"

namespace uet::stats {

namespace {

constexpr std::size_t kNameWidth = 40;
constexpr std::size_t kValueWidth = 20;
constexpr double kOldAfterNs = 1e9;

// Columns of the table of peers. Causes of retransmission are added up.
struct PeerColumn {
  const char* title;
  std::vector<const char*> names;
};
const std::vector<PeerColumn>& table() {
  static const std::vector<PeerColumn> kColumns{
      {"pdcs", {"pdcs"}},
      {"rtt", {"rtt_ns"}},
      {"window", {"window_bytes"}},
      {"inflight", {"inflight_bytes"}},
      {"sent", {"bytes_sent"}},
      {"received", {"bytes_received"}},
      {"again", {"rto_retransmissions", "nack_retransmissions", "inferred_loss_retransmissions"}},
      {"marks", {"marks_received"}},
      {"oldest", {"oldest_outstanding_ns"}},
      {"silent", {"silent_ns"}},
  };
  return kColumns;
}

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

std::string row(const view::Peer& peer, std::size_t name_width) {
  std::string line = "  " + left(peer.name, name_width);
  for (const PeerColumn& column : table()) {
    double sum = 0;
    for (const char* const name : column.names) {
      sum += static_cast<double>(peer.values[view::peer_column(name)]);
    }
    line += right(view::short_value(column.names[0], sum), 10);
  }
  return line + "\n";
}

std::string peers_of(const view::Domain& domain) {
  std::size_t width = 4;
  for (const view::Peer& peer : domain.peers) width = std::max(width, peer.name.size());
  std::string text = "  " + left("peer", width);
  for (const PeerColumn& column : table()) text += right(column.title, 10);
  text += "\n";
  for (const view::Peer& peer : domain.peers) text += row(peer, width);
  if (domain.peers_known > domain.peers.size()) {
    text += "  and " + std::to_string(domain.peers_known - domain.peers.size()) +
            " peers with less traffic\n";
  }
  return text;
}

std::string line_for(const view::Difference& number, double seconds) {
  std::string line = "  " + left(number.name, kNameWidth);
  if (number.gauge) {
    return line + right(std::to_string(number.now), kValueWidth) + "  before " +
           std::to_string(number.before) + "\n";
  }
  line += right((number.change() >= 0 ? "+" : "") + std::to_string(number.change()), kValueWidth);
  if (seconds > 0) {
    const double rate = static_cast<double>(number.change()) / seconds;
    const std::string text = view::short_value(number.name, rate);
    line += "  " + right(text, 8) + "/s";
  }
  return line + "\n";
}

}  // namespace

std::string title(const view::Domain& domain, std::uint64_t now_ns) {
  std::string text = domain.program + " " + std::to_string(domain.pid) + ", domain " +
                     domain.address + " on " + domain.interface + " (" + domain.nic + ")";
  if (domain.owner == live::Owner::Gone) text += ", the process has ended";
  if (domain.owner == live::Owner::Unknown) text += ", the process is in another PID name space";
  const double age = static_cast<double>(now_ns) - static_cast<double>(domain.updated_ns);
  if (domain.updated_ns == 0) {
    text += ", no numbers yet";
  } else if (age > kOldAfterNs) {
    text += ", numbers " + view::short_time(age) + " old";
  }
  if (domain.torn) text += ", numbers perhaps of two moments";
  return text;
}

std::string describe(const view::Domain& domain, const Choice& choice, std::uint64_t now_ns) {
  std::string text = title(domain, now_ns) + "\n";
  for (const live::Counter& counter : domain.counters) {
    if (counter.value == 0 && !choice.all) continue;
    text += "  " + left(counter.name, kNameWidth) +
            right(std::to_string(counter.value), kValueWidth) +
            (choice.meanings ? "  " + counter.meaning : "") + "\n";
  }
  if (!domain.peers.empty()) text += peers_of(domain);
  return text;
}

std::string describe(const view::Change& change) {
  std::string text;
  for (const view::Difference& number : change.counters) text += line_for(number, change.seconds);
  for (const view::PeerChange& peer : change.peers) {
    text += "  peer " + peer.name + "\n";
    for (const view::Difference& number : peer.numbers) {
      text += "  " + line_for(number, change.seconds);
    }
  }
  return text;
}

}  // namespace uet::stats
