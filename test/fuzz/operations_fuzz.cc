// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two Feps, a wire between them, and an input that says what happens: which operations their
// applications post and cancel, which packets get lost, copied, swapped or changed, how time goes
// by, which contexts and regions come and go. Whatever it says, no operation completes twice, no
// buffer is touched outside or after its operation, and in the end every pool is full again.
//
// The input is a sequence of steps: a byte whose low 5 bits name the step and whose high 3 bits
// choose side and context, and the step's arguments, a byte each.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "fep/fep.h"
#include "ses/initiator.h"

namespace {

using namespace uet;  // a test program of one file
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::uint32_t kMtu = 1024;
constexpr std::size_t kContexts = 3;  // RUD, ROD, UUD
constexpr std::size_t kSteps = 400;
constexpr std::array kLengths = {0U, 1U, 8U, 100U, 1023U, 1024U, 1025U, 3000U, 5000U, 9000U};

void require(bool condition) {
  if (!condition) std::abort();
}

FepAddress address_of(std::size_t side) {
  FepAddress address;
  address.ip.bytes = {10, 0, 0, static_cast<std::uint8_t>(side + 1)};
  return address;
}

struct WirePacket {
  std::vector<std::byte> bytes;  // exactly its bytes, so that reading past the end shows
  std::uint16_t entropy = 0;
  Ecn ecn = Ecn::NotEct;
};

// Puts sent packets into the other side's queue; hands out as many as the fuzz input allows.
class WireNic final : public nic::Nic {
 public:
  explicit WireNic(std::size_t side) : side_(side) {}
  std::size_t rx_burst(std::span<RxPacket> out, Time) override {
    last_.clear();
    while (last_.size() < out.size() && arriving > 0 && !queue.empty()) {
      last_.push_back(std::move(queue.front()));
      queue.pop_front();
      --arriving;
    }
    for (std::size_t i = 0; i < last_.size(); ++i) {
      out[i] = RxPacket{.bytes = last_[i].bytes,
                        .source = address_of(1 - side_),
                        .entropy = last_[i].entropy,
                        .ecn = last_[i].ecn};
    }
    return last_.size();
  }
  std::size_t tx_burst(std::span<const Packet* const> in) override {
    const std::size_t count = std::min(in.size(), accept);
    for (const Packet* packet : in.first(count)) {
      WirePacket copy{.bytes = {packet->head().begin(), packet->head().end()},
                      .entropy = packet->entropy,
                      .ecn = packet->ecn};
      for (const Slice& slice : packet->payload) {
        copy.bytes.insert(copy.bytes.end(), slice.data, slice.data + slice.length);
      }
      copy.bytes.shrink_to_fit();
      other->queue.push_back(std::move(copy));
    }
    return count;
  }
  const nic::NicCaps& caps() const override { return caps_; }
  FepAddress local_address() const override { return address_of(side_); }

  WireNic* other = nullptr;
  std::deque<WirePacket> queue;  // sent to this side
  std::size_t arriving = 0;      // of them, how many may arrive
  std::size_t accept = SIZE_MAX;

 private:
  std::size_t side_;
  nic::NicCaps caps_;
  std::vector<WirePacket> last_;
};

// One posted operation and its memory, which no other operation uses.
struct Operation {
  std::vector<std::byte> memory;
  std::vector<std::byte> results;
  std::vector<std::byte> compare;
  bool done = false;
};

class Sink final : public ses::CompletionSink {
 public:
  void complete(const ses::Completion& completion) noexcept override {
    if (completion.context == nullptr || completion.multi) return;
    auto& operation = *static_cast<Operation*>(completion.context);
    require(!operation.done);
    operation.done = true;
  }
  bool can_take_event() noexcept override { return room; }
  bool reserve_receive() noexcept override { return room; }
  void release_receive() noexcept override {}
  void remote_access(ses::Kind, std::uint64_t) noexcept override {}
  bool room = true;
};

fep::Config config_of(std::size_t side) {
  fep::Config config;
  config.seed = side + 1;
  config.pds.pdc_count = 8;
  config.pds.reserved_target_pdcs = 2;
  config.pds.reserved_pool_pdcs = 1;
  config.pds.default_mpr = 1;
  config.pds.max_rto_retransmissions = 3;
  config.pds.start_psn = 0xFFFF'FFF0;
  config.pds.first_pdc_id = 0xFFFE;
  config.ses.payload_mtu = kMtu;
  config.ses.tx_messages = 24;
  config.ses.rx_messages = 16;
  config.ses.posted_receives = 24;
  config.ses.return_messages = 16;
  config.ses.contexts = 8;
  config.ses.outstanding_reads_bytes = 4 * kMtu;
  config.ses.unexpected_bytes_per_context = 16 * kMtu;
  config.ses.unexpected_bytes_per_peer = 12 * kMtu;
  config.ses.eager_bytes = 2 * kMtu;
  config.ses.rendezvous_threshold_bytes = 2048;
  config.ses.rudi = true;
  config.packets = 192;
  config.buffers = 40;
  config.memory_regions = 8;
  return config;
}

struct Side {
  explicit Side(std::size_t number, Time now)
      : nic(number), fep(config_of(number), nic, now), exposed(8192) {
    ri::MemoryRegion region;
    region.base = exposed.data();
    region.length = exposed.size();
    region.access = ri::kRemoteRead | ri::kRemoteWrite;
    key = fep.regions().add(region).value();
    safe_key = Rkey{(std::uint64_t{1} << 63) | 5};
    require(fep.regions().add_with_key(region, safe_key).ok());
    for (std::size_t i = 0; i < kContexts; ++i) open(i);
  }
  void open(std::size_t index) {
    constexpr std::array kModes = {DeliveryMode::Rud, DeliveryMode::Rod, DeliveryMode::Uud};
    ses::ContextConfig config;
    config.job = JobId{7};
    config.pid_on_fep = PidOnFep{1};
    config.resource_index = ResourceIndex{static_cast<std::uint16_t>(index)};
    config.initiator = InitiatorId{static_cast<std::uint32_t>(index + 10)};
    config.mode = kModes[index];
    config.directed_receive = true;
    config.tx_size = config.rx_size = 16;
    contexts[index] = fep.ses().open_context(config, sink).value();
    fep.ses().enable(*contexts[index]);
  }

  WireNic nic;
  Sink sink;
  fep::Fep fep;
  std::vector<std::byte> exposed;
  Rkey key;
  Rkey safe_key;
  std::array<ses::Context*, kContexts> contexts{};
};

class Machine {
 public:
  Machine(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {
    sides_[0].nic.other = &sides_[1].nic;
    sides_[1].nic.other = &sides_[0].nic;
  }
  void run() {
    for (std::size_t i = 0; i < kSteps && size_ > 0; ++i) step();
    finish();
  }

 private:
  std::uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::size_t length() { return kLengths[byte() % kLengths.size()]; }
  Operation& operation(std::size_t bytes) {
    operations_.push_back(std::make_unique<Operation>());
    operations_.back()->memory.resize(bytes);
    return *operations_.back();
  }
  ses::Peer peer(std::uint8_t flags) const {
    return {.fep = address_of(1 - side_index_),
            .pid_on_fep = PidOnFep{1},
            .resource_index =
                ResourceIndex{static_cast<std::uint16_t>((flags & 3) == 3 ? 5 : context_)},
            .initiator = InitiatorId{static_cast<std::uint32_t>(context_ + 10)},
            .relative = (flags & 4) == 0,
            .generation = RiGeneration{static_cast<std::uint8_t>(flags >> 7)},
            .hpc = (flags & 8) == 0};
  }
  void fill(ses::TxOp& op, std::uint8_t flags, Operation& operation) {
    peer_ = peer(flags);
    slice_ = {operation.memory.data(), operation.memory.size()};
    op.peer = &peer_;
    op.local = {&slice_, 1};
    op.inject = (flags & 16) != 0;
    op.delivery_complete = (flags & 32) != 0;
    op.fence = (flags & 64) != 0;
    op.context = &operation;
  }

  void step() {
    const std::uint8_t code = byte();
    side_index_ = code >> 7;
    context_ = (code >> 5 & 3) % kContexts;
    Side& side = sides_[side_index_];
    switch (code & 31) {
      case 0:
      case 1:
        return send((code & 1) != 0);
      case 2:
      case 3:
        return receive((code & 1) != 0);
      case 4:
      case 5:
        return rma((code & 1) != 0);
      case 6:
        return atomic();
      case 7:
        return cancel();
      case 8:
        return peek();
      case 9:
        side.nic.accept = byte() % 4 == 0 ? byte() % 3 : SIZE_MAX;
        return;
      case 10:
        side.sink.room = (byte() & 1) != 0;
        return;
      case 11:
        side.fep.ses().close_context(*side.contexts[context_], now_);
        return side.open(context_);
      case 12:
        (void)side.fep.regions().remove(side.key);
        return;
      case 13:
        return side.fep.forget(address_of(1 - side_index_), now_);
      case 14:
      case 15:
      case 16:
      case 17:
      case 18:
        return spoil(side.nic.queue, code & 31);
      case 19:
        side.fep.push(now_);
        return;
      case 20:
        now_ += milliseconds(byte());
        return pass(4);
      case 21:
        now_ += std::chrono::seconds(byte() % 80);
        return pass(1);
      default:
        now_ += microseconds(50);
        return pass(code & 15);
    }
  }
  void send(bool tagged) {
    Operation& op = operation(length());
    const std::uint8_t flags = byte();
    ses::SendOp send;
    fill(send, flags, op);
    if (tagged) send.tag = byte() & 3;
    if (byte() & 1) send.data = 77;
    posted(op, side().fep.ses().initiator().post(*context(), send, now_));
  }
  void receive(bool tagged) {
    Operation& op = operation(length());
    const std::uint8_t flags = byte();
    slice_ = {op.memory.data(), op.memory.size()};
    peer_ = peer(0);
    ses::ReceiveOp receive;
    receive.local = {&slice_, 1};
    receive.tagged = tagged;
    receive.tag = flags & 3;
    receive.ignore = flags & 4 ? 3 : 0;
    receive.source = flags & 8 ? &peer_ : nullptr;
    receive.multi = (flags & 0x30) == 0x30;
    receive.min_free = 100;
    receive.context = &op;
    if (flags & 0x80) {
      receive.claim = true;
      receive.context = claimed_ == nullptr ? &op : claimed_;
    }
    posted(op, side().fep.ses().receive(*context(), receive, now_));
  }
  void rma(bool read) {
    Operation& op = operation(length());
    const std::uint8_t flags = byte();
    ses::RmaOp rma;
    fill(rma, flags, op);
    rma.inject = rma.inject && !read;
    const std::uint8_t where = byte();
    rma.remote_offset = std::uint64_t{where} * 40;
    Side& target = sides_[1 - side_index_];
    rma.key = where & 1 ? target.key : where & 2 ? target.safe_key : Rkey{where};
    if (!read && (where & 4) != 0) rma.data = 5;
    if (read) rma.kind = ses::Kind::Read;
    posted(op, side().fep.ses().initiator().post(*context(), rma, now_));
  }
  void atomic() {
    Operation& op = operation(8 * (1 + byte() % 4));
    const std::uint8_t flags = byte();
    ses::AtomicOp atomic;
    fill(atomic, flags, op);
    atomic.inject = false;
    atomic.key = sides_[1 - side_index_].key;
    atomic.remote_offset = std::uint64_t{byte()} * 8;
    atomic.op = static_cast<wire::AmoOp>(byte() % 20);
    atomic.datatype = wire::AmoDatatype::Uint64;
    if (atomic.op >= wire::AmoOp::Cswap) {
      atomic.kind = ses::Kind::CompareAtomic;
      op.memory.resize(8);
      slice_ = {op.memory.data(), op.memory.size()};
      op.compare.resize(8);
    } else {
      atomic.kind = flags & 1 ? ses::Kind::FetchAtomic : ses::Kind::Atomic;
    }
    if (atomic.kind != ses::Kind::Atomic) op.results.resize(op.memory.size());
    const ses::IoSlice compare{op.compare.data(), op.compare.size()};
    const ses::IoSlice results{op.results.data(), op.results.size()};
    if (!op.compare.empty()) atomic.compare = {&compare, 1};
    if (!op.results.empty()) atomic.results = {&results, 1};
    posted(op, side().fep.ses().initiator().post(*context(), atomic, now_));
  }
  void cancel() {
    if (operations_.empty()) return;
    Operation& op = *operations_[byte() % operations_.size()];
    (void)side().fep.ses().cancel(*context(), &op, now_);
  }
  void peek() {
    Operation& op = operation(0);
    const std::uint8_t flags = byte();
    ses::PeekOp peek;
    peek.tagged = flags & 1;
    peek.tag = flags >> 1 & 3;
    peek.ignore = flags & 8 ? 3 : 0;
    peek.claim = flags & 16;
    peek.discard = (flags & 32) && !peek.claim;
    peek.context = &op;
    const Result<void> result = side().fep.ses().peek(*context(), peek, now_);
    if (result.ok() && peek.claim) {
      claimed_ = &op;
      op.done = false;  // the receive that claims the message has the same context
    }
  }
  // Loses, copies, swaps or changes a packet on its way.
  void spoil(std::deque<WirePacket>& queue, int how) {
    if (queue.empty()) return;
    const std::size_t at = byte() % queue.size();
    if (how == 14) queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(at));
    if (how == 15) queue.push_back(queue[at]);
    if (how == 16) std::swap(queue[at], queue.front());
    if (how == 17) queue[at].ecn = Ecn::Ce;
    if (how == 18 && !queue[at].bytes.empty()) {
      const std::size_t where = byte() % std::min<std::size_t>(64, queue[at].bytes.size());
      queue[at].bytes[where] ^= static_cast<std::byte>(byte());
    }
  }

  Side& side() { return sides_[side_index_]; }
  ses::Context* context() { return side().contexts[context_]; }
  static void posted(Operation& op, const Result<void>& result) { op.done |= !result.ok(); }

  void pass(std::size_t packets) {
    for (Side& side : sides_) {
      side.nic.arriving = packets;
      side.fep.progress(now_);
      side.nic.arriving = 0;
    }
  }
  void finish() {
    for (Side& side : sides_) {
      side.nic.accept = SIZE_MAX;
      side.sink.room = true;
    }
    for (int i = 0; i < 50; ++i) {
      now_ += milliseconds(1);
      pass(SIZE_MAX);
    }
    for (Side& side : sides_) {
      for (ses::Context* context : side.contexts) side.fep.ses().close_context(*context, now_);
      side.fep.begin_close(now_);
    }
    // A read that fails as its PDC closes is followed by one that informs the sender.
    for (int i = 0; i < 4000 && !(ended(sides_[0]) && ended(sides_[1])); ++i) {
      now_ += milliseconds(20);
      pass(SIZE_MAX);
    }
    for (Side& side : sides_) require(ended(side));
  }
  static bool ended(const Side& side) { return side.fep.closed() && side.fep.quiescent(); }

  const std::uint8_t* data_;
  std::size_t size_;
  Time now_ = time_from_ns(16'000'000);
  std::vector<std::unique_ptr<Operation>> operations_;  // outlive the Feps, which point to them
  std::array<Side, 2> sides_{Side(0, now_), Side(1, now_)};
  std::size_t side_index_ = 0;
  std::size_t context_ = 0;
  Operation* claimed_ = nullptr;
  ses::Peer peer_;
  ses::IoSlice slice_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Machine(data, size).run();
  return 0;
}
