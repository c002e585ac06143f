// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How an endpoint address looks at libfabric's surface: fi_info.addr_format. Everything behind it
// works with av::UetAddress.
#pragma once

#include <rdma/fabric.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "av/address.h"
#include "uet/fi_ext_uet.h"

namespace uet::prov {

class AddressFormat {
 public:
  AddressFormat() = default;  // FI_ADDR_UET of IPv4
  // What an addr_format means for addresses of one family; FI_FORMAT_UNSPEC is FI_ADDR_UET. Empty
  // if it is not served, or not for this family.
  static std::optional<AddressFormat> of(std::uint32_t addr_format, bool is_ipv6);
  // The addr_format that libfabric's variable FI_ADDR_FORMAT names (fi_getinfo(3)): libfabric
  // removes all infos of other formats, so that an application without a format gets this one.
  // `name`: the variable's value, or nullptr. FI_FORMAT_UNSPEC if it names none that is served.
  static std::uint32_t named(const char* name);
  // The addr_format that an address without a stated one shows by its bytes; FI_FORMAT_UNSPEC if
  // none.
  static std::uint32_t recognise(const void* address, std::size_t length);
  // The format of an address that is stated or, if `addr_format` is FI_FORMAT_UNSPEC, recognised.
  static std::optional<av::UetAddress> decode(std::uint32_t addr_format, const void* address,
                                              std::size_t length);

  // Likewise for an address of our own: one of FI_ADDR_UET may leave the fabric address open, and
  // states ids that an endpoint of any NIC is to have.
  static std::optional<av::UetAddress> decode_source(std::uint32_t addr_format, const void* address,
                                                     std::size_t length);

  // FI_ADDR_UET, FI_ADDR_STR, FI_SOCKADDR_IN or FI_SOCKADDR_IN6.
  std::uint32_t addr_format() const { return addr_format_; }

  // As in fi_info, fi_getname and fi_av_lookup; text ends with its 0. A socket address holds only
  // an IP address and a port name.
  // `further`: its further addresses (rails), which a socket address does not show.
  std::vector<std::byte> encode(const av::UetAddress& address,
                                std::span<const FabricAddress> further = {}) const;
  // The further addresses of the address that `cursor` stands at, as next() takes it.
  std::vector<FabricAddress> further(const std::byte* cursor) const;
  // How many endpoints of one domain it can name.
  std::size_t most_endpoints() const;
  // Would decode give the same endpoint again?
  bool can_name(const av::UetAddress& address) const;

  // An address of this format, as encode gives it, in words: what address_of_text reads.
  std::string to_text(const void* address) const;

  // Reads one address of the array that fi_av_insert takes and moves `cursor` behind it. For
  // FI_ADDR_STR the array holds pointers to texts, as fi_av(3) says, or the texts themselves one
  // after the other, as the providers shm and psm2 and their users have it. Fields that follow from
  // the rest of the address are filled in. Empty if packets cannot be sent to the address.
  std::optional<av::UetAddress> next(const std::byte*& cursor) const;

 private:
  AddressFormat(std::uint32_t addr_format, bool is_ipv6)
      : addr_format_(addr_format), is_ipv6_(is_ipv6) {}

  std::uint32_t addr_format_ = FI_ADDR_UET;
  bool is_ipv6_ = false;
};

// A text as node or as FI_ADDR_STR: our own, or "fi_sockaddr://10.0.0.1:4793", also with
// fi_sockaddr_in and fi_sockaddr_in6, whose port is a port name. Empty for anything else.
std::optional<av::UetAddress> address_of_text(std::string_view text);
// True if `text` has the form of an address text of any provider, "scheme://...".
bool is_address_text(std::string_view text);

}  // namespace uet::prov
