// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Removes the pages that killed processes have left.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace uet::live {

// The page of a process that ended without closing its domain stays this long, to be looked at.
inline constexpr std::chrono::hours kKeepDeadPages{1};
// A file that has got no head for this long was left by a process that was killed while it made the
// page, if no process has the PID of its name.
inline constexpr std::chrono::seconds kMakePage{60};
// So many stay in a directory: the ones that were updated last.
inline constexpr std::size_t kMaxDeadPages = 16;

// Removes the pages of this user in `directory` whose process has ended, except for the
// kMaxDeadPages youngest of the last kKeepDeadPages, and files without a head (kMakePage). Pages of
// another PID name space are left alone. Reads the heads only and allocates no memory besides the
// listing of the directory.
void remove_dead_pages(const std::string& directory) noexcept;

}  // namespace uet::live
