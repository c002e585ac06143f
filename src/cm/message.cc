// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// CM-10: the offsets of the fields.
#include "cm/message.h"

#include <algorithm>

#include "uet/base/check.h"

namespace uet::cm {
namespace {

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kTypeAt = 1;
constexpr std::size_t kDataLengthAt = 2;
constexpr std::size_t kReasonAt = 4;
constexpr std::size_t kJobAt = 5;
constexpr std::size_t kToAt = 8;
constexpr std::size_t kFromAt = 16;
constexpr std::size_t kKeepAliveAt = 24;
constexpr std::size_t kReservedAt = 28;
constexpr std::size_t kAnswersAt = 32;
constexpr std::size_t kEndpointAt = kAnswersAt + av::UetAddress::kBytes;
static_assert(kEndpointAt + av::UetAddress::kBytes == kHeaderBytes);

// Big-endian, as everything on the wire.
void put(std::byte* at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    at[i] = static_cast<std::byte>(value >> 8 * (bytes - 1 - i) & 0xFF);
  }
}

std::uint64_t get(const std::byte* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | static_cast<std::uint8_t>(at[i]);
  return value;
}

void put_address(std::byte* at, const av::UetAddress& address) {
  const av::AddressBytes bytes = av::encode(address);
  std::copy(bytes.begin(), bytes.end(), at);
}

std::optional<av::UetAddress> get_address(const std::byte* at, const FepAddress& source) {
  const auto address = av::decode(std::span(at, av::UetAddress::kBytes));
  if (!address) return {};
  av::UetAddress reachable = address.value();
  reachable.fabric_address = source.ip;
  reachable.udp_port = source.port;
  reachable.flags |= av::kFabricAddressValid;
  reachable.flags &= static_cast<std::uint8_t>(~av::kIpv6);
  if (source.ip.is_ipv6) reachable.flags |= av::kIpv6;
  return reachable;
}

bool names_endpoint(MessageType type) {
  return type == MessageType::Request || type == MessageType::Accept ||
         type == MessageType::Confirm;
}

}  // namespace

Data::Data(std::span<const std::byte> from) : length(static_cast<std::uint16_t>(from.size())) {
  UET_ASSERT(from.size() <= kMaxData);
  std::copy(from.begin(), from.end(), bytes.begin());
}

std::size_t encode(const Message& message, MessageBytes& to) {
  std::fill_n(to.begin(), kHeaderBytes, std::byte{0});
  to[0] = std::byte{kVersion};
  to[kTypeAt] = static_cast<std::byte>(message.type);
  put(&to[kDataLengthAt], message.data.length, 2);
  to[kReasonAt] = static_cast<std::byte>(message.reason);
  put(&to[kJobAt], message.job.value, 3);
  put(&to[kToAt], message.to, 8);
  put(&to[kFromAt], message.from, 8);
  if (names_endpoint(message.type)) put(&to[kKeepAliveAt], message.keep_alive_ms, 4);
  put(&to[kReservedAt], 0, 4);
  put_address(&to[kAnswersAt], message.answers);
  if (names_endpoint(message.type)) put_address(&to[kEndpointAt], message.endpoint);
  const auto data = message.data.view();
  std::copy(data.begin(), data.end(), to.begin() + kHeaderBytes);
  return kHeaderBytes + data.size();
}

std::optional<Message> decode(std::span<const std::byte> bytes, const FepAddress& source) {
  if (bytes.size() < kHeaderBytes || bytes[0] != std::byte{kVersion}) return {};
  const auto type = static_cast<std::uint8_t>(bytes[kTypeAt]);
  if (type < static_cast<std::uint8_t>(MessageType::Request) ||
      type > static_cast<std::uint8_t>(MessageType::Probe)) {
    return {};
  }
  Message message;
  message.type = static_cast<MessageType>(type);
  const std::uint64_t length = get(&bytes[kDataLengthAt], 2);
  if (length > kMaxData || length != bytes.size() - kHeaderBytes) return {};
  const auto reason = static_cast<std::uint8_t>(bytes[kReasonAt]);
  const bool known = reason <= static_cast<std::uint8_t>(RejectReason::NoListener);
  message.reason = known ? static_cast<RejectReason>(reason) : RejectReason::Application;
  message.job = JobId{static_cast<std::uint32_t>(get(&bytes[kJobAt], 3))};
  message.to = get(&bytes[kToAt], 8);
  message.from = get(&bytes[kFromAt], 8);
  const auto answers = get_address(&bytes[kAnswersAt], source);
  if (!answers || !answers->has(av::kResourceIndexValid)) return {};
  message.answers = *answers;
  if (names_endpoint(message.type)) {
    const auto endpoint = get_address(&bytes[kEndpointAt], source);
    if (!endpoint || !endpoint->has(av::kResourceIndexValid)) return {};
    message.endpoint = *endpoint;
    message.keep_alive_ms = static_cast<std::uint32_t>(get(&bytes[kKeepAliveAt], 4));
  }
  message.data = Data(bytes.subspan(kHeaderBytes));
  return message;
}

}  // namespace uet::cm
