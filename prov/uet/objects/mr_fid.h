// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_mr: registered memory. Nothing is pinned or mapped; a region is an entry of ri::MrTable, with
// the counters that count peers' accesses to it.
#pragma once

#include <rdma/fi_domain.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "compat.h"
#include "hmem/dmabuf.h"
#include "hmem/nic_read.h"
#include "objects/cntr.h"
#include "objects/engines.h"
#include "objects/references.h"

namespace uet::prov {

class Domain;

// fi_ops_mr: fi_mr(3).
int mr_reg(fid* domain, const void* buffer, std::size_t length, std::uint64_t access,
           std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags, fid_mr** mr,
           void* context) noexcept;
int mr_regv(fid* domain, const iovec* iov, std::size_t count, std::uint64_t access,
            std::uint64_t offset, std::uint64_t requested_key, std::uint64_t flags, fid_mr** mr,
            void* context) noexcept;
int mr_regattr(fid* domain, const fi_mr_attr* attr, std::uint64_t flags, fid_mr** mr) noexcept;

// Implements fi_mr_map_raw (fi_control of the domain): a raw key is the key in memory order, so
// that no mapping has to be stored and fi_mr_unmap_key has nothing to do.
int map_raw_key(const struct fi_mr_map_raw& request) noexcept;

class Mr final : public fid_mr, public ri::AccessObserver {
 public:
  static Mr& from(struct fid* fid) { return static_cast<Mr&>(*reinterpret_cast<fid_mr*>(fid)); }
  // `base`: the region that it is a part of; nullptr: none.
  static int open(Domain& domain, const fi_mr_attr& attr, const fid_mr* base, std::uint64_t flags,
                  Mr*& out);

  // That of fi_mr_desc.
  static const Mr& of_descriptor(void* descriptor) {
    return *static_cast<const Mr*>(static_cast<fid_mr*>(descriptor));
  }
  // The device interface that copies its bytes; nullptr for memory of the CPU.
  DeviceMemory* hmem() const { return hmem_; }
  // Likewise, for bytes that are sent: the NIC may read them itself.
  DeviceMemory* sends_from() const { return sends_from_; }
  // Does all of this lie in it?
  bool holds(const std::byte* address, std::size_t bytes) const {
    return address >= base_ && bytes <= length_ &&
           static_cast<std::size_t>(address - base_) <= length_ - bytes;
  }

  // Implementations of the calls of the same name.
  int close() noexcept;
  int bind(struct fid* other, std::uint64_t flags);
  int enable();
  int get_raw(const struct fi_mr_raw_attr& request) const noexcept;

  // ri::AccessObserver, under the lock of an engine.
  void accessed(std::uint8_t access, std::uint64_t length) noexcept override;
  bool counts_reads() const noexcept override;
  void accessed_part(std::uint8_t access, std::uint64_t length) noexcept override;

 private:
  Mr(Domain& domain, const fi_mr_attr& attr, std::uint64_t flags);
  int find_memory(const fi_mr_attr& attr);
  int find_part(const fi_mr_attr& attr, const fid_mr& base);
  int map_dmabuf(const fi_mr_attr& attr, const MrDmabuf& buffer);
  int find_key(const fi_mr_attr& attr, std::optional<JobId>& job);
  int enter(const fi_mr_attr& attr);
  int enter_under_key(const ri::MemoryRegion& region, std::uint64_t requested_key);
  int enter_in_all(const ri::MemoryRegion& region);
  void remove_from(Engine& engine);
  void remove_from_fep(Engine& engine);
  void tell_nic(const fi_mr_attr& attr);
  void tell_nic_of_device(const fi_mr_attr& attr);
  template <class Register>
  bool register_in_nics(Register call);
  void forget_in_nics();
  int bind_counter(Cntr& counter, std::uint64_t flags);
  int bind_endpoint(Engine& engine, const ri::ContextName& first, std::size_t count,
                    std::uint64_t flags);
  template <class Change>
  void change_region(Change change);

  Domain& domain_;
  Engines& engines_;
  Engine& engine_;             // the first
  std::array<Hold, 4> holds_;  // domain, two counters, the region that it is a part of
  mutable References parts_;   // regions that are parts of it
  std::uint64_t flags_;
  std::byte* base_ = nullptr;  // where it is, for the CPU or for its device
  std::size_t length_ = 0;
  DeviceMemory* hmem_ = nullptr;
  DeviceMemory* sends_from_ = nullptr;  // hmem_, or nic_read_ of this region or of its base
  std::unique_ptr<Dmabuf> dmabuf_;
  std::optional<NicReadMemory> nic_read_;
  std::uint64_t base_address_ = 0;  // what peers give for the first byte
  bool entered_ = false;            // in the table: a peer can reach it
  bool enabled_ = false;
  bool bound_ = false;  // to an endpoint
  // Nic::register_memory and register_device_memory of each engine; empty: the NICs were not told.
  std::vector<std::uint64_t> nic_memory_;
  Cntr* remote_read_ = nullptr;
  Cntr* remote_write_ = nullptr;
};

}  // namespace uet::prov
