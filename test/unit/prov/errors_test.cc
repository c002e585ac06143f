// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Every reason has its libfabric errno: SES section 9, SES-121, SES-122.
#include "errors.h"

#include <gtest/gtest.h>
#include <rdma/fi_errno.h>

#include <cerrno>
#include <string>

namespace uet::prov {
namespace {

using wire::ReturnCode;

TEST(ToFiErrno, EveryLocalErrorHasItsOwnValue) {
  EXPECT_EQ(to_fi_errno(Error::Again), -FI_EAGAIN);
  EXPECT_EQ(to_fi_errno(Error::NoMemory), -FI_ENOMEM);
  EXPECT_EQ(to_fi_errno(Error::Invalid), -FI_EINVAL);
  EXPECT_EQ(to_fi_errno(Error::NotFound), -FI_ENOENT);
  EXPECT_EQ(to_fi_errno(Error::Busy), -FI_EBUSY);
  EXPECT_EQ(to_fi_errno(Error::NotSupported), -FI_EOPNOTSUPP);
  EXPECT_EQ(to_fi_errno(Error::AddressInUse), -FI_EADDRINUSE);
  EXPECT_EQ(to_fi_errno(Error::NoDevice), -FI_ENODEV);
  EXPECT_EQ(to_fi_errno(Error::TooLong), -FI_EMSGSIZE);
  EXPECT_EQ(to_fi_errno(Error::KeyInUse), -FI_ENOKEY);
  EXPECT_EQ(to_fi_errno(Error::ProcessFiles), -EMFILE);
  EXPECT_EQ(to_fi_errno(Error::SystemFiles), -ENFILE);
  EXPECT_EQ(to_fi_errno(Error::Io), -FI_EIO);
}

// SES section 9, the whole table, by name; those of floating point among them (SES-102).
TEST(ToFiErrno, EveryReturnCodeAsTheTableSays) {
  const struct {
    ReturnCode code;
    int err;
  } rows[] = {
      {ReturnCode::Null, 0},
      {ReturnCode::Ok, 0},
      {ReturnCode::BadGeneration, FI_ENORX},
      {ReturnCode::Disabled, FI_ESHUTDOWN},
      {ReturnCode::DisabledGen, FI_ENORX},
      {ReturnCode::NoMatch, FI_ENORX},
      {ReturnCode::UnsupportedOp, FI_EOPNOTSUPP},
      {ReturnCode::UnsupportedSize, FI_EMSGSIZE},
      {ReturnCode::AtInvalid, FI_EFAULT},
      {ReturnCode::AtPerm, FI_EACCES},
      {ReturnCode::AtAtsError, FI_EFAULT},
      {ReturnCode::AtNoTrans, FI_EFAULT},
      {ReturnCode::AtOutOfRange, FI_EFAULT},
      {ReturnCode::HostPoisoned, FI_EREMOTEIO},
      {ReturnCode::HostUnsuccessCmpl, FI_EREMOTEIO},
      {ReturnCode::AmoUnsupportedOp, FI_EOPNOTSUPP},
      {ReturnCode::AmoUnsupportedDt, FI_EOPNOTSUPP},
      {ReturnCode::AmoUnsupportedSize, FI_EINVAL},
      {ReturnCode::AmoUnaligned, FI_EINVAL},
      {ReturnCode::AmoFpNan, FI_EOTHER},
      {ReturnCode::FpUnderflow, FI_EOTHER},
      {ReturnCode::FpOverflow, FI_EOVERFLOW},
      {ReturnCode::FpInexact, FI_EOTHER},
      {ReturnCode::PermViolation, FI_EACCES},
      {ReturnCode::OpViolation, FI_EACCES},
      {ReturnCode::BadIndex, FI_EADDRNOTAVAIL},
      {ReturnCode::BadPid, FI_EADDRNOTAVAIL},
      {ReturnCode::BadJobId, FI_EKEYREJECTED},
      {ReturnCode::BadMkey, FI_ENOKEY},
      {ReturnCode::BadAddr, FI_EFAULT},
      {ReturnCode::Cancelled, FI_ECANCELED},
      {ReturnCode::Undeliverable, FI_EHOSTUNREACH},
      {ReturnCode::Uncor, FI_EREMOTEIO},
      {ReturnCode::UncorTrnsnt, FI_EREMOTEIO},
      {ReturnCode::TooLong, FI_ETRUNC},
      {ReturnCode::InitiatorErr, FI_EIO},
      {ReturnCode::Dropped, FI_ENORX},
  };
  int expected_code = 0;
  for (const auto& row : rows) {
    EXPECT_EQ(static_cast<int>(row.code), expected_code++);
    EXPECT_EQ(to_fi_errno(row.code), row.err) << "code " << static_cast<int>(row.code);
  }
  for (int code = expected_code; code < 256; ++code) {
    EXPECT_EQ(to_fi_errno(static_cast<ReturnCode>(code)), FI_EOTHER) << "code " << code;
  }
}

TEST(ToFiErrno, Ses121_EveryTransportError) {
  EXPECT_EQ(to_fi_errno(pds::PdsError::RtoExhausted), FI_ETIMEDOUT);
  EXPECT_EQ(to_fi_errno(pds::PdsError::NackExhausted), FI_ENORX);
  EXPECT_EQ(to_fi_errno(pds::PdsError::ClosedInError), FI_ECONNABORTED);
  EXPECT_EQ(to_fi_errno(pds::PdsError::ProtocolError), EPROTO);
  EXPECT_EQ(to_fi_errno(pds::PdsError::LocalClose), FI_ECANCELED);
  EXPECT_EQ(to_fi_errno(pds::PdsError::NotConsumed), FI_ECONNREFUSED);
  EXPECT_EQ(to_fi_errno(pds::PdsError::PeerLost), FI_ECONNRESET);
}

ses::Completion with_status(ses::Status status) {
  ses::Completion completion;
  completion.status = status;
  return completion;
}

TEST(ToCompletionError, Ses121_ProvErrnoIsTheReturnCodeOrThePdsError) {
  ses::Completion refused = with_status(ses::Status::ReturnCode);
  refused.return_code = ReturnCode::BadMkey;
  EXPECT_EQ(to_completion_error(refused).err, FI_ENOKEY);
  EXPECT_EQ(to_completion_error(refused).prov_errno, 0x1C);
  ses::Completion failed = with_status(ses::Status::PdsError);
  failed.pds_error = pds::PdsError::RtoExhausted;
  EXPECT_EQ(to_completion_error(failed).err, FI_ETIMEDOUT);
  EXPECT_EQ(to_completion_error(failed).prov_errno, 0x1001);
}

TEST(ToCompletionError, Ses122_ReceiverSide) {
  EXPECT_EQ(to_completion_error(with_status(ses::Status::Ok)).err, 0);
  EXPECT_EQ(to_completion_error(with_status(ses::Status::Truncated)).err, FI_ETRUNC);
  EXPECT_EQ(to_completion_error(with_status(ses::Status::Cancelled)).err, FI_ECANCELED);
  EXPECT_EQ(to_completion_error(with_status(ses::Status::Abandoned)).err, FI_EIO);
  EXPECT_EQ(to_completion_error(with_status(ses::Status::PeerLost)).err, FI_ECONNABORTED);
}

// A failure that the peer calls success must not look like one.
TEST(ToCompletionError, FailureWithCodeOkIsStillAnError) {
  ses::Completion refused = with_status(ses::Status::ReturnCode);
  refused.return_code = ReturnCode::Ok;
  EXPECT_NE(to_completion_error(refused).err, 0);
}

std::string describe(int prov_errno, std::size_t room = 128) {
  std::string text(room, '\0');
  describe_prov_errno(prov_errno, text.data(), text.size());
  return text.c_str();
}

TEST(DescribeProvErrno, NamesTheReasonAndFitsTheBuffer) {
  EXPECT_EQ(describe(0x1C), "UET return code 0x1c: no such memory key at the peer");
  EXPECT_EQ(describe(0x1001), "UET packet delivery: the peer does not answer");
  EXPECT_EQ(describe(0xF0), "UET return code 0xf0: unknown");
  EXPECT_EQ(describe(0x1C, 8), "UET ret");
}

}  // namespace
}  // namespace uet::prov
