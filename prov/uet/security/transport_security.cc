// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security/transport_security.h"

#include <algorithm>
#include <utility>

#include "nic/clock.h"
#include "nic/middleware.h"
#include "provider.h"
#include "tss/secure_nic.h"

namespace uet::prov {
namespace {

// Above a SecureNic: has the keys looked at before arrivals are opened with them.
class KeyWatchNic final : public nic::Middleware {
 public:
  KeyWatchNic(std::unique_ptr<nic::Nic> inner, TransportSecurity& security)
      : Middleware(std::move(inner)), security_(security) {}

  std::size_t rx_burst(std::span<RxPacket> out, Time now) override {
    security_.look(now);
    return Middleware::rx_burst(out, now);
  }
  Time next_deadline() const override {
    return std::min(Middleware::next_deadline(), security_.next_look());
  }

 private:
  TransportSecurity& security_;
};

// Why this NIC cannot be secured, or nullptr.
const char* reason_against(const nic::Nic& nic, Error& error) {
  error = Error::NotSupported;
  if (slot_of_port(nic.local_address().port)) {
    return "FI_UET_TSS excludes a shared port: the PDCIDs that tell its processes from each other "
           "are encrypted (TSS-65); use FI_UET_NIC=udp";
  }
  error = Error::AddressNotAvailable;
  if (nic.local_address().ip.is_wildcard()) {
    return "FI_UET_TSS needs the local address, which the ICV covers (TSS-7): pass an info of "
           "fi_getinfo, or name an address instead of the wildcard";
  }
  return nullptr;
}

}  // namespace

// The secure domain of this domain, with the SSI that the auth_key names; or why there is none.
std::string TransportSecurity::choose(const tss::KeyFile& file, tss::DomainEntry& out) const {
  const auto wanted = [this](const tss::DomainEntry& entry) {
    return !wanted_sdi_ || entry.config.sdi == *wanted_sdi_;
  };
  const auto count = std::count_if(file.domains.begin(), file.domains.end(), wanted);
  if (count == 0) return "does not have the domain that is in use, or that the auth_key names";
  if (count > 1) {
    return "has several domains: name one of them by an auth_key of FI_UET_TSS_AUTH_KEY_SIZE bytes";
  }
  out = *std::find_if(file.domains.begin(), file.domains.end(), wanted);
  if (identity_ && identity_->ssi) out.config.ssi = identity_->ssi;
  out.config.ipv6 = out.config.ipv6 || ipv6_;
  const char* const problem = tss::reason_against(out.config);
  return problem != nullptr ? problem : "";
}

std::string TransportSecurity::read(const KeySource& source, tss::DomainEntry& out) const {
  if (!source.problem().empty()) return source.problem();
  tss::KeyFile file;
  std::string problem = tss::parse_key_file(source.text(), file);
  if (problem.empty() && file.domains.empty()) problem = "has no domain";
  if (problem.empty()) problem = choose(file, out);
  return problem.empty() ? problem : keys_name_ + ": " + problem;
}

int TransportSecurity::open(const Params& params, const std::optional<SecureIdentity>& identity,
                            std::unique_ptr<TransportSecurity>& out) {
  out.reset();
  if (params.tss == TssMode::Off && identity) {
    FI_WARN(
        &provider, FI_LOG_DOMAIN,
        "fi_domain: auth_key names a secure domain, but FI_UET_TSS=off: set FI_UET_TSS=require, "
        "or pass the JobID alone\n");
    return -FI_ENOKEY;
  }
  if (params.tss == TssMode::Off) {
    if (!params.tss_keys.empty()) {
      FI_WARN(&provider, FI_LOG_DOMAIN,
              "FI_UET_TSS_KEYS has no effect: packets are not protected; set FI_UET_TSS=require\n");
    }
    return 0;
  }
  std::unique_ptr<TransportSecurity> security(new TransportSecurity(params, identity));
  const KeySource source(params.tss_keys);
  if (!source.absent()) {
    const std::string problem = security->read(source, security->first_);
    if (!problem.empty()) {
      FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_TSS_KEYS: %s\n", problem.c_str());
      return -FI_EKEYREJECTED;
    }
  }
  security->sdi_ = security->first_.config.sdi;
  security->mark_ = source.mark();
  if (security->first_.active) {
    out = std::move(security);
    return 0;
  }
  const std::string why = params.tss_keys.empty() ? "FI_UET_TSS_KEYS names no key file"
                          : source.absent()       ? params.tss_keys + " is not there"
                                                  : params.tss_keys + " has no active key";
  const bool refused = params.tss == TssMode::Require;
  FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_TSS=%s: %s; %s\n", name_of(params.tss), why.c_str(),
          refused ? "make one with uet_keys, or set FI_UET_TSS=off"
                  : "the domain sends and takes packets in clear");
  return refused ? -FI_ENOKEY : 0;
}

Result<std::unique_ptr<nic::Nic>> TransportSecurity::wrap(std::unique_ptr<nic::Nic> nic,
                                                          const wire::TrimMarks& marks,
                                                          std::string& message) {
  Error error{};
  if (const char* const problem = reason_against(*nic, error)) {
    message = problem;
    return error;
  }
  const FabricAddress self = nic->local_address().ip;
  ipv6_ = self.is_ipv6;
  first_.config.ipv6 = first_.config.ipv6 || ipv6_;
  if (const char* const problem = tss::reason_against(first_.config)) {
    message = keys_name_ + ": " + problem;
    return Error::Invalid;
  }
  tscs_ = std::make_unique<TscStore>(TscStore::run_time_directory(), self);
  if (mark_) tscs_->keys_written(mark_->modified);
  table_ = std::make_unique<tss::SdTable>(tss::SdTable::Limits{
      .derived_keys = derived_keys_, .tscs = tscs_.get(), .secrets = &key_memory_.resource()});
  const std::string problem = apply(first_, nic::monotonic_now());
  if (!problem.empty()) {
    message = "FI_UET_TSS: " + problem;
    return Error::KeyInUse;
  }
  for (auto& key : first_.keys) key.reset();
  wanted_sdi_ = sdi_;
  // Members with and without SSI have the same payload, so that both subtract the larger header.
  auto secure = std::make_unique<tss::SecureNic>(std::move(nic), *table_, sdi(), true, marks);
  return std::unique_ptr<nic::Nic>(std::make_unique<KeyWatchNic>(std::move(secure), *this));
}

// Puts `entry` in force. Returns the problems of what could not be, with advice, or nothing.
std::string TransportSecurity::apply(const tss::DomainEntry& entry, Time now) {
  tss::KeyFile only;
  only.domains.push_back(entry);
  std::string problem = tss::apply(only, *table_, now);
  if (!problem.empty()) problem.pop_back();  // the end of the line
  std::replace(problem.begin(), problem.end(), '\n', ';');
  if (!problem.empty() && !tscs_->problem().empty()) problem += ": " + tscs_->problem();
  return problem;
}

void TransportSecurity::look_now(Time now) {
  next_look_ = now + kLookInterval;
  guarded([&] {
    if (mark_ && (unfinished_ || KeySource::look(keys_name_) != mark_)) read_again(now);
    note_key_change();
    say_what_is_wrong(now);
    return 0;
  });
}

// The keys in force stay where the file cannot be used: a file that is being written is read again
// when it has changed.
void TransportSecurity::read_again(Time now) {
  tss::DomainEntry entry;
  const KeySource source(keys_name_);
  std::string problem = read(source, entry);
  if (problem.empty()) {
    mark_ = source.mark();
    tscs_->keys_written(mark_ ? std::optional(mark_->modified) : std::nullopt);
    problem = apply(entry, now);
    unfinished_ = !problem.empty();
  }
  if (!problem.empty() && problem != last_problem_) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_TSS_KEYS: %s\n", problem.c_str());
  }
  if (problem.empty()) FI_INFO(&provider, FI_LOG_DOMAIN, "FI_UET_TSS_KEYS: read again\n");
  last_problem_ = std::move(problem);
}

void TransportSecurity::note_key_change() {
  if (!first_keys_) {
    first_keys_ = table_->last_key();
    return;
  }
  const tss::SecureDomain* const domain = table_->find(sdi());
  if (!key_changed_ || domain == nullptr || !domain->active()) return;
  if (domain->has_key_until(*first_keys_)) return;
  std::exchange(key_changed_, nullptr)();
}

void TransportSecurity::say(std::size_t cause, std::uint64_t count, const char* text, Time now) {
  Cause& known = causes_[cause];
  if (count == known.count || now < known.silent_until) return;
  FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_TSS: %llu packets dropped: %s\n",
          static_cast<unsigned long long>(count - known.count), text);
  known = {count, now + kSayInterval};
}

void TransportSecurity::say_what_is_wrong(Time now) {
  const tss::PortCounters& port = table_->port_counters();
  const tss::SecureDomain* const domain = table_->find(sdi());
  const tss::DomainCounters of = domain != nullptr ? domain->counters() : tss::DomainCounters{};
  say(0, port.in_rx_encryption_bypass,
      "they are not protected; their sender has FI_UET_TSS=off, or no key: set the same at all "
      "members",
      now);
  say(1, of.in_auth_fail,
      "their ICV is wrong; their sender has another key for this SDI, or an address is translated "
      "on the way: compare \"uet_keys show\" of both hosts",
      now);
  say(2, port.in_errored + of.in_invalid_sa,
      "they belong to another secure domain, or to a key that is not installed here: the key files "
      "of the members differ",
      now);
  say(3, of.in_invalid + of.in_late,
      "their epoch is too old, or they have no SSI: the key files of the members differ", now);
  const std::string unsent =
      tscs_->problem().empty() ? "no key is active; activate one with uet_keys" : tscs_->problem();
  say(4, of.out_errored + of.out_invoke_fail + port.out_errored, unsent.c_str(), now);
}

}  // namespace uet::prov
