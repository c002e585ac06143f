// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What uet_doctor finds, printed line by line, and what follows from all of it. Knows nothing of
// what is examined.
#pragma once

#include <string>

namespace uet::doctor {

class Report {
 public:
  // Begins the next part of the examination.
  void begin(const std::string& part);
  // As it should be.
  void good(const std::string& what);
  // Worth knowing, neither good nor bad.
  void note(const std::string& what);
  // Works, but not well; `advice` says what to do.
  void warn(const std::string& what, const std::string& advice);
  // Does not work.
  void fail(const std::string& what, const std::string& advice);
  // Prints what follows from all that was found.
  void conclude() const;

  bool failed() const { return failures_ > 0; }

 private:
  void line(const char* mark, const std::string& what);
  int warnings_ = 0;
  int failures_ = 0;
};

}  // namespace uet::doctor
