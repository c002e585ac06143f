// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// See tidy_checks.h. The lists here are the rules of docs/architecture.md section 3.
#include "tidy/tidy_checks.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <map>
#include <regex>
#include <sstream>

namespace uet::tidy {
namespace {

// Module -> modules it may include besides itself.
const std::map<std::string, std::set<std::string>, std::less<>>& allowed_modules() {
  static const std::map<std::string, std::set<std::string>, std::less<>> modules = {
      {"base", {}},
      {"wire", {"base"}},
      {"tss", {"base", "wire", "nic"}},
      {"cms", {"base", "wire"}},
      {"pds", {"base", "wire", "cms"}},
      {"ri", {"base"}},
      {"av", {"base", "wire"}},
      {"cm", {"base", "wire", "av"}},
      {"ses", {"base", "wire", "pds", "ri"}},
      {"fep", {"base", "wire", "cms", "pds", "ri", "ses", "nic"}},
      {"nic", {"base", "wire"}},
      {"live", {"base", "wire"}},
      {"prov",
       {"base", "wire", "cms", "pds", "ri", "av", "cm", "ses", "fep", "nic", "tss", "live"}},
  };
  return modules;
}

// Headers that bring input, output, time, threads or chance into the core.
constexpr std::array<std::string_view, 34> kImpureHeaders = {
    "unistd.h",  "fcntl.h",   "poll.h",       "pthread.h",   "signal.h",
    "time.h",    "stdio.h",   "netdb.h",      "ifaddrs.h",   "dlfcn.h",
    "thread",    "mutex",     "shared_mutex", "future",      "condition_variable",
    "semaphore", "latch",     "barrier",      "stop_token",  "ctime",
    "iostream",  "fstream",   "istream",      "ostream",     "filesystem",
    "random",    "csignal",   "execution",    "immintrin.h", "x86intrin.h",
    "iomanip",   "coroutine", "threads.h",    "syslog.h"};
constexpr std::array<std::string_view, 7> kImpureDirectories = {
    "sys/", "rdma/", "netinet/", "arpa/", "net/", "linux/", "netlink/"};

bool starts_with_any(std::string_view text, const auto& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool is_one_of(std::string_view text, const auto& list) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The symbols in lines of nm: what follows the type letter.
std::set<std::string> symbols_of(std::string_view nm_output) {
  static const std::regex symbol(R"(^[0-9a-fA-F ]* [A-Za-z] (.+)$)");
  std::set<std::string> symbols;
  for (const std::string& line : lines_of(nm_output)) {
    std::smatch match;
    if (std::regex_match(line, match, symbol)) symbols.insert(match[1]);
  }
  return symbols;
}

// What the compiler, the C++ run time and pure functions of the C library may bring in.
bool is_pure_symbol(std::string_view symbol) {
  // Memory, text of addresses, assertions of debug builds, the compiler's own.
  constexpr std::array<std::string_view, 21> kNames = {"memcpy",
                                                       "malloc",
                                                       "calloc",
                                                       "free",
                                                       "malloc_usable_size",
                                                       "memmove",
                                                       "memset",
                                                       "memcmp",
                                                       "bcmp",
                                                       "strlen",
                                                       "memchr",
                                                       "snprintf",
                                                       "inet_pton",
                                                       "inet_ntop",
                                                       "__assert_fail",
                                                       "__stack_chk_fail",
                                                       "_GLOBAL_OFFSET_TABLE_",
                                                       "__dso_handle",
                                                       "__gxx_personality_v0",
                                                       "_Unwind_Resume",
                                                       "__popcountdi2"};
  constexpr std::array<std::string_view, 17> kMath = {
      "sqrt",  "pow",    "exp",     "exp2", "log",   "log2",  "log10", "ceil", "floor",
      "round", "lround", "llround", "fmod", "trunc", "ldexp", "fmin",  "fmax"};
  // The C++ run time: construction, containers, strings, and what their failure paths refer to.
  constexpr std::array<std::string_view, 23> kPrefixes = {"__cxa_",
                                                          "operator new",
                                                          "operator delete",
                                                          "vtable for __cxxabiv1::",
                                                          "vtable for std::bad_",
                                                          "typeinfo for std::bad_",
                                                          "vtable for std::exception",
                                                          "typeinfo for std::exception",
                                                          "std::exception::",
                                                          "std::bad_alloc::",
                                                          "std::bad_array_new_length::",
                                                          "std::__throw_",
                                                          "std::__glibcxx_assert_fail",
                                                          "std::terminate()",
                                                          "std::nothrow",
                                                          "std::allocator<",
                                                          "std::pmr::new_delete_resource()",
                                                          "std::pmr::monotonic_buffer_resource::",
                                                          "std::_Hash_bytes",
                                                          "std::__detail::_Prime_rehash_policy",
                                                          "std::__cxx11::basic_string<",
                                                          "std::to_chars(",
                                                          "std::from_chars("};
  // Ciphers and MACs of libcrypto, which only tss calls; its random numbers are not among them.
  constexpr std::array<std::string_view, 4> kCrypto = {"EVP_CIPHER_", "EVP_MAC_", "OSSL_PROVIDER_",
                                                       "OSSL_PARAM_construct_"};
  constexpr std::array<std::string_view, 2> kCryptoNames = {"OPENSSL_cleanse", "CRYPTO_memcmp"};
  if (starts_with_any(symbol, kCrypto) || is_one_of(symbol, kCryptoNames)) return true;
  return is_one_of(symbol, kNames) || is_one_of(symbol, kMath) ||
         starts_with_any(symbol, kPrefixes);
}

bool is_sanitizer_symbol(std::string_view symbol) {
  constexpr std::array<std::string_view, 9> kPrefixes = {
      "__asan_",      "__ubsan_",  "__tsan_",           "__sanitizer_",    "__start_asan_",
      "__stop_asan_", "__sancov_", "__start___sancov_", "__stop___sancov_"};
  return starts_with_any(symbol, kPrefixes);
}

// A regular expression takes a hundred times as long as this.
bool has_any(std::string_view line, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return line.find(word) != line.npos; });
}

}  // namespace

std::string without_comments_and_strings(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    std::size_t length = 1;
    if (rest.starts_with("//")) {
      length = std::min(rest.find('\n'), rest.size());
    } else if (rest.starts_with("/*")) {
      const std::size_t end = rest.find("*/", 2);
      length = end == std::string_view::npos ? rest.size() : end + 2;
    } else if (rest.starts_with("R\"")) {
      const std::size_t open = rest.find('(');
      const std::string close = ")" + std::string(rest.substr(2, open - 2)) + "\"";
      const std::size_t end = rest.find(close, open);
      length = end == std::string_view::npos ? rest.size() : end + close.size();
    } else if (rest[0] == '"' ||
               (rest[0] == '\'' &&
                (i == 0 || !std::isalnum(static_cast<unsigned char>(text[i - 1]))))) {
      while (length < rest.size() && rest[length] != rest[0] && rest[length] != '\n') {
        length += rest[length] == '\\' ? 2 : 1;
      }
      length = std::min(length + 1, rest.size());
    } else {
      out += rest[0];
      i += 1;
      continue;
    }
    out += ' ';
    for (char c : rest.substr(0, length)) {
      if (c == '\n') out += c;
    }
    i += length;
  }
  return out;
}

std::string module_of(std::string_view path) {
  if (path.starts_with("prov/uet/")) return "prov";
  for (std::string_view root : {std::string_view("src/"), std::string_view("include/uet/")}) {
    if (!path.starts_with(root)) continue;
    const std::string_view rest = path.substr(root.size());
    const std::size_t slash = rest.find('/');
    if (slash != std::string_view::npos) return std::string(rest.substr(0, slash));
  }
  return {};
}

bool is_core_module(std::string_view module) {
  constexpr std::array<std::string_view, 10> kCore = {"base", "wire", "tss", "cms", "pds",
                                                      "ri",   "av",   "cm",  "ses", "fep"};
  return is_one_of(module, kCore);
}

Complaints check_includes(std::string_view path, std::string_view text) {
  static const std::regex include(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*$)");
  const std::string module = module_of(path);
  const bool pure = is_core_module(module) || path == "include/uet/nic/nic.h";
  Complaints complaints;
  if (module.empty()) return complaints;
  const auto rule = allowed_modules().find(module);
  if (rule == allowed_modules().end())
    return {std::string(path) + ": module '" + module + "' is unknown"};
  for (const std::string& line : lines_of(text)) {
    std::smatch match;
    if (!std::regex_match(line, match, include)) continue;
    const std::string header = match[2];
    const auto complain = [&](const std::string& why) {
      complaints.push_back(std::string(path) + ": includes " + header + ": " + why);
    };
    if (header.find("..") != std::string::npos) complain("paths go down only");
    // "uet/pds/api.h" lies in include/, "pds/pdc.h" in src/.
    std::string used = module_of("include/" + header);
    if (used.empty()) used = module_of("src/" + header);
    if (!allowed_modules().contains(used)) used.clear();  // a folder of prov/uet
    if (path.starts_with("include/") && match[1] == "\"" && !header.starts_with("uet/")) {
      complain("headers of include/ use only one another");
    }
    if (!used.empty() && used != module && !rule->second.contains(used)) {
      complain("module '" + module + "' may not use module '" + used + "'");
    }
    if ((module == "fep" || module == "tss") && used == "nic" && header != "uet/nic/nic.h") {
      complain("the core knows only the NIC interface, uet/nic/nic.h");
    }
    if (module != "prov" && header.starts_with("rdma/")) complain("only prov/uet knows libfabric");
    if (module != "tss" && header.starts_with("openssl/")) complain("only tss knows OpenSSL");
    const bool text_of_addresses =
        (module == "av" || module == "tss") && header == "arpa/inet.h";  // inet_pton, _ntop
    if (pure && !text_of_addresses &&
        (is_one_of(header, kImpureHeaders) || starts_with_any(header, kImpureDirectories))) {
      complain("the core is sans-IO");
    }
  }
  return complaints;
}

Complaints check_core_symbols(std::string_view undefined, std::string_view defined,
                              bool sanitized) {
  const std::set<std::string> known = symbols_of(defined);
  Complaints complaints;
  for (const std::string& symbol : symbols_of(undefined)) {
    if (known.contains(symbol) || is_pure_symbol(symbol)) continue;
    if (sanitized && is_sanitizer_symbol(symbol)) continue;
    complaints.push_back("the core uses " + symbol + ", which is not on the list of pure symbols");
  }
  return complaints;
}

Complaints check_calls(std::string_view path, std::string_view text) {
  static const std::regex call(
      R"((^|[^\w.>])(v?f?printf|puts|fputs|putchar|perror|exit|_exit|_Exit|quick_exit)\s*\()"
      R"(|(^|[^\w.>])abort\s*\(\s*\))"
      R"(|std::(cout|cerr|clog|terminate)\b)");
  Complaints complaints;
  std::size_t number = 0;
  for (const std::string& line : lines_of(without_comments_and_strings(text))) {
    ++number;
    if (!has_any(line, {"print", "put", "perror", "xit", "abort", "std::c", "terminate"})) continue;
    std::smatch match;
    if (std::regex_search(line, match, call)) {
      complaints.push_back(std::string(path) + ":" + std::to_string(number) + ": " + match.str() +
                           ": no output, exit or abort in a library");
    }
  }
  return complaints;
}

Complaints check_length(std::string_view path, std::string_view text) {
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  if (lines <= kMaxLines) return {};
  return {std::string(path) + ": " + std::to_string(lines) + " lines, at most " +
          std::to_string(kMaxLines) + " are allowed; split it by subject"};
}

Complaints check_spdx(std::string_view path, std::string_view text) {
  constexpr std::string_view kLine = "SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only";
  const bool is_cpp = path.ends_with(".cc") || path.ends_with(".h");
  const std::vector<std::string> lines = lines_of(text.substr(0, 500));
  const std::size_t searched = std::min<std::size_t>(lines.size(), is_cpp ? 1 : 3);
  for (std::size_t i = 0; i < searched; ++i) {
    if (lines[i].find(kLine) != std::string::npos) return {};
  }
  return {std::string(path) + ": no '" + std::string(kLine) + "' at the top"};
}

Complaints check_leftovers(std::string_view path, std::string_view text) {
  static const std::regex leftover(R"(\b(TODO|FIXME|XXX|HACK)\b)");
  Complaints complaints;
  std::size_t number = 0;
  for (const std::string& line : lines_of(text)) {
    ++number;
    if (!has_any(line, {"TODO", "FIXME", "XXX", "HACK"})) continue;
    if (std::regex_search(line, leftover)) {
      complaints.push_back(std::string(path) + ":" + std::to_string(number) + ": " + line);
    }
  }
  return complaints;
}

Complaints check_exports(std::string_view output) {
  std::set<std::string> symbols = symbols_of(output);
  Complaints complaints;
  if (symbols.erase("fi_prov_ini") == 0) complaints.push_back("fi_prov_ini is not exported");
  for (const std::string& symbol : symbols) complaints.push_back("exports " + symbol);
  return complaints;
}

Complaints check_destructors(std::string_view output) {
  Complaints complaints;
  bool found = false;
  for (std::string symbol : symbols_of(output)) {
    symbol.resize(std::min(symbol.find('@'), symbol.size()));
    found = true;
    if (symbol == "__cxa_atexit" || symbol == "atexit" || symbol == "on_exit") {
      complaints.push_back(
          "uses " + symbol +
          ": a static object has a destructor; make it one that is never destroyed");
    }
  }
  if (!found) complaints.push_back("no symbol found: is this the output of nm -D?");
  return complaints;
}

Complaints check_needed(std::string_view output, bool sanitized) {
  static const std::regex needed(R"(\(NEEDED\).*\[([^\]]+)\])");
  constexpr std::array<std::string_view, 9> kAllowed = {
      "libc.so.",    "libstdc++.so.",     "libgcc_s.so.", "libm.so.",     "libfabric.so.",
      "libnl-3.so.", "libnl-route-3.so.", "ld-linux",     "libcrypto.so."};
  constexpr std::array<std::string_view, 3> kSanitizers = {"libasan.", "libubsan.", "libtsan."};
  Complaints complaints;
  bool found = false;
  for (const std::string& line : lines_of(output)) {
    std::smatch match;
    if (!std::regex_search(line, match, needed)) continue;
    found = true;
    const std::string library = match[1];
    if (starts_with_any(library, kAllowed)) continue;
    if (sanitized && starts_with_any(library, kSanitizers)) continue;
    complaints.push_back("needs " + library);
  }
  if (!found) complaints.push_back("no NEEDED entry found: is this the output of readelf -d?");
  return complaints;
}

}  // namespace uet::tidy
