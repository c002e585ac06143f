// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "settings/secret_text.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

namespace uet::prov {
namespace {

using testing::HasSubstr;

// The flags of the mapping around `place`, as /proc/self/smaps has them.
std::string flags_of(const void* place) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(place);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2) {
      inside = begin <= wanted && wanted < end;
    }
    if (inside && line.starts_with("VmFlags:")) return line + " ";
  }
  return {};
}

SecretText filled() {
  SecretText text(10000);
  std::fill(text.space().begin(), text.space().end(), 'x');
  text.resize(3);
  return text;
}

TEST(SecretText, Tss60_IsInNoCoreFile) {
  const SecretText text = filled();
  const std::string flags = flags_of(text.view().data());
  ASSERT_THAT(flags, HasSubstr("VmFlags:"));
  EXPECT_THAT(flags, HasSubstr(" dd "));
  EXPECT_THAT(flags, HasSubstr(" wf "));
}

TEST(SecretText, Tss60_IsZeroInAForkedChild) {
  const SecretText text = filled();
  const pid_t child = ::fork();
  if (child == 0) ::_exit(text.view() == std::string_view("\0\0\0", 3) ? 0 : 1);
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(text.view(), "xxx");
}

TEST(SecretText, RestIsZeroed) {
  SecretText text = filled();
  EXPECT_EQ(text.view(), "xxx");
  EXPECT_EQ(text.space()[3], '\0');
  EXPECT_EQ(text.space()[9999], '\0');
}

TEST(SecretText, MovesWithItsMemory) {
  SecretText text = filled();
  SecretText other = std::move(text);
  EXPECT_EQ(other.view(), "xxx");
  text = SecretText();
  EXPECT_EQ(text.view(), "");
  EXPECT_EQ(SecretText().capacity(), 0U);
}

}  // namespace
}  // namespace uet::prov
