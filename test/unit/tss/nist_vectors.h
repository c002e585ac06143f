// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads NIST's files of vectors as Debian's python3-cryptography-vectors has them: groups in
// brackets, "NAME = VALUE" lines, a record for each COUNT.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace uet::tss {

// Values by name in upper case, those of the groups before it included. "FAIL" alone is a name with
// an empty value.
using NistRecord = std::map<std::string, std::string>;

inline std::string trimmed_text(std::string text) {
  const auto space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!text.empty() && space(text.back())) text.pop_back();
  std::size_t start = 0;
  while (start < text.size() && space(text[start])) ++start;
  return text.substr(start);
}

// Splits "NAME = VALUE" into upper-case name and value.
inline void set_value(NistRecord& record, const std::string& line) {
  const std::size_t equals = line.find('=');
  std::string name = trimmed_text(line.substr(0, equals));
  for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  record[name] = equals == std::string::npos ? "" : trimmed_text(line.substr(equals + 1));
}

// `file`: below the directory of the package. nullopt if the package is not installed.
inline std::optional<std::vector<NistRecord>> read_nist(const std::string& file) {
  std::ifstream stream("/usr/lib/python3/dist-packages/cryptography_vectors/" + file);
  if (!stream) return {};
  std::vector<NistRecord> records;
  NistRecord group;
  for (std::string line; std::getline(stream, line);) {
    line = trimmed_text(line);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() == '[') {
      set_value(group, line.substr(1, line.size() - 2));
    } else if (line.starts_with("COUNT") || line.starts_with("Count")) {
      records.push_back(group);
    } else if (!records.empty()) {
      set_value(records.back(), line);
    }
  }
  return records;
}

}  // namespace uet::tss

// Declares `records`, or skips the test with the reason.
#define UET_NIST_OR_SKIP(records, file)                                      \
  const auto read_records = uet::tss::read_nist(file);                       \
  if (!read_records) {                                                       \
    GTEST_SKIP() << "the package python3-cryptography-vectors is not there"; \
  }                                                                          \
  const std::vector<uet::tss::NistRecord>& records = *read_records
