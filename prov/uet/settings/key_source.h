// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Reads the text of a key file (tss/key_file.h): from a file that belongs to the user alone, or
// from an inherited descriptor. Never from the environment (TSS-60). Does not know what is in it.
#pragma once

#include <string>

namespace uet::prov {

class KeySource {
 public:
  static constexpr std::size_t kMostBytes = 256 * 1024;

  // `name`: a file name, or "fd:N" for an inherited descriptor, which becomes close-on-exec. A file
  // must be a regular one, no symbolic link, owned by the effective user, and no other user may
  // read or write it (mode 0600 or less). On failure text() is empty and problem() says what to do.
  explicit KeySource(const std::string& name);
  // Zeroes the text.
  ~KeySource();
  KeySource(const KeySource&) = delete;
  KeySource& operator=(const KeySource&) = delete;

  const std::string& text() const { return text_; }
  const std::string& problem() const { return problem_; }

 private:
  void read_all(int fd);

  std::string text_;
  std::string problem_;
};

}  // namespace uet::prov
