// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// libfabric's atomic operations and datatypes as UET knows them, and what fi_query_atomic says.
#pragma once

#include <rdma/fi_atomic.h>

#include <cstdint>
#include <optional>

#include "uet/ses/api.h"

namespace uet::prov {

// fi_ops_domain.query_atomic: fi_atomic(3).
int query_atomic(fid_domain* domain, fi_datatype datatype, fi_op op, fi_atomic_attr* attr,
                 std::uint64_t flags) noexcept;

// By table, never by arithmetic: neither enumeration is a shifted copy of the other (SES section
// 6). Nothing for numbers that UET has no word for, such as the 8-bit floats (SES-99).
std::optional<wire::AmoOp> amo_of(fi_op op);
std::optional<wire::AmoDatatype> amo_of(fi_datatype datatype);

// The atomic that an application asks for, without the parts that depend on the endpoint.
struct AtomicKind {
  ses::Kind form = ses::Kind::Atomic;
  wire::AmoOp op{};
  wire::AmoDatatype datatype{};
  std::uint32_t element_bytes = 0;
};
// nullopt: the pair is not supported in this form (-FI_EOPNOTSUPP).
std::optional<AtomicKind> atomic_kind(ses::Kind form, fi_datatype datatype, fi_op op);

// One call of the atomic family.
struct AtomicCall {
  ses::Kind form = ses::Kind::Atomic;
  fi_datatype datatype{};
  fi_op op{};
  const fi_ioc* operands = nullptr;  // not looked at by FI_ATOMIC_READ
  std::size_t operand_count = 0;
  const fi_ioc* compare = nullptr;
  std::size_t compare_count = 0;
  const fi_ioc* results = nullptr;
  std::size_t result_count = 0;
  // One for each piece of the above, or none.
  void* const* operand_descriptors = nullptr;
  void* const* compare_descriptors = nullptr;
  void* const* result_descriptors = nullptr;
  fi_addr_t to = FI_ADDR_UNSPEC;
  std::uint64_t remote = 0;
  std::uint64_t key = 0;
  void* context = nullptr;
  std::uint64_t flags = 0;
  bool locked = false;     // like TxCall's
  std::uint64_t mark = 0;  // the same
};

}  // namespace uet::prov
