// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Names of the code in documents: a page that names a test, a file or a function that is not there
// sends its reader astray. Text in, findings out.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "tidy/documents.h"

namespace uet::tidy {

// "Suite.Name" of each test of a C++ source.
std::set<std::string> tests_in(std::string_view source);
// All words (letters, digits, _) of a C++ source.
void add_words_of(std::string_view source, std::set<std::string, std::less<>>& words);

// `Suite.Name` in code type that is not one of `tests`.
Findings check_test_names(std::string_view path, std::string_view document,
                          const std::set<std::string>& tests);

// Headers and sources in code type for which `exists` says no: `pds/pdc.h`, or `pdc.h/.cc` for two
// files. Names with capital letters (NAME.cc) and headers of the system stand for themselves.
Findings check_file_names(std::string_view path, std::string_view document,
                          const std::function<bool(const std::string& file)>& exists);

// `Class::function` in code type, a part of which is no word of the sources.
Findings check_function_names(std::string_view path, std::string_view document,
                              const std::set<std::string, std::less<>>& words);

}  // namespace uet::tidy
