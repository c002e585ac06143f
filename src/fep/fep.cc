// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Composition of the protocol and its engine: one bounded pass after the other.
#include "fep/fep.h"

#include <algorithm>
#include <array>
#include <utility>

#include "pds/manager.h"

namespace uet::fep {

namespace {

constexpr std::uint32_t kLargestSesHeader = 44 + 36;
// How soon to try again when the NIC or the packet pool was full: no event reports free space.
constexpr Duration kRetry = std::chrono::microseconds(50);
// Between two looks for packets: more than one may have come.
constexpr Duration kAway = std::chrono::microseconds(50);
constexpr Duration kLongAbsence = std::chrono::milliseconds(10);  // worth a record of the trace
const RxPacket kBlank{};  // copied: quicker than one that is made in pieces

pds::Parameters with_nic(pds::Parameters parameters, const nic::NicCaps& caps) {
  parameters.secured = caps.secured;
  return parameters;
}

}  // namespace

Fep::Fep(const Config& config, nic::Nic& nic, Time now)
    : config_(config),
      nic_(nic),
      last_pass_(now),
      last_take_(now),
      arrived_(std::min(nic.caps().most_received, nic::kRxBurst)),
      rng_(config.seed),
      packets_(config.packets),
      buffers_(config.ses.payload_mtu, config.buffers),
      regions_(config.memory_regions, config.key_secret),
      ses_(config.ses, buffers_, regions_),
      outbox_(packets_),
      manager_(std::make_unique<pds::Manager>(
          with_nic(config.pds, nic.caps()), config.cms, ses_.client(), outbox_, packets_,
          config.ses.payload_mtu + kLargestSesHeader, rng_, now)) {
  ses_.attach(*manager_);
  if (PdcGuard* guard = nic.guard(); guard != nullptr) manager_->demultiplexer().set_guard(*guard);
}

// PDS ends first, since its objects refer to messages of SES. SES, which ends the messages in
// progress, must not call it then.
Fep::~Fep() { ses_.detach(); }

bool Fep::progress(Time now) {
  const bool taken = take(now);
  return push(now) || taken;
}

bool Fep::take(Time now) {
  last_pass_ = now;
  in_pass_ = true;
  manager_->demultiplexer().send_later_acks(now);
  away_ = now - last_take_;
  last_take_ = now;
  while (const auto lost = nic_.poll_dead_peer()) manager_->on_dead_peer(*lost, now);
  const std::size_t count = nic_.rx_burst(arrived_, now);
  if (count > 0) {
    if (away_ >= kLongAbsence) note_absence(away_, count);
    manager_->inspect().trace().burst_begins();
  }
  HostCopy* const host_copy = config_.ses.host_copy;
  pds::Demultiplexer& demultiplexer = manager_->demultiplexer();
  if (host_copy != nullptr) host_copy->joins = count > 1;
  took_from_network_ = false;
  taken_ = count;
  newest_arrival_ = count > 0 ? arrived_[count - 1].arrived : Time{};
  for (std::size_t i = 0; i < count; ++i) {
    RxPacket& packet = arrived_[i];
    if (config_.trim_marks.on(packet.dscp)) {  // PDS-147
      packet.trimmed = true;
      packet.trimmed_last_hop = packet.dscp == config_.trim_marks.trimmed_last_hop;
    }
    took_from_network_ |= !packet.through_memory;
    demultiplexer.on_packet(packet, now);
    packet = kBlank;
  }
  if (host_copy != nullptr) {
    host_copy->joins = false;
    host_copy->run.end();
  }
  while (const auto lost = nic_.poll_lost_rail()) manager_->on_lost_rail(*lost, now);
  note_receive_load(count > 0);
  return manager_->expire(now) || count > 0;
}

// A program that sleeps until packets come is not late.
void Fep::note_absence(Duration away, std::size_t packets) {
  trace::Trace& trace = manager_->inspect().trace();
  if (trace.slept()) return;
  trace.write(trace::Kind::NotPolled, 0, {}, {}, static_cast<std::uint64_t>(away.count()), packets);
}

bool Fep::left_some(Time start) {
  // Time that this pass itself spends, sending for example, is no absence.
  const bool first = last_take_ == start;
  if (first) absence_ = away_ > kAway ? away_ : Duration{};
  if (taken_ == 0) return false;
  if (first && absence_ > Duration{}) return true;
  const bool full = taken_ == arrived_.size() || nic_.receive_backlog_bytes() > 0;
  if (newest_arrival_ != Time{}) return full && newest_arrival_ < start;
  return full && last_take_ - start < absence_;
}

bool Fep::may_answer() {
  const std::uint64_t seen = std::exchange(messages_seen_, ses_.counters().messages_received);
  if (seen != messages_seen_) answers_left_ = kAnswers;
  if (answers_left_ == 0) return false;
  --answers_left_;
  return true;
}

// SES and PDS make no further packets while the NIC has not taken the packets made before. ACKs
// that wait for the application's reply leave behind what a post has sent.
bool Fep::push(Time now) {
  last_pass_ = now;
  waiting_posts_ = 0;
  const bool ends_pass = std::exchange(in_pass_, false);
  if (!outbox_.empty() || outbox_.has_nacks()) flush(now);
  ses_.progress(now);
  bool sent = false;
  if (outbox_.empty()) {
    sent = manager_->pump(now);
  } else {
    manager_->free_finished(now);  // their slots may be what the peers wait for
  }
  flush(now);
  if (sent && !ends_pass && manager_->demultiplexer().send_later_acks(now)) flush(now);
  return sent;
}

// Once per pass, after what has arrived and before the ACKs for it (CMS-305).
void Fep::note_receive_load(bool received) {
  if (!received && !loaded_) return;
  cms::ReceiveLoad load;
  const std::uint64_t unread = nic_.receive_backlog_bytes();
  const std::uint64_t room = unread > 0 ? nic_.caps().receive_credit_bytes : 0;
  if (room > 0) load.occupancy = static_cast<double>(unread) / static_cast<double>(room);
  load.occupancy = std::max(load.occupancy, ses_.unexpected_occupancy());
  load.bytes = unread + ses_.unexpected_bytes();
  manager_->set_receive_load(load);
  loaded_ = load.bytes > 0;
}

// Offers what waits in the outbox; packets that the NIC refuses stay there.
void Fep::flush(Time now) {
  const bool was_full = nic_full_since_ != Time{};
  std::array<const Packet*, nic::kTxBurst> memory;
  outbox_.begin_pass(was_full);
  bool full = false;
  while (!full) {
    const auto burst = outbox_.next_burst(memory);
    if (burst.empty()) break;
    const std::size_t accepted = nic_.tx_burst(burst);
    outbox_.left(accepted);
    full = accepted < burst.size();
  }
  if (full != was_full) note_nic_full(full, now);
  manager_->answer_datagrams(now);
}

void Fep::note_nic_full(bool full, Time now) {
  if (!full) {
    const Duration blocked = std::max(Duration::zero(), now - nic_full_since_);
    blocked_by_nic_ns_ += static_cast<std::uint64_t>(blocked.count());
  }
  if (!full) manager_->inspect().trace().waited(trace::Wait::Nic, {}, now - nic_full_since_);
  nic_full_since_ = full ? now : Time{};
}

Time Fep::next_deadline() const {
  const Time timers =
      std::min({manager_->next_deadline(), nic_.next_deadline(), ses_.next_deadline()});
  const bool waiting = !outbox_.empty() || outbox_.has_nacks() || manager_->has_ready();
  return waiting ? std::min(timers, last_pass_ + kRetry) : timers;
}

Stats Fep::stats() const {
  Stats stats{manager_->counters(), manager_->contexts().counters(), ses_.counters(),
              nic_.counters()};
  stats.pds.blocked_by_nic_ns = blocked_by_nic_ns_;
  return stats;
}

void Fep::list_peers(std::vector<pds::PeerView>& out) { manager_->inspect().list_peers(out); }

void Fep::list_waiting(std::vector<pds::WaitingPdc>& out) {
  manager_->inspect().list_waiting(out);
  if (nic_full_since_ == Time{}) return;
  for (pds::WaitingPdc& pdc : out) {
    if (pdc.wait != trace::Wait::Nothing) continue;
    pdc.wait = trace::Wait::Nic;
    pdc.wait_since = nic_full_since_;
  }
}

const pds::CccPool& Fep::contexts() const { return manager_->contexts(); }

void Fep::keep_trace_in(trace::Ring* ring) {
  manager_->inspect().trace().keep_in(ring, &last_pass_);
  ses_.keep_trace_in(ring, &last_pass_);
}

void Fep::learn(const FepAddress& address) { manager_->peer_ports().add(address); }

void Fep::unlearn(const FepAddress& address) { manager_->peer_ports().remove(address); }

void Fep::key_changed(std::uint32_t sdi) { manager_->key_changed(sdi); }

std::uint64_t Fep::protected_dropped() const { return manager_->counters().protected_dropped; }

void Fep::refused(const FepAddress& peer) { manager_->on_refusal(peer); }

void Fep::watch_peers(pds::PeerWatcher* watcher) { manager_->watch_peers(watcher); }

void Fep::note_gaps(Time now) { manager_->demultiplexer().gaps().note(now); }

bool Fep::gaps_over(Time now) const { return manager_->demultiplexer().gaps().over(now); }

Result<void> Fep::open_pdc(const pds::Destination& destination, Time now) {
  const Result<PdcId> opened = manager_->connect(destination, now);
  push(now);
  if (!opened) return opened.error();
  return {};
}

void Fep::forget(const FepAddress& address, Time now) {
  manager_->forget(address, now);
  push(now);
}

void Fep::begin_close(Time now) {
  manager_->begin_close_all(now);
  push(now);
}

bool Fep::closed() const {
  return manager_->open_pdcs() == 0 && outbox_.empty() && !outbox_.has_nacks() &&
         !manager_->has_ready();
}

bool Fep::quiescent() const {
  return packets_.in_use() == 0 && buffers_.in_use() == 0 && outbox_.empty() && ses_.idle() &&
         manager_->quiescent();
}

}  // namespace uet::fep
