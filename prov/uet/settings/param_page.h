// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parameters of FI_UET_TUNING as text for readers, made from the tables: the section of the
// manual fi_uet.7, and a list in Markdown for the documents.
#pragma once

#include <string>

namespace uet::prov {

// From the comment that begins it to the one that ends it.
std::string tuning_in_manual();
// Variables and tuning, a list item each.
std::string parameters_in_markdown();

inline constexpr const char* kManualBegin =
    ".\\\" begin of the tuning table: uet_parameters manual\n";
inline constexpr const char* kManualEnd = ".\\\" end of the tuning table\n";

}  // namespace uet::prov
