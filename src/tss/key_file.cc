// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "tss/key_file.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "tss/kdf.h"
#include "uet/base/types.h"

namespace uet::tss {
namespace {

constexpr std::string_view kFirstLine = "uet-tss-keys 1";
using Words = std::vector<std::string_view>;

// The words of a line, without its comment.
Words words_of(std::string_view line) {
  line = line.substr(0, line.find('#'));
  Words words;
  std::size_t at = 0;
  while ((at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// Decimal, or hexadecimal behind 0x; at most `most`.
template <class Number>
bool read_number(std::string_view text, Number& out, std::uint64_t most) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size() || value > most) return false;
  out = static_cast<Number>(value);
  return true;
}

bool read_hex(std::string_view text, std::span<std::byte> out) {
  if (text.size() != 2 * out.size()) return false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc{} || end != digits + 2) return false;
    out[i] = static_cast<std::byte>(value);
  }
  return true;
}

bool read_address(std::string_view word, FabricAddress& out) {
  const std::string text(word);
  out = {};
  if (inet_pton(AF_INET, text.c_str(), out.bytes.data()) == 1) return true;
  out.is_ipv6 = true;
  return inet_pton(AF_INET6, text.c_str(), out.bytes.data()) == 1;
}

std::string hex_of(std::span<const std::byte> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4];
    text += kDigits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

// Reads line by line; a function for each word that a line may begin with. Each returns what is
// wrong, or nullptr.
class Parser {
 public:
  explicit Parser(KeyFile& out) : out_(out) {}

  const char* line(const Words& words) {
    if (words.empty()) return nullptr;
    if (words[0] == "domain") return domain(words);
    if (out_.domains.empty()) return "a line \"domain SDI\" must come first";
    DomainConfig& config = out_.domains.back().config;
    if (words[0] == "key") return key(words);
    if (words[0] == "mode") return mode(words, config);
    if (words[0] == "ssi") return ssi(words, config);
    if (words[0] == "client") return client(words, config);
    if (words[0] == "rekey") return rekey(words, config);
    if (words[0] == "tsc") return tsc(words, config);
    if (words[0] == "jobs") return jobs(words, config);
    return rest(words, config);
  }

  // Checks of the whole domain.
  const char* finish() {
    if (out_.domains.empty()) return nullptr;
    const DomainEntry& entry = out_.domains.back();
    if (entry.active && !entry.keys[*entry.active ? 1 : 0]) return "the active key is not there";
    return reason_against(entry.config);
  }

 private:
  const char* domain(const Words& words) {
    if (const char* const problem = finish()) return problem;
    DomainEntry entry;
    if (words.size() != 2 || !read_number(words[1], entry.config.sdi, kMaxSdi)) {
      return "expected: domain SDI (24 bits)";
    }
    const auto same = [&entry](const DomainEntry& other) {
      return other.config.sdi == entry.config.sdi;
    };
    if (std::any_of(out_.domains.begin(), out_.domains.end(), same)) return "this SDI came before";
    out_.domains.push_back(std::move(entry));
    return nullptr;
  }

  static const char* mode(const Words& words, DomainConfig& config) {
    const std::string_view name = words.size() == 2 ? words[1] : "";
    config.client = name == "client";
    if (name == "direct") {
      config.mode = KeyMode::Direct;
    } else if (name == "cluster") {
      config.mode = KeyMode::Cluster;
    } else if (name == "server" || name == "client") {
      config.mode = KeyMode::Server;
    } else {
      return "expected: mode direct, cluster, server or client";
    }
    return nullptr;
  }

  static const char* ssi(const Words& words, DomainConfig& config) {
    if (words.size() == 2 && read_number(words[1], config.ssi.emplace(), UINT32_MAX)) {
      return nullptr;
    }
    return "expected: ssi NUMBER (32 bits)";
  }

  static const char* client(const Words& words, DomainConfig& config) {
    Client& added = config.clients.emplace_back();
    if (words.size() == 3 && read_number(words[1], added.ssi, UINT32_MAX) &&
        read_address(words[2], added.address)) {
      return nullptr;
    }
    return "expected: client SSI ADDRESS";
  }

  static const char* rekey(const Words& words, DomainConfig& config) {
    if (words.size() == 3 && read_number(words[1], config.rekey.mask, kTscEnd - 1) &&
        read_number(words[2], config.rekey.shift, 47)) {
      return nullptr;
    }
    return "expected: rekey MASK SHIFT";
  }

  static const char* tsc(const Words& words, DomainConfig& config) {
    TscRange& range = config.tsc.emplace();
    if (words.size() == 3 && read_number(words[1], range.first, kTscEnd) &&
        read_number(words[2], range.end, kTscEnd)) {
      return nullptr;
    }
    return "expected: tsc FIRST END";
  }

  static const char* jobs(const Words& words, DomainConfig& config) {
    constexpr const char* kForm = "expected: jobs JOBID..., each of 24 bits";
    if (words.size() < 2) return kForm;
    for (std::size_t i = 1; i < words.size(); ++i) {
      if (!read_number(words[i], config.jobs.emplace_back(), kMaxJobId)) return kForm;
    }
    return nullptr;
  }

  const char* rest(const Words& words, DomainConfig& config) {
    if (words.size() == 1 && (words[0] == "ipv6" || words[0] == "pdc-only")) {
      (words[0] == "ipv6" ? config.ipv6 : config.pdc_only) = true;
      return nullptr;
    }
    std::uint32_t number = 0;
    if (words.size() != 2 || !read_number(words[1], number, UINT32_MAX)) {
      return "this line is not known, or does not have one number";
    }
    if (words[0] == "active" && number < 2) {
      out_.domains.back().active = number == 1;
    } else if (words[0] == "epoch-check" && number < 0x8000) {
      config.check_epoch = true;
      config.max_epoch_age = static_cast<std::uint16_t>(number);
    } else if (words[0] == "guard" && number <= 86400) {
      config.guard = std::chrono::seconds(number);
    } else if (words[0] == "alarm") {
      config.auth_fail_alarm = number;
    } else {
      return "this line is not known, or its number is out of range";
    }
    return nullptr;
  }

  // key AN EPOCH HISTORY HEX. The mode must stand above it, as it says how long the key is.
  const char* key(const Words& words) {
    constexpr const char* kForm = "expected: key AN EPOCH fresh|unknown|TSC HEX";
    DomainEntry& entry = out_.domains.back();
    unsigned an = 0;
    KeyEntry read;
    if (words.size() != 5 || !read_number(words[1], an, 1) ||
        !read_number(words[2], read.start.epoch, UINT16_MAX)) {
      return kForm;
    }
    if (words[3] == "unknown") {
      read.start.history = SenderStart::History::Unknown;
    } else if (words[3] != "fresh") {
      read.start.history = SenderStart::History::Known;
      if (!read_number(words[3], read.start.next_tsc, kTscEnd)) return kForm;
    }
    const bool client = entry.config.client;
    Secret<kKeyBytes + kMaskBytes> bytes;
    if (!read_hex(words[4], bytes.writable().first(client ? bytes.bytes().size() : kKeyBytes))) {
      return client ? "a client's key has 88 hexadecimal digits"
                    : "a key has 64 hexadecimal digits";
    }
    if (entry.keys[an]) return "this AN came before";
    read.material.key = Key(bytes.bytes().first<kKeyBytes>());
    read.material.mask = IvMask(bytes.bytes().last<kMaskBytes>());
    entry.keys[an] = read;
    return nullptr;
  }

  KeyFile& out_;
};

std::string number_text(const char* form, std::uint64_t value) {
  char text[32];
  std::snprintf(text, sizeof text, form, static_cast<unsigned long long>(value));
  return text;
}
std::string hex_text(std::uint64_t value) { return number_text("0x%llx", value); }
std::string decimal(std::uint64_t value) { return number_text("%llu", value); }

std::string address_text(const FabricAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  inet_ntop(address.is_ipv6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  return text;
}

const char* mode_name(const DomainConfig& config) {
  if (config.client) return "client";
  if (config.mode == KeyMode::Server) return "server";
  return config.mode == KeyMode::Direct ? "direct" : "cluster";
}

std::string config_text(const DomainConfig& config) {
  std::string text = "\ndomain " + hex_text(config.sdi) + "\nmode " + mode_name(config) + "\n";
  if (config.ipv6) text += "ipv6\n";
  if (config.pdc_only) text += "pdc-only\n";
  if (config.ssi) text += "ssi " + hex_text(*config.ssi) + "\n";
  for (const Client& client : config.clients) {
    text += "client " + hex_text(client.ssi) + " " + address_text(client.address) + "\n";
  }
  if (!config.jobs.empty()) text += "jobs";
  for (const std::uint32_t job : config.jobs) text += " " + hex_text(job);
  if (!config.jobs.empty()) text += "\n";
  text += "rekey " + hex_text(config.rekey.mask) + " " + decimal(config.rekey.shift) + "\n";
  if (config.tsc)
    text += "tsc " + hex_text(config.tsc->first) + " " + hex_text(config.tsc->end) + "\n";
  if (config.check_epoch) text += "epoch-check " + decimal(config.max_epoch_age) + "\n";
  if (config.auth_fail_alarm > 0) text += "alarm " + decimal(config.auth_fail_alarm) + "\n";
  const auto guard = std::chrono::duration_cast<std::chrono::seconds>(config.guard).count();
  return text + "guard " + decimal(static_cast<std::uint64_t>(guard)) + "\n";
}

std::string history_text(const SenderStart& start) {
  switch (start.history) {
    case SenderStart::History::Fresh:
      return "fresh";
    case SenderStart::History::Unknown:
      return "unknown";
    case SenderStart::History::Known:
      break;
  }
  return hex_text(start.next_tsc);
}

std::string key_text(const KeyEntry& key, bool client, KeyText keys) {
  if (keys == KeyText::Recognised) {
    Result<Kdf> kdf = Kdf::make(key.material.key);
    if (!kdf.ok()) return "fingerprint not known";
    const auto fingerprint = kdf.value().fingerprint();
    return "fingerprint " + hex_of(std::span(fingerprint).first(6));
  }
  return hex_of(key.material.key.bytes()) + (client ? hex_of(key.material.mask.bytes()) : "");
}

// --- apply
// ----------------------------------------------------------------------------------------

const char* refusal(Error error) {
  switch (error) {
    case Error::Busy:
      return "the slot holds a key that packets may still need; wait and try again";
    case Error::KeyInUse:
      return "this process has used the key; take a new key";
    case Error::Invalid:
      return "earlier packets under the key are not known; set a newer epoch";
    case Error::NotSupported:
      return "the key does not fit the mode";
    case Error::Io:
      return "there is no TSC to begin with";
    default:
      return "no memory";
  }
}

class Applier {
 public:
  Applier(SdTable& table, Time now) : table_(table), now_(now) {}

  void apply(const DomainEntry& entry) {
    sdi_ = entry.config.sdi;
    SecureDomain* domain = table_.find(sdi_);
    if (domain != nullptr && domain->config() != entry.config) {
      return note("the parameters of a domain in use do not change; give it another SDI");
    }
    if (domain == nullptr) {
      if (!table_.add(entry.config).ok()) return note("the table of domains is full");
      domain = table_.find(sdi_);
    }
    for (const bool an : {false, true}) put(*domain, an, entry);
    if (entry.active) check(domain->activate(*entry.active, now_));
    for (const bool an : {false, true}) {  // keys that left the file
      if (!entry.keys[an ? 1 : 0] && domain->active() != an && domain->has_key(an) &&
          !domain->in_guard(an)) {
        check(domain->remove_key(an));
      }
    }
  }
  std::string take_problems() { return std::move(problems_); }

 private:
  void put(SecureDomain& domain, bool an, const DomainEntry& entry) {
    const std::optional<KeyEntry>& key = entry.keys[an ? 1 : 0];
    if (!key) return;
    const bool was_there = domain.has_key(an);
    leave_lost_key(domain, an, *key, entry);
    const Result<void> installed = domain.config().client
                                       ? domain.install(an, key->material, key->start)
                                       : domain.install(an, key->material.key, key->start);
    if (!installed.ok()) {
      // A replaced key that the file still names, after its guard time: nothing is to be done.
      const bool over = installed.error() == Error::KeyInUse && entry.active != an;
      return over ? void() : check(installed);
    }
    const bool newer = was_there && domain.position(an)->epoch != key->start.epoch;
    if (newer) check(domain.set_epoch(an, key->start.epoch));
  }
  // The file has gone on by several steps since it was last read, so that its key for `an` is not
  // the one in the slot. No member seals with that one any more: it makes space at once, unless it
  // is the one that the file replaces only now, or still has its guard time (TSS-56).
  static void leave_lost_key(SecureDomain& domain, bool an, const KeyEntry& key,
                             const DomainEntry& entry) {
    if (!domain.has_key(an) || domain.in_guard(an) || domain.holds(an, key.material)) return;
    if (domain.active() != an || entry.active == an) domain.abandon_key(an);
  }
  void check(const Result<void>& result) {
    if (!result.ok()) note(refusal(result.error()));
  }
  void note(const char* problem) {
    problems_ += "domain " + hex_text(sdi_) + ": " + problem + "\n";
  }

  SdTable& table_;
  Time now_;
  std::uint32_t sdi_ = 0;
  std::string problems_;
};

}  // namespace

std::string parse_key_file(std::string_view text, KeyFile& out) {
  out.domains.clear();
  Parser parser(out);
  const char* problem = nullptr;
  bool begun = false;
  std::uint64_t number = 0;
  while (!text.empty() && problem == nullptr) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    const Words words = words_of(line);
    if (words.empty()) continue;
    if (begun) {
      problem = parser.line(words);
    } else if (words != words_of(kFirstLine)) {
      problem = "expected as the first line: uet-tss-keys 1";
    }
    begun = true;
  }
  if (problem == nullptr) problem = begun ? parser.finish() : "the file is empty";
  if (problem == nullptr) return {};
  out.domains.clear();
  return "line " + decimal(number) + ": " + problem;
}

std::string to_text(const KeyFile& file, KeyText keys) {
  std::string text = std::string(kFirstLine) + "\n";
  for (const DomainEntry& entry : file.domains) {
    text += config_text(entry.config);
    for (const bool an : {false, true}) {
      const std::optional<KeyEntry>& key = entry.keys[an ? 1 : 0];
      if (!key) continue;
      text += std::string("key ") + (an ? "1 " : "0 ") + decimal(key->start.epoch) + " " +
              history_text(key->start) + " " + key_text(*key, entry.config.client, keys) + "\n";
    }
    if (entry.active) text += std::string("active ") + (*entry.active ? "1" : "0") + "\n";
  }
  return text;
}

std::string apply(const KeyFile& file, SdTable& table, Time now) {
  Applier applier(table, now);
  for (const DomainEntry& entry : file.domains) applier.apply(entry);
  for (const std::uint32_t sdi : table.sdis()) {
    const auto same = [sdi](const DomainEntry& entry) { return entry.config.sdi == sdi; };
    if (std::none_of(file.domains.begin(), file.domains.end(), same)) {
      (void)table.remove(sdi);
    }
  }
  return applier.take_problems();
}

}  // namespace uet::tss
