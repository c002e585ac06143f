// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the text of a key file (tss/key_file.h): from a file that belongs to the user alone, or
// from an inherited descriptor. Never from the environment (TSS-60). Does not know what is in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "settings/secret_text.h"
#include "uet/base/time.h"

namespace uet::prov {

// Recognises one state of a file: whether it is still the one that was read.
struct FileMark {
  dev_t device = 0;
  ino_t inode = 0;
  off_t bytes = 0;
  Duration modified{};  // since 1970, as is `changed`
  Duration changed{};
  friend bool operator==(const FileMark&, const FileMark&) = default;
};

class KeySource {
 public:
  static constexpr std::size_t kMostBytes = 256 * 1024;

  // `name`: a file name, or "fd:N" for an inherited descriptor, which becomes close-on-exec and is
  // read from its begin if it can be: a pipe gives its text once. A file
  // must be a regular one, no symbolic link, owned by the effective user, and no other user may
  // read or write it (mode 0600 or less). On failure text() is empty and problem() says what to do.
  explicit KeySource(const std::string& name);
  KeySource(const KeySource&) = delete;
  KeySource& operator=(const KeySource&) = delete;

  // Zeroed at the end of this object; in no core file and no forked child.
  std::string_view text() const { return text_.view(); }
  const std::string& problem() const { return problem_; }
  // There is no file of this name, or `name` is empty.
  bool absent() const { return absent_; }
  // The state of the file when it was read; nullopt of a pipe.
  const std::optional<FileMark>& mark() const { return mark_; }
  // The state of the file of this name now; nullopt if it is no file.
  static std::optional<FileMark> look(const std::string& name);

 private:
  void read_file(const std::string& name);
  void read_all(int fd);

  SecretText text_;
  std::string problem_;
  bool absent_ = false;
  std::optional<FileMark> mark_;
};

}  // namespace uet::prov
