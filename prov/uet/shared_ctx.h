// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Contexts that several endpoints share: fid_stx, the room for operations in progress.
#pragma once

#include <rdma/fi_endpoint.h>

#include "domain.h"
#include "references.h"

namespace uet::prov {

// fi_ops_domain.stx_ctx: fi_stx_context(3).
int stx_open(fid_domain* domain, fi_tx_attr* attr, fid_stx** stx, void* context) noexcept;

// All its endpoints together have as many operations in progress as one context. Completions go to
// each endpoint's own CQ.
class Stx final : public fid_stx {
 public:
  static Stx& from(struct fid* fid) { return *static_cast<Stx*>(reinterpret_cast<fid_stx*>(fid)); }
  // attr.size 0: the domain's default.
  Stx(Domain& domain, const fi_tx_attr& attr, void* context);
  int close() noexcept;

  Domain& domain() { return domain_; }
  References& references() { return references_; }
  std::size_t size() const { return size_; }

  // The rest with the domain's lock.
  std::size_t left() const { return size_ - in_progress_; }
  // False if no operation has room now.
  bool take() {
    if (in_progress_ == size_) return false;
    ++in_progress_;
    return true;
  }
  void give_back(std::size_t count = 1) { in_progress_ -= count; }

 private:
  Domain& domain_;
  Hold hold_;
  References references_;
  const std::size_t size_;
  std::size_t in_progress_ = 0;
};

}  // namespace uet::prov
