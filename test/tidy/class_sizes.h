// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// How large the classes of a C++ source are: their methods and data members, read from the text of
// the class bodies without a compiler.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/tidy_checks.h"

namespace uet::tidy {

struct ClassSize {
  std::string name;               // with its namespaces and the classes around it
  std::set<std::string> methods;  // declared in the class body, by name and parameters
  std::size_t members = 0;        // data members that are not static
  bool is_plain = true;           // no method but constructors, the destructor and operators
};

// All classes, structs and unions that `text` defines outside functions; `balanced`: every brace
// has its counterpart, so that the answer can be trusted.
struct ClassSizes {
  std::vector<ClassSize> classes;
  bool balanced = true;
};
ClassSizes class_sizes(std::string_view text);

// A class has at most kMostMethods methods and, unless it is plain data, kMostMembers members.
inline constexpr std::size_t kMostMethods = 40;
inline constexpr std::size_t kMostMembers = 30;

// Classes that are larger, with what they have today: they may shrink, not grow.
struct LargeClass {
  std::size_t methods;
  std::size_t members;
};
using LargeClasses = std::map<std::string, LargeClass, std::less<>>;

// Classes of the text that are too large. `seen` gets the names of `known` that the text defines.
Complaints check_classes(std::string_view path, std::string_view text, const LargeClasses& known,
                         std::set<std::string>& seen);

}  // namespace uet::tidy
