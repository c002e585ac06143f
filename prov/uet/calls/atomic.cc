// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_atomic and its relatives: each fills in one call and hands it to the endpoint; the ...valid
// calls and fi_query_atomic answer from the same table that the target executes by.
#include "calls/atomic.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "compat.h"
#include "objects/domain.h"
#include "objects/endpoint_fid.h"
#include "provider.h"
#include "ses/atomic.h"

namespace uet::prov {
namespace {

using ses::Kind;
using wire::AmoDatatype;
using wire::AmoOp;

constexpr std::array<std::pair<int, AmoOp>, 20> kAmoOps = {{
    {FI_MIN, AmoOp::Min},          {FI_MAX, AmoOp::Max},          {FI_SUM, AmoOp::Sum},
    {FI_PROD, AmoOp::Prod},        {FI_LOR, AmoOp::Lor},          {FI_LAND, AmoOp::Land},
    {FI_BOR, AmoOp::Bor},          {FI_BAND, AmoOp::Band},        {FI_LXOR, AmoOp::Lxor},
    {FI_BXOR, AmoOp::Bxor},        {FI_ATOMIC_READ, AmoOp::Read}, {FI_ATOMIC_WRITE, AmoOp::Write},
    {FI_CSWAP, AmoOp::Cswap},      {FI_CSWAP_NE, AmoOp::CswapNe}, {FI_CSWAP_LE, AmoOp::CswapLe},
    {FI_CSWAP_LT, AmoOp::CswapLt}, {FI_CSWAP_GE, AmoOp::CswapGe}, {FI_CSWAP_GT, AmoOp::CswapGt},
    {FI_MSWAP, AmoOp::Mswap},      {kOpDiff, AmoOp::Diff},
}};

constexpr std::array<std::pair<int, AmoDatatype>, 18> kDatatypes = {{
    {FI_INT8, AmoDatatype::Int8},
    {FI_UINT8, AmoDatatype::Uint8},
    {FI_INT16, AmoDatatype::Int16},
    {FI_UINT16, AmoDatatype::Uint16},
    {FI_INT32, AmoDatatype::Int32},
    {FI_UINT32, AmoDatatype::Uint32},
    {FI_INT64, AmoDatatype::Int64},
    {FI_UINT64, AmoDatatype::Uint64},
    {FI_FLOAT, AmoDatatype::Float},
    {FI_DOUBLE, AmoDatatype::Double},
    {FI_FLOAT_COMPLEX, AmoDatatype::FloatComplex},
    {FI_DOUBLE_COMPLEX, AmoDatatype::DoubleComplex},
    {FI_LONG_DOUBLE, AmoDatatype::LongDouble},
    {FI_LONG_DOUBLE_COMPLEX, AmoDatatype::LongDoubleComplex},
    {FI_INT128, AmoDatatype::Int128},
    {FI_UINT128, AmoDatatype::Uint128},
    {kDatatypeFloat16, AmoDatatype::Fp16},
    {kDatatypeBfloat16, AmoDatatype::Bf16},
}};

template <class Table>
auto find(const Table& table, int number) {
  std::optional<decltype(table[0].second)> found;
  for (const auto& [theirs, ours] : table) {
    if (theirs == number) found = ours;
  }
  return found;
}

// Elements that one call may work on; a compare-and-swap packet holds one (WIRE 3.5).
std::size_t most_elements(const AtomicKind& kind, std::uint32_t payload_mtu) {
  return kind.form == Kind::CompareAtomic ? 1 : payload_mtu / kind.element_bytes;
}

// The pieces in bytes. False: one of them, or all together, have more than 2^64.
bool in_bytes(const fi_ioc* pieces, std::size_t count, std::uint32_t element_bytes,
              std::array<iovec, ses::kMaxIoSlices>& out) {
  for (std::size_t i = 0; i < count; ++i) {
    out[i].iov_base = pieces[i].addr;
    if (__builtin_mul_overflow(pieces[i].count, element_bytes, &out[i].iov_len)) return false;
  }
  return total_bytes(out.data(), count).has_value();
}

bool in_bytes(const fi_ioc* pieces, std::size_t count, std::uint32_t element_bytes, Slices& slices,
              std::span<const ses::IoSlice>& out) {
  std::array<iovec, ses::kMaxIoSlices> iov;
  if (!in_bytes(pieces, count, element_bytes, iov)) return false;
  fill_slices(iov.data(), count, slices);
  out = std::span(slices.data(), count);
  return true;
}

// ---- the calls ---------------------------------------------------------------------------------

// The fields that calls with single buffers and calls with arrays have in common.
AtomicCall call_of(Kind form, fi_datatype datatype, fi_op op, fi_addr_t to, std::uint64_t remote,
                   std::uint64_t key, void* context) {
  AtomicCall call;
  call.form = form;
  call.datatype = datatype;
  call.op = op;
  call.to = to;
  call.remote = remote;
  call.key = key;
  call.context = context;
  return call;
}

fi_ioc ioc_of(const void* buffer, std::size_t count) { return {const_cast<void*>(buffer), count}; }

ssize_t post(fid_ep* ep, AtomicCall& call) noexcept {
  const EndpointFid& handle = EndpointFid::from(ep);
  call.flags = handle.tx_flags();
  return handle.endpoint().tx().atomic(call);
}

ssize_t atomic_writev(fid_ep* ep, const fi_ioc* iov, void** desc, std::size_t count, fi_addr_t to,
                      std::uint64_t remote, std::uint64_t key, fi_datatype datatype, fi_op op,
                      void* context) noexcept {
  AtomicCall call = call_of(Kind::Atomic, datatype, op, to, remote, key, context);
  call.operands = iov;
  call.operand_count = count;
  call.operand_descriptors = desc;
  return post(ep, call);
}

ssize_t atomic_write(fid_ep* ep, const void* buffer, std::size_t count, void* desc, fi_addr_t to,
                     std::uint64_t remote, std::uint64_t key, fi_datatype datatype, fi_op op,
                     void* context) noexcept {
  const fi_ioc iov = ioc_of(buffer, count);
  return atomic_writev(ep, &iov, &desc, 1, to, remote, key, datatype, op, context);
}

ssize_t atomic_inject(fid_ep* ep, const void* buffer, std::size_t count, fi_addr_t to,
                      std::uint64_t remote, std::uint64_t key, fi_datatype datatype,
                      fi_op op) noexcept {
  const fi_ioc iov = ioc_of(buffer, count);
  AtomicCall call = call_of(Kind::Atomic, datatype, op, to, remote, key, nullptr);
  call.operands = &iov;
  call.operand_count = 1;
  const EndpointFid& handle = EndpointFid::from(ep);
  call.flags = handle.inject_flags();
  return handle.endpoint().tx().atomic(call);
}

ssize_t atomic_readwritev(fid_ep* ep, const fi_ioc* iov, void** desc, std::size_t count,
                          fi_ioc* results, void** result_desc, std::size_t result_count,
                          fi_addr_t to, std::uint64_t remote, std::uint64_t key,
                          fi_datatype datatype, fi_op op, void* context) noexcept {
  AtomicCall call = call_of(Kind::FetchAtomic, datatype, op, to, remote, key, context);
  call.operands = iov;
  call.operand_count = count;
  call.operand_descriptors = desc;
  call.results = results;
  call.result_count = result_count;
  call.result_descriptors = result_desc;
  return post(ep, call);
}

ssize_t atomic_readwrite(fid_ep* ep, const void* buffer, std::size_t count, void* desc,
                         void* result, void* result_desc, fi_addr_t to, std::uint64_t remote,
                         std::uint64_t key, fi_datatype datatype, fi_op op,
                         void* context) noexcept {
  const fi_ioc iov = ioc_of(buffer, count);
  fi_ioc results = ioc_of(result, count);
  return atomic_readwritev(ep, &iov, &desc, 1, &results, &result_desc, 1, to, remote, key, datatype,
                           op, context);
}

ssize_t atomic_compwritev(fid_ep* ep, const fi_ioc* iov, void** desc, std::size_t count,
                          const fi_ioc* compare, void** compare_desc, std::size_t compare_count,
                          fi_ioc* results, void** result_desc, std::size_t result_count,
                          fi_addr_t to, std::uint64_t remote, std::uint64_t key,
                          fi_datatype datatype, fi_op op, void* context) noexcept {
  AtomicCall call = call_of(Kind::CompareAtomic, datatype, op, to, remote, key, context);
  call.operands = iov;
  call.operand_count = count;
  call.operand_descriptors = desc;
  call.compare = compare;
  call.compare_count = compare_count;
  call.compare_descriptors = compare_desc;
  call.results = results;
  call.result_count = result_count;
  call.result_descriptors = result_desc;
  return post(ep, call);
}

ssize_t atomic_compwrite(fid_ep* ep, const void* buffer, std::size_t count, void* desc,
                         const void* compare, void* compare_desc, void* result, void* result_desc,
                         fi_addr_t to, std::uint64_t remote, std::uint64_t key,
                         fi_datatype datatype, fi_op op, void* context) noexcept {
  const fi_ioc iov = ioc_of(buffer, count);
  const fi_ioc comparison = ioc_of(compare, count);
  fi_ioc results = ioc_of(result, count);
  return atomic_compwritev(ep, &iov, &desc, 1, &comparison, &compare_desc, 1, &results,
                           &result_desc, 1, to, remote, key, datatype, op, context);
}

// rma_iov_limit is 1, and the target's elements are as many as the operands (or, without operands,
// the results).
bool is_valid(const fi_msg_atomic& msg, const fi_ioc* results, std::size_t result_count) {
  const bool reads = msg.op == FI_ATOMIC_READ;
  const fi_ioc* iov = reads ? results : msg.msg_iov;
  const std::size_t iov_count = reads ? result_count : msg.iov_count;
  std::size_t count = 0;
  bool fits = iov_count <= ses::kMaxIoSlices;
  for (std::size_t i = 0; fits && i < iov_count; ++i) {
    fits = !__builtin_add_overflow(count, iov[i].count, &count);
  }
  const bool one = msg.rma_iov_count == 1 && msg.rma_iov != nullptr;
  if (fits && one && msg.rma_iov->count == count) return true;
  FI_WARN(&provider, FI_LOG_EP_DATA,
          "fi_atomicmsg: use one remote piece with as many elements as the local buffers\n");
  return false;
}

// With the flags of a ...msg call.
ssize_t post(fid_ep* ep, const fi_msg_atomic& msg, std::uint64_t flags, AtomicCall& call) noexcept {
  if (!is_valid(msg, call.results, call.result_count)) return -FI_EINVAL;
  const EndpointFid& handle = EndpointFid::from(ep);
  call.operands = msg.msg_iov;
  call.operand_count = msg.iov_count;
  call.operand_descriptors = msg.desc;
  call.flags = handle.tx_msg_flags(flags);
  return handle.endpoint().tx().atomic(call);
}

AtomicCall call_of(Kind form, const fi_msg_atomic& msg) {
  const bool has_remote = msg.rma_iov_count > 0 && msg.rma_iov != nullptr;
  return call_of(form, msg.datatype, msg.op, msg.addr, has_remote ? msg.rma_iov->addr : 0,
                 has_remote ? msg.rma_iov->key : 0, msg.context);
}

ssize_t atomic_writemsg(fid_ep* ep, const fi_msg_atomic* msg, std::uint64_t flags) noexcept {
  AtomicCall call = call_of(Kind::Atomic, *msg);
  return post(ep, *msg, flags, call);
}

ssize_t atomic_readwritemsg(fid_ep* ep, const fi_msg_atomic* msg, fi_ioc* results,
                            void** result_desc, std::size_t result_count,
                            std::uint64_t flags) noexcept {
  AtomicCall call = call_of(Kind::FetchAtomic, *msg);
  call.results = results;
  call.result_count = result_count;
  call.result_descriptors = result_desc;
  return post(ep, *msg, flags, call);
}

ssize_t atomic_compwritemsg(fid_ep* ep, const fi_msg_atomic* msg, const fi_ioc* compare,
                            void** compare_desc, std::size_t compare_count, fi_ioc* results,
                            void** result_desc, std::size_t result_count,
                            std::uint64_t flags) noexcept {
  AtomicCall call = call_of(Kind::CompareAtomic, *msg);
  call.compare = compare;
  call.compare_count = compare_count;
  call.compare_descriptors = compare_desc;
  call.results = results;
  call.result_count = result_count;
  call.result_descriptors = result_desc;
  return post(ep, *msg, flags, call);
}

// ---- what is supported -------------------------------------------------------------------------

// AI Base has atomics that fetch nothing (SES section 13).
std::optional<AtomicKind> offered_kind(const Engine& engine, Kind form, fi_datatype datatype,
                                       fi_op op) {
  if (form != Kind::Atomic && engine.params().profile == Profile::AiBase) return {};
  return atomic_kind(form, datatype, op);
}

template <Kind Form>
int atomic_valid(fid_ep* ep, fi_datatype datatype, fi_op op, std::size_t* count) noexcept {
  const Engine& engine = EndpointFid::from(ep).endpoint().engine();
  const auto kind = offered_kind(engine, Form, datatype, op);
  if (!kind) return -FI_EOPNOTSUPP;
  if (count != nullptr) *count = most_elements(*kind, engine.payload_mtu());
  return 0;
}

}  // namespace

fi_ops_atomic atomic_ops = {
    .size = sizeof(fi_ops_atomic),
    .write = atomic_write,
    .writev = atomic_writev,
    .writemsg = atomic_writemsg,
    .inject = atomic_inject,
    .readwrite = atomic_readwrite,
    .readwritev = atomic_readwritev,
    .readwritemsg = atomic_readwritemsg,
    .compwrite = atomic_compwrite,
    .compwritev = atomic_compwritev,
    .compwritemsg = atomic_compwritemsg,
    .writevalid = atomic_valid<Kind::Atomic>,
    .readwritevalid = atomic_valid<Kind::FetchAtomic>,
    .compwritevalid = atomic_valid<Kind::CompareAtomic>,
};

std::optional<AmoOp> amo_of(fi_op op) { return find(kAmoOps, static_cast<int>(op)); }
std::optional<AmoDatatype> amo_of(fi_datatype datatype) {
  return find(kDatatypes, static_cast<int>(datatype));
}

std::optional<AtomicKind> atomic_kind(Kind form, fi_datatype datatype, fi_op op) {
  const auto our_op = amo_of(op);
  const auto our_datatype = amo_of(datatype);
  if (!our_op || !our_datatype) return {};
  if (ses::check_atomic(form, *our_op, *our_datatype) != wire::ReturnCode::Ok) return {};
  return AtomicKind{form, *our_op, *our_datatype, ses::element_bytes(*our_datatype)};
}

int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op op, fi_atomic_attr* attr,
                 std::uint64_t flags) noexcept {
  constexpr std::uint64_t kForms = FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC;
  if ((flags & FI_TAGGED) != 0) return -FI_EOPNOTSUPP;  // none on tagged receive buffers
  if ((flags & ~kForms) != 0 || flags == kForms) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "fi_query_atomic: flags must be 0, FI_FETCH_ATOMIC or FI_COMPARE_ATOMIC\n");
    return -FI_EBADFLAGS;
  }
  Kind form = Kind::Atomic;
  if (flags == FI_FETCH_ATOMIC) form = Kind::FetchAtomic;
  if (flags == FI_COMPARE_ATOMIC) form = Kind::CompareAtomic;
  const Engine& engine = Domain::from(domain).engine();
  const auto kind = offered_kind(engine, form, datatype, op);
  if (!kind) return -FI_EOPNOTSUPP;
  attr->count = most_elements(*kind, engine.payload_mtu());
  attr->size = kind->element_bytes;
  return 0;
}

ssize_t TxSide::atomic(const AtomicCall& call) noexcept {
  if (division_ != nullptr) [[unlikely]] {
    TxSide* const other = other_side(call.to, call.locked);
    if (other != nullptr) return other->atomic(call);
  }
  const auto kind = offered_kind(engine_, call.form, call.datatype, call.op);
  if (!kind || (call.flags & FI_TAGGED) != 0) {
    return refuse_endpoint(
        -FI_EOPNOTSUPP,
        "fi_atomic: endpoint: operation and datatype are not supported; ask fi_query_atomic");
  }
  const bool reads = kind->op == AmoOp::Read;
  const std::size_t operand_count = reads ? 0 : call.operand_count;
  const std::size_t most = std::max({operand_count, call.compare_count, call.result_count});
  if (most > ses::kMaxIoSlices || (call.flags & FI_REMOTE_CQ_DATA) != 0) {
    return refuse_endpoint(
        -FI_EINVAL,
        "fi_atomic: endpoint: too many pieces, or FI_REMOTE_CQ_DATA; use at most iov_limit pieces");
  }
  if (engine_.knows_hmem() && (name_devices(call.operand_descriptors, operand_count) ||
                               name_devices(call.compare_descriptors, call.compare_count) ||
                               name_devices(call.result_descriptors, call.result_count))) {
    return refuse_endpoint(
        -FI_EOPNOTSUPP,
        "fi_atomic: endpoint: a buffer is in device memory; use buffers of FI_HMEM_SYSTEM");
  }
  std::array<iovec, ses::kMaxIoSlices> operands;
  Slices compare;
  Slices results;
  ses::AtomicOp op;
  const std::uint32_t bytes = kind->element_bytes;
  if (!in_bytes(call.operands, operand_count, bytes, operands) ||
      !in_bytes(call.compare, call.compare_count, bytes, compare, op.compare) ||
      !in_bytes(call.results, call.result_count, bytes, results, op.results)) {
    return refuse_endpoint(-FI_EINVAL,
                           "fi_atomic: endpoint: more elements than 2^64 bytes hold; post fewer");
  }
  const TxCall tx{operands.data(), operand_count, call.to,  call.context, call.flags, {},
                  nullptr,         call.locked,   call.mark};
  if ((call.flags & FI_TRIGGER) != 0) return defer_atomic(call, tx, bytes);
  op.kind = kind->form;
  op.op = kind->op;
  op.datatype = kind->datatype;
  op.remote_offset = call.remote;
  op.key = Rkey{call.key};
  return post(tx, ses::AtomicOp(op));
}

// `tx` has the operands, of which the queue keeps a copy; we keep one of the rest.
ssize_t TxSide::defer_atomic(const AtomicCall& call, const TxCall& tx,
                             std::uint32_t element_bytes) noexcept {
  if (const int result = may_defer(state_); result != 0) return result;
  return guarded([&] {
    const std::vector<fi_ioc> compare(call.compare, call.compare + call.compare_count);
    const std::vector<fi_ioc> results(call.results, call.results + call.result_count);
    return engine_.works().defer(
        endpoint_, call.form, tx, [this, call, compare, results, element_bytes](const TxCall& due) {
          std::array<fi_ioc, ses::kMaxIoSlices> operands;
          for (std::size_t i = 0; i < due.count; ++i) {
            operands[i] = {due.iov[i].iov_base, due.iov[i].iov_len / element_bytes};
          }
          AtomicCall own = call;
          own.operand_descriptors = own.compare_descriptors = own.result_descriptors = nullptr;
          own.operands = operands.data();
          own.operand_count = due.count;
          own.compare = compare.data();
          own.results = results.data();
          own.context = due.context;
          own.flags = due.flags;
          own.locked = due.locked;
          own.mark = due.mark;
          return atomic(own);
        });
  });
}

}  // namespace uet::prov
