// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The wire vectors of test/vectors as JSON and bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace uet::wire {

using Bytes = std::vector<std::byte>;

inline Bytes from_hex(const std::string& hex) {
  Bytes bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

inline std::string to_hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (std::byte b : bytes) {
    hex += kDigits[std::to_integer<unsigned>(b) >> 4];
    hex += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return hex;
}

inline nlohmann::json read_vectors(const std::string& file) {
  std::ifstream in(std::string(UET_SOURCE_DIR) + "/test/vectors/" + file);
  return nlohmann::json::parse(in);
}

inline const nlohmann::json& wire_vectors() {
  static const nlohmann::json vectors = read_vectors("uet-wire-vectors.json");
  return vectors;
}

inline const nlohmann::json& wire_vector(const std::string& name) {
  for (const auto& vector : wire_vectors()) {
    if (vector["name"] == name) return vector;
  }
  throw std::out_of_range(name);
}

inline Bytes vector_bytes(const std::string& name) {
  return from_hex(wire_vector(name)["hex"].get<std::string>());
}

// A number of a vector: as such or as a string "0x..."; negative ones in two's complement.
inline std::uint64_t as_number(const nlohmann::json& value) {
  if (value.is_string()) return std::stoull(value.get<std::string>(), nullptr, 16);
  return static_cast<std::uint64_t>(value.get<std::int64_t>());
}

// fields[key] as a T; 0 if it is not there.
template <class T>
T field(const nlohmann::json& fields, const char* key) {
  if (!fields.contains(key)) return T{};
  return static_cast<T>(as_number(fields[key]));
}

}  // namespace uet::wire
