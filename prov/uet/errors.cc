// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Tables from our reasons to libfabric's errno values. A new reason without a row does not compile
// (enums) or reads FI_EOTHER (return codes, whose numbers come from the peer).
#include "errors.h"

#include <rdma/fi_errno.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace uet::prov {
namespace {

struct ReturnCodeRow {
  int err;
  const char* text;
};

// SES section 9, indexed by the code.
constexpr std::array<ReturnCodeRow, 0x25> kReturnCodes = {{
    {0, "success (default response)"},                              // 00 NULL
    {0, "success"},                                                 // 01 OK
    {FI_ENORX, "receiver changed its generation again and again"},  // 02 BAD_GENERATION
    {FI_ESHUTDOWN, "remote endpoint is not enabled"},               // 03 DISABLED
    {FI_ENORX, "remote endpoint has no receive posted"},            // 04 DISABLED_GEN
    {FI_ENORX, "no matching receive at the remote endpoint"},       // 05 NO_MATCH
    {FI_EOPNOTSUPP, "operation not supported by the peer"},         // 06 UNSUPPORTED_OP
    {FI_EMSGSIZE, "message size not supported by the peer"},        // 07 UNSUPPORTED_SIZE
    {FI_EFAULT, "remote address translation invalid"},              // 08 AT_INVALID
    {FI_EACCES, "remote address translation: no permission"},       // 09 AT_PERM
    {FI_EFAULT, "remote address translation service failed"},       // 0A AT_ATS_ERROR
    {FI_EFAULT, "no remote address translation"},                   // 0B AT_NO_TRANS
    {FI_EFAULT, "remote address translation out of range"},         // 0C AT_OUT_OF_RANGE
    {FI_EREMOTEIO, "remote host memory poisoned"},                  // 0D HOST_POISONED
    {FI_EREMOTEIO, "remote host bus error"},                        // 0E HOST_UNSUCCESS_CMPL
    {FI_EOPNOTSUPP, "atomic operation not supported by the peer"},  // 0F AMO_UNSUPPORTED_OP
    {FI_EOPNOTSUPP, "atomic datatype not supported by the peer"},   // 10 AMO_UNSUPPORTED_DT
    {FI_EINVAL, "atomic size not a multiple of its datatype"},      // 11 AMO_UNSUPPORTED_SIZE
    {FI_EINVAL, "atomic target not aligned"},                       // 12 AMO_UNALIGNED
    {FI_EOTHER, "atomic gave not-a-number"},                        // 13 AMO_FP_NAN
    {FI_EOTHER, "atomic floating point underflow"},                 // 14 FP_UNDERFLOW
    {FI_EOVERFLOW, "atomic floating point overflow"},               // 15 FP_OVERFLOW
    {FI_EOTHER, "atomic floating point result inexact"},            // 16 FP_INEXACT
    {FI_EACCES, "not permitted for this job"},                      // 17 PERM_VIOLATION
    {FI_EACCES, "remote memory does not allow this access"},        // 18 OP_VIOLATION
    {FI_EADDRNOTAVAIL, "no such resource index at the peer"},       // 19 BAD_INDEX
    {FI_EADDRNOTAVAIL, "no such PIDonFEP at the peer"},             // 1A BAD_PID
    {FI_EKEYREJECTED, "the peer has another JobID (man fi_uet)"},   // 1B BAD_JOB_ID
    {FI_ENOKEY, "no such memory key at the peer"},                  // 1C BAD_MKEY
    {FI_EFAULT, "outside the remote memory region"},                // 1D BAD_ADDR
    {FI_ECANCELED, "cancelled by the peer"},                        // 1E CANCELLED
    {FI_EHOSTUNREACH, "undeliverable"},                             // 1F UNDELIVERABLE
    {FI_EREMOTEIO, "uncorrectable remote error"},                   // 20 UNCOR
    {FI_EREMOTEIO, "transient remote error did not pass"},          // 21 UNCOR_TRNSNT
    {FI_ETRUNC, "message longer than the remote receive"},          // 22 TOO_LONG
    {FI_EIO, "abandoned by the initiator"},                         // 23 INITIATOR_ERR
    {FI_ENORX, "dropped by the peer"},                              // 24 DROPPED
}};

const char* describe(pds::PdsError error) {
  switch (error) {
    case pds::PdsError::RtoExhausted:
      return "the peer does not answer";
    case pds::PdsError::NackExhausted:
      return "the peer kept refusing for lack of resources";
    case pds::PdsError::ClosedInError:
      return "the peer closed the packet delivery context";
    case pds::PdsError::ProtocolError:
      return "the peer reported a protocol error";
    case pds::PdsError::LocalClose:
      return "closed locally";
    case pds::PdsError::NotConsumed:
      return "the peer refused the packet delivery context; it has done nothing of the operation";
    case pds::PdsError::PeerLost:
      return "the peer's process has ended, or closed its domain";
  }
  return "unknown transport error";
}

}  // namespace

int to_fi_errno(Error error) {
  switch (error) {
    case Error::Again:
      return -FI_EAGAIN;
    case Error::NoMemory:
      return -FI_ENOMEM;
    case Error::Invalid:
      return -FI_EINVAL;
    case Error::NotFound:
      return -FI_ENOENT;
    case Error::Busy:
      return -FI_EBUSY;
    case Error::NotSupported:
      return -FI_EOPNOTSUPP;
    case Error::AddressInUse:
      return -FI_EADDRINUSE;
    case Error::AddressNotAvailable:
      return -FI_EADDRNOTAVAIL;
    case Error::NoDevice:
      return -FI_ENODEV;
    case Error::TooLong:
      return -FI_EMSGSIZE;
    case Error::KeyInUse:
      return -FI_ENOKEY;
    case Error::ProcessFiles:
      return -EMFILE;
    case Error::SystemFiles:
      return -ENFILE;
    case Error::Io:
      return -FI_EIO;
  }
  return -FI_EOTHER;
}

int to_fi_errno(wire::ReturnCode code) {
  const auto number = static_cast<std::size_t>(code);
  return number < kReturnCodes.size() ? kReturnCodes[number].err : FI_EOTHER;
}

int to_fi_errno(pds::PdsError error) {
  switch (error) {
    case pds::PdsError::RtoExhausted:
      return FI_ETIMEDOUT;
    case pds::PdsError::NackExhausted:
      return FI_ENORX;
    case pds::PdsError::ClosedInError:
      return FI_ECONNABORTED;
    case pds::PdsError::ProtocolError:
      return EPROTO;
    case pds::PdsError::LocalClose:
      return FI_ECANCELED;
    case pds::PdsError::NotConsumed:
      return FI_ECONNREFUSED;
    case pds::PdsError::PeerLost:
      return FI_ECONNRESET;
  }
  return FI_EOTHER;
}

CompletionError to_completion_error(const ses::Completion& completion) {
  if (completion.host_error != 0) return {completion.host_error, 0};
  switch (completion.status) {
    case ses::Status::Ok:
      return {};
    case ses::Status::Truncated:
      return {FI_ETRUNC, 0};
    case ses::Status::Cancelled:
      return {FI_ECANCELED, 0};
    case ses::Status::ReturnCode: {
      const int err = to_fi_errno(completion.return_code);
      return {err != 0 ? err : FI_EOTHER, static_cast<int>(completion.return_code)};
    }
    case ses::Status::PdsError:
      return {to_fi_errno(completion.pds_error),
              kPdsErrorBase + static_cast<int>(completion.pds_error)};
    case ses::Status::NoMessage:
      return {FI_ENOMSG, 0};
    case ses::Status::Abandoned:
      return {FI_EIO, 0};
    case ses::Status::PeerLost:
      return {FI_ECONNABORTED, 0};
  }
  return {FI_EOTHER, 0};
}

void describe_prov_errno(int prov_errno, char* buffer, std::size_t length) noexcept {
  if (prov_errno == 0) {
    std::snprintf(buffer, length, "no further detail");
  } else if (prov_errno > kPdsErrorBase) {
    const auto error = static_cast<pds::PdsError>(prov_errno - kPdsErrorBase);
    std::snprintf(buffer, length, "UET packet delivery: %s", describe(error));
  } else {
    const auto number = static_cast<std::size_t>(prov_errno);
    std::snprintf(buffer, length, "UET return code 0x%02x: %s", static_cast<unsigned>(prov_errno),
                  number < kReturnCodes.size() ? kReturnCodes[number].text : "unknown");
  }
}

int cm_prov_errno(cm::Failure failure) { return 1 + static_cast<int>(failure); }

const char* describe_cm_prov_errno(int prov_errno) noexcept {
  switch (prov_errno) {
    case 1 + static_cast<int>(cm::Failure::Rejected):
      return "the peer's application has rejected the connection";
    case 1 + static_cast<int>(cm::Failure::Refused):
      return "no listener takes requests at the address";
    case 1 + static_cast<int>(cm::Failure::Unreachable):
      return "the address does not answer";
    case 1 + static_cast<int>(cm::Failure::Aborted):
      return "the peer has withdrawn its request or has ended";
    default:
      return "no further detail";
  }
}

}  // namespace uet::prov
