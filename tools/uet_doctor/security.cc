// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "security.h"

#include <chrono>
#include <cstdlib>
#include <cstring>

namespace uet::doctor {
namespace {

// Seconds: within the usual guard time clocks do no harm, and a busy host may answer as late.
constexpr std::int64_t kClockSlack = 10;

bool same_key(const fi_uet_tss_slot& a, const fi_uet_tss_slot& b) {
  return a.has_key != 0 && b.has_key != 0 &&
         std::memcmp(a.fingerprint, b.fingerprint, sizeof a.fingerprint) == 0;
}

// Can `to` open what `from` seals?
bool opens(const SecurityState& to, const SecurityState& from) {
  for (int an = 0; an < 2; ++an) {
    const fi_uet_tss_slot& slot = from.keys.slot[an];
    if (slot.active != 0) return same_key(slot, to.keys.slot[an]);
  }
  return false;
}

bool share_a_key(const SecurityState& a, const SecurityState& b) {
  for (const fi_uet_tss_slot& one : a.keys.slot) {
    for (const fi_uet_tss_slot& other : b.keys.slot) {
      if (same_key(one, other)) return true;
    }
  }
  return false;
}

}  // namespace

SecurityState security_of(fid_domain* domain) {
  SecurityState state;
  state.time_of_day = std::chrono::duration_cast<std::chrono::seconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  fi_uet_tss_ops* ops = nullptr;
  if (fi_open_ops(&domain->fid, FI_UET_TSS_OPS, 0, reinterpret_cast<void**>(&ops), nullptr) != 0) {
    return state;
  }
  if (ops->describe(domain, &state.keys, sizeof state.keys) == 0) state.secured = 1;
  return state;
}

Agreement compare(const SecurityState& here, const SecurityState& there) {
  if (here.secured != there.secured) {
    return {here.secured != 0 ? "this end requires TSS, and the other end sends in clear"
                              : "the peer requires TSS, and this end sends in clear",
            "set FI_UET_TSS=require and FI_UET_TSS_KEYS at both ends, or FI_UET_TSS=off at both",
            ""};
  }
  if (here.secured == 0) return {"", "", "both ends send in clear (FI_UET_TSS)"};
  const std::string here_sdi = std::to_string(here.keys.sdi);
  if (here.keys.sdi != there.keys.sdi) {
    return {"the ends are in different secure domains: SDI " + here_sdi + " here, " +
                std::to_string(there.keys.sdi) + " there",
            "give both ends the key file of one domain", ""};
  }
  if (opens(here, there) && opens(there, here)) {
    return {"", "", "both ends have the active keys of each other, SDI " + here_sdi};
  }
  const std::int64_t apart = std::llabs(here.time_of_day - there.time_of_day);
  if (share_a_key(here, there) || apart > kClockSlack) {
    return {
        "clocks of rotation apart: an end seals with a key that the other end does not have "
        "now; the clocks of the hosts differ by " +
            std::to_string(apart) + " s",
        "synchronise the clocks of both hosts, or finish the rotation of uet_keys at both", ""};
  }
  return {"wrong key: the ends have no key of SDI " + here_sdi + " in common",
          "compare 'uet_keys show' of both hosts; copy the file, or the secret of uet_keyd", ""};
}

}  // namespace uet::doctor
