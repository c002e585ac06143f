// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_run/order.h"

#include "uet_job/frames.h"

namespace uet::run {
namespace {

constexpr std::string_view kMark = "UETO";

void put(std::string& body, std::string_view text) { body.append(text).push_back('\0'); }

// The next text, and `body` behind it.
std::optional<std::string> take(std::string_view& body) {
  const std::size_t end = body.find('\0');
  if (end == std::string_view::npos) return {};
  std::string text(body.substr(0, end));
  body.remove_prefix(end + 1);
  return text;
}

bool take_list(std::string_view& body, std::vector<std::string>& list) {
  for (;;) {
    const auto text = take(body);
    if (!text) return false;
    if (text->empty()) return true;
    list.push_back(text->substr(1));
  }
}

// Each text behind a '+', so that empty ones are no end; an empty text ends the list.
void put_list(std::string& body, const std::vector<std::string>& list) {
  for (const std::string& text : list) put(body, "+" + text);
  put(body, "");
}

}  // namespace

std::string encode(const Order& order) {
  std::string body;
  put(body, order.directory);
  put_list(body, order.variables);
  put_list(body, order.arguments);
  std::string text(kMark);
  job::put32(text, static_cast<std::uint32_t>(body.size()));
  return text + body;
}

std::optional<std::size_t> body_bytes(std::string_view header) {
  if (header.size() != kOrderHeaderBytes || !header.starts_with(kMark)) return {};
  const std::size_t bytes = job::get32(header.data() + kMark.size());
  if (bytes > kMostOrderBytes) return {};
  return bytes;
}

std::optional<Order> decode(std::string_view body) {
  Order order;
  auto directory = take(body);
  if (!directory || !take_list(body, order.variables) || !take_list(body, order.arguments)) {
    return {};
  }
  if (order.arguments.empty() || !body.empty()) return {};
  order.directory = std::move(*directory);
  return order;
}

}  // namespace uet::run
