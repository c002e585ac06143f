// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The values of a FEP that an operator may change: one table, which the provider (FI_UET_TUNING and
// the FI_UET_ variables), its manual, the table of docs and uet-sim (--tune) read. A default is
// what fep::Config holds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/parameter.h"
#include "fep/config.h"

namespace uet::fep {

using Tunable = Parameter<Config>;

std::span<const Tunable> tunables();

// Sets all that "name=value,name=value" names, later ones last. Why one is refused, with the near
// names of one that is not in the table, or empty; `config` may then be half changed.
std::optional<std::string> tune(Config& config, std::string_view list);

// Why these values, each of them allowed, do not go together, or empty.
std::optional<std::string> find_conflict(const Config& config);

}  // namespace uet::fep
