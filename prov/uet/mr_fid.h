// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_mr: registered memory. Nothing is pinned or mapped; a region is an entry of ri::MrTable.
#pragma once

#include <rdma/fi_domain.h>

#include "domain.h"
#include "references.h"

namespace uet::prov {

// fi_ops_mr: fi_mr(3).
int mr_reg(fid* domain, const void* buffer, std::size_t length, std::uint64_t access,
           std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags, fid_mr** mr,
           void* context) noexcept;
int mr_regv(fid* domain, const iovec* iov, std::size_t count, std::uint64_t access,
            std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags, fid_mr** mr,
            void* context) noexcept;
int mr_regattr(fid* domain, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** mr) noexcept;

class Mr final : public fid_mr {
 public:
  static Mr& from(struct fid* fid) { return *static_cast<Mr*>(reinterpret_cast<fid_mr*>(fid)); }
  static int open(Domain& domain, const fi_mr_attr& attr, std::uint64_t flags, Mr*& out);
  int close() noexcept;
  int bind(struct fid* other) noexcept;

 private:
  Mr(Domain& domain, void* context);
  int enter(const fi_mr_attr& attr);

  Domain& domain_;
  Hold hold_;
  bool entered_ = false;  // in the table: a peer can reach it
};

}  // namespace uet::prov
