// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Compound operations are rare enough to allocate each.
#include "objects/compound.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include "objects/ep_state.h"
#include "objects/post_operation.h"
#include "ses/initiator.h"
#include "settings/hints.h"

namespace uet::prov {
namespace {

// Pieces of one operation that are in progress at a time: enough that the network never waits for
// the next one, few enough that other operations find a free place.
constexpr unsigned kPiecesInProgress = 16;

using Slices = std::array<ses::IoSlice, ses::kMaxIoSlices>;

// Bytes [offset, offset + length) of the slices; their number.
std::size_t cut(std::span<const ses::IoSlice> slices, std::uint64_t offset, std::uint64_t length,
                Slices& out) {
  std::size_t count = 0;
  for (const ses::IoSlice& slice : slices) {
    if (offset >= slice.length) {
      offset -= slice.length;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(slice.length - offset, length);
    if (part == 0) break;
    out[count++] = {slice.data + offset, part, slice.device};
    length -= part;
    offset = 0;
  }
  return count;
}

}  // namespace

struct Compound : ListNode<CompoundTag> {
  Compounds* owner = nullptr;
  // The application's operation.
  ses::Kind kind = ses::Kind::Write;
  void* context = nullptr;
  std::uint64_t user_flags = 0;
  ses::Peer peer;
  bool delivery_complete = false;
  bool fence = false;
  bool prompt_ack = true;
  std::optional<std::uint64_t> data;
  std::array<ses::IoSlice, ses::kMaxIoSlices> local;
  std::size_t local_count = 0;
  std::array<fi_rma_iov, kMaxRmaRanges> ranges{};  // none is empty, unless it is the only one
  std::size_t range_count = 0;
  std::uint64_t length = 0;
  std::uint64_t piece_bytes = 0;          // the most in one piece
  std::unique_ptr<std::byte[]> injected;  // FI_INJECT: the data, since later pieces wait

  // Where the next piece begins.
  std::size_t range = 0;
  std::uint64_t range_offset = 0;
  std::uint64_t offset = 0;  // in the local buffers

  bool last_waits = false;  // the last piece leaves when all others have been delivered
  bool posting = false;     // a call of SES for it is under way
  bool cancelled = false;
  unsigned in_progress = 0;
  ses::Completion first_error;  // status Ok: none

  bool failed() const { return first_error.status != ses::Status::Ok; }
  bool nothing_posted() const { return range == 0 && range_offset == 0; }
  bool all_posted() const { return range == range_count; }
  // No piece will be posted any more.
  bool stopped() const { return all_posted() || failed() || cancelled; }
  std::uint64_t next_length() const {
    return std::min<std::uint64_t>(ranges[range].len - range_offset, piece_bytes);
  }
  bool next_is_last() const {
    return range + 1 == range_count && range_offset + next_length() == ranges[range].len;
  }
  bool may_post() const {
    return !stopped() && in_progress < kPiecesInProgress &&
           !(last_waits && in_progress > 0 && next_is_last());
  }
  // SES-162: whether the next piece ends the operation, or its part in one region.
  ses::Part next_part() const {
    if (next_is_last()) return ses::Part::Whole;
    if (range_offset + next_length() < ranges[range].len) return ses::Part::Inside;
    const auto same_region = [&](const fi_rma_iov& later) {
      return later.key == ranges[range].key;
    };
    const bool more =
        std::any_of(ranges.begin() + static_cast<std::ptrdiff_t>(range) + 1,
                    ranges.begin() + static_cast<std::ptrdiff_t>(range_count), same_region);
    return more ? ses::Part::Inside : ses::Part::RegionEnd;
  }
  void advance(std::uint64_t bytes) {
    offset += bytes;
    range_offset += bytes;
    if (range_offset < ranges[range].len) return;
    ++range;
    range_offset = 0;
  }
  bool copy_injected() noexcept;
};

// False: there is no memory.
bool Compound::copy_injected() noexcept {
  injected.reset(new (std::nothrow) std::byte[length]);
  if (injected == nullptr) return false;
  std::byte* to = injected.get();
  for (std::size_t i = 0; i < local_count; ++i) {
    if (local[i].length == 0) continue;
    std::memcpy(to, local[i].data, local[i].length);
    to += local[i].length;
  }
  local[0] = {injected.get(), length};
  local_count = 1;
  return true;
}

void PieceTurns::run_all(Time now) noexcept {
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Compounds& compounds = *at;
    ++at;
    compounds.post_all(now);
  }
}

Compounds::~Compounds() { drop(); }

bool Compounds::is_ordered() const noexcept { return state_.config.mode == DeliveryMode::Rod; }

PieceTurns& Compounds::turns() const noexcept { return state_.engine.piece_turns(); }

Result<void> Compounds::post(const ses::RmaOp& op, std::span<const fi_rma_iov> ranges,
                             Time now) noexcept {
  std::unique_ptr<Compound> owned(new (std::nothrow) Compound);
  if (owned == nullptr) return Error::NoMemory;
  Compound& compound = *owned;
  compound.owner = this;
  compound.kind = op.kind;
  compound.context = op.context;
  compound.user_flags = op.user_flags;
  compound.peer = *op.peer;
  compound.delivery_complete = op.delivery_complete;
  compound.fence = op.fence;
  compound.prompt_ack = op.prompt_ack;
  compound.data = op.data;
  compound.local_count = op.local.size();
  std::copy(op.local.begin(), op.local.end(), compound.local.begin());
  for (const fi_rma_iov& range : ranges) {
    compound.length += range.len;
    if (range.len > 0) compound.ranges[compound.range_count++] = range;
  }
  if (compound.range_count == 0) compound.ranges[compound.range_count++] = ranges.front();
  compound.piece_bytes = state_.engine.piece_bytes();
  // On ROD the target executes the last piece after the others, but also if one of them has failed.
  compound.last_waits = op.kind == ses::Kind::Write && (!is_ordered() || op.data);
  if (op.inject && compound.length > 0 && !compound.copy_injected()) return Error::NoMemory;
  all_.push_back(compound);
  const Result<void> posted = post_pieces(compound, now);
  if (!posted && compound.nothing_posted()) {
    IntrusiveList<Compound, CompoundTag>::remove(compound);
    return posted;
  }
  (void)owned.release();
  update_turn();
  end_if_done(compound);
  return {};
}

Result<void> Compounds::post_pieces(Compound& compound, Time now) noexcept {
  Result<void> posted;
  compound.posting = true;
  while (posted && compound.may_post()) posted = post_piece(compound, now);
  compound.posting = false;
  // Without a place for it, a piece is posted later. Other errors come for the first one alone.
  if (!posted && posted.error() != Error::Again && !compound.nothing_posted() &&
      !compound.failed()) {
    compound.first_error.status = ses::Status::PdsError;
    compound.first_error.pds_error = pds::PdsError::ProtocolError;
  }
  return posted;
}

Result<void> Compounds::post_piece(Compound& compound, Time now) noexcept UET_NO_THREAD_ANALYSIS {
  const std::uint64_t length = compound.next_length();
  const bool last = compound.next_is_last();
  Slices slices;
  const std::size_t count =
      cut({compound.local.data(), compound.local_count}, compound.offset, length, slices);
  ses::RmaOp op;
  op.kind = compound.kind;
  op.peer = &compound.peer;
  op.local = {slices.data(), count};
  op.delivery_complete = compound.delivery_complete || (compound.last_waits && !last);
  op.fence = compound.fence && compound.nothing_posted();
  op.prompt_ack = compound.prompt_ack || !last;
  op.part = compound.next_part();
  if (last) op.data = compound.data;
  op.context = &compound;
  op.user_flags = kCompound;
  op.remote_offset = compound.ranges[compound.range].addr + compound.range_offset;
  op.key = Rkey{compound.ranges[compound.range].key};
  ++compound.in_progress;  // it may end at once
  const Result<void> posted = post_operation(state_, op, now);
  if (posted) {
    compound.advance(length);
  } else {
    --compound.in_progress;
  }
  return posted;
}

void Compounds::post_all(Time now) noexcept UET_NO_THREAD_ANALYSIS {
  bool posted_some = false;
  for (auto at = all_.begin(); at != all_.end();) {
    Compound& compound = *at;
    ++at;
    const std::uint64_t before = compound.offset;
    if (compound.may_post()) (void)post_pieces(compound, now);
    posted_some |= compound.offset != before;
    const bool waits = !compound.stopped();
    end_if_done(compound);
    if (waits && is_ordered()) break;  // the next ones come behind it
  }
  update_turn();
  if (posted_some) state_.engine.fep().push(now);
}

void Compounds::piece_ended(const ses::Completion& completion) noexcept {
  Compound& compound = *static_cast<Compound*>(completion.context);
  Compounds& owner = *compound.owner;
  --compound.in_progress;
  if (completion.status != ses::Status::Ok && !compound.failed()) compound.first_error = completion;
  if (compound.posting) return;
  owner.end_if_done(compound);
  owner.update_turn();
}

void Compounds::end_if_done(Compound& compound) noexcept {
  if (compound.posting || !compound.stopped() || compound.in_progress > 0) return;
  ses::Completion completion = compound.first_error;
  if (compound.cancelled && (compound.failed() || !compound.all_posted())) {
    completion.status = ses::Status::Cancelled;
  }
  completion.kind = compound.kind;
  completion.context = compound.context;
  completion.user_flags = compound.user_flags;
  completion.length = compound.length;
  IntrusiveList<Compound, CompoundTag>::remove(compound);
  delete &compound;
  sink_.complete(completion);
}

bool Compounds::cancel(const void* context, Time now) noexcept UET_NO_THREAD_ANALYSIS {
  for (Compound& compound : all_) {
    if (compound.context != context || compound.cancelled) continue;
    const bool was_stopped = compound.stopped();
    compound.cancelled = true;
    compound.posting = true;
    bool any = false;
    for (unsigned left = compound.in_progress; left > 0; --left) {
      if (!state_.cancel(&compound, now)) break;
      any = true;
    }
    compound.posting = false;
    end_if_done(compound);
    update_turn();
    return any || !was_stopped;
  }
  return false;
}

void Compounds::update_turn() noexcept {
  const bool wanted = all_.any_of([](const Compound& one) { return !one.stopped(); });
  if (wanted == waits()) return;
  if (wanted) {
    turns().waiting_.push_back(*this);
  } else {
    turns().waiting_.remove(*this);
  }
}

void Compounds::drop() noexcept {
  while (!all_.empty()) delete &all_.pop_front();
  if (waits()) turns().waiting_.remove(*this);
}

}  // namespace uet::prov
