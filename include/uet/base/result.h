// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A value or the reason why there is none; std::expected comes only with C++23.
#pragma once

#include <optional>
#include <utility>

#include "uet/base/check.h"

namespace uet {

// Why an operation was refused locally. prov/uet/errors.cc turns these into fi_errno values.
enum class Error {
  Again,  // no resources now, try after progress
  NoMemory,
  Invalid,  // an argument is outside what is allowed
  NotFound,
  Busy,  // something still depends on it
  NotSupported,
  AddressInUse,
  AddressNotAvailable,  // it is not one that this FEP can have
  NoDevice,
  TooLong,
  KeyInUse,
  ProcessFiles,  // the process has no descriptor left (EMFILE)
  SystemFiles,   // nor has the system (ENFILE)
  Io,
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Error error) : error_(error) {}

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  T& value() & {
    UET_ASSERT(ok());
    return *value_;
  }
  const T& value() const& {
    UET_ASSERT(ok());
    return *value_;
  }
  T&& value() && {
    UET_ASSERT(ok());
    return std::move(*value_);
  }
  Error error() const {
    UET_ASSERT(!ok());
    return error_;
  }

 private:
  std::optional<T> value_;
  Error error_ = Error::Invalid;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : code_(static_cast<int>(error)) {}

  bool ok() const { return code_ == kOk; }
  explicit operator bool() const { return ok(); }
  Error error() const {
    UET_ASSERT(!ok());
    return static_cast<Error>(code_);
  }

 private:
  static constexpr int kOk = -1;  // no Error
  // One word: what is written in two parts and returned as one is slow to be read.
  int code_ = kOk;
};

}  // namespace uet
