// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "wire/dissect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/rng.h"
#include "unit/wire/vectors.h"

namespace uet::wire {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string line_of(const std::string& vector) { return dissect(vector_bytes(vector)); }

TEST(Dissect, RequestThatOpensAPdc) {
  EXPECT_EQ(
      line_of("rud_syn_write_first"),
      "RUD_REQ psn 0x10000 clear 0xffff pdc 0x11>new psn_offset 0 [syn] | WRITE REQUEST_STD msg "
      "257 "
      "job 74565 pid 7 ri 15 gen 0 initiator 16 match 0x1234 offset 0x2000 at 0 of 56 [som rel] "
      "payload 16");
}

TEST(Dissect, AckWithResponse) {
  EXPECT_EQ(line_of("ack_default_response"),
            "ACK cack 0x10003 psn 0x10003 pdc 0x22>0x11 | DEFAULT_RESPONSE OK list 0 job 74565 msg "
            "257 gen 0 "
            "modified 56 payload 0");
}

TEST(Dissect, AckCc) {
  EXPECT_EQ(line_of("ack_cc_nscc_sack"),
            "ACK_CC cack 0x10003 psn 0x10006 pdc 0x22>0x11 mpr 1 sack_base 0x10004 sack 0x26 "
            "cc_type 0 service "
            "16 pend 32 rcvd 4 ooo 3 [ce]");
}

TEST(Dissect, NackNamesItsCode) {
  EXPECT_EQ(line_of("nack_no_pdc"), "NACK NO_PDC_AVAIL psn 0x10000 pdc 0x0>0x11 payload 0 [retx]");
  EXPECT_EQ(line_of("nack_rudi"), "NACK NO_PKT_BUFFER pkt_id 0xcafe pdc 0x0>0x0 payload 0 [rudi]");
}

TEST(Dissect, ControlPackets) {
  EXPECT_EQ(line_of("cp_noop_syn_rod"),
            "CP NOOP psn 0x20000 pdc 0x13>new psn_offset 0 payload 0 [rod syn ar]");
  EXPECT_EQ(line_of("cp_probe"), "CP PROBE psn 0x0 pdc 0x11>0x22 probe 0xbeef payload 65540");
}

TEST(Dissect, Pds215_NegotiationShowsWhatItAsksFor) {
  EXPECT_EQ(dissect(from_hex("5c8800000000000100110022"
                             "0102000000000001")),
            "CP NEGOTIATION psn 0x1 pdc 0x11>0x22 type 1 words 2 features 0x1 [ar]");
  EXPECT_EQ(dissect(from_hex("5c8800000000000100110022"
                             "01020000000000")),
            "CP NEGOTIATION psn 0x1 pdc 0x11>0x22 payload 16908288 [ar]");
}

TEST(Dissect, Extensions) {
  EXPECT_THAT(line_of("rud_fetch_cswap"), HasSubstr("FETCHING_ATOMIC REQUEST_STD msg 1026"));
  EXPECT_THAT(line_of("rud_fetch_cswap"), HasSubstr("CSWAP UINT64 compare 0x5 swap 0x9"));
  EXPECT_THAT(line_of("rud_rendezvous_tsend"), HasSubstr("eager 16 read_key 0x8000000000005678"));
}

// WIRE 1.3: of a packet that a switch or a capture has cut.
TEST(Dissect, MissingPayloadIsCounted) {
  auto bytes = vector_bytes("rud_write_last");  // 8 bytes by the length in its header
  bytes.resize(bytes.size() - 3);
  EXPECT_THAT(dissect(bytes), HasSubstr("payload 8 missing 3"));
  EXPECT_THAT(dissect(bytes, 3), HasSubstr("payload 8 missing 3"));
  bytes.resize(bytes.size() - 5);
  EXPECT_THAT(dissect(bytes), HasSubstr("payload 8 missing 8"));
  auto first = vector_bytes("rud_syn_write_first");  // 16 of 56 bytes, which no field says
  first.resize(first.size() - 6);
  EXPECT_THAT(dissect(first, 6), HasSubstr("payload 16 missing 6"));
  auto small = vector_bytes("rud_write_small");
  small.resize(small.size() - 1);
  EXPECT_THAT(dissect(small), HasSubstr("missing 1"));
  auto data = vector_bytes("ack_read_response");
  data.resize(data.size() - 2);
  EXPECT_THAT(dissect(data), HasSubstr("missing 2"));
}

TEST(Dissect, CutHeaderIsNotMalformed) {
  auto bytes = vector_bytes("rud_write_last");
  bytes.resize(16);
  EXPECT_THAT(dissect(bytes, 48), HasSubstr("| cut short REQUEST_STD bytes 4 missing 48"));
}

TEST(Dissect, UnreliableAndIdempotentPackets) {
  EXPECT_THAT(line_of("rudi_response"),
              HasSubstr("RUDI_RESP pkt_id 0xcafe [ce] | DEFAULT_RESPONSE"));
  EXPECT_THAT(line_of("uud_datagram_send"), HasSubstr("UUD_REQ | DATAGRAM_SEND"));
}

TEST(Dissect, SecuredPacketShowsOnlyItsOuterHeader) {
  EXPECT_EQ(line_of("tss_ssi_write"), "TSS sdi 2 ssi 0xa0b0c0d an 0 epoch 1 counter 0x2a bytes 56");
}

TEST(Dissect, MalformedBytesSaySo) {
  EXPECT_EQ(dissect({}), "malformed bytes 0");
  EXPECT_EQ(dissect(from_hex("1188ffff")), "malformed RUD_REQ bytes 4");
  EXPECT_EQ(dissect(from_hex("f800")), "malformed reserved 31 bytes 2");
  EXPECT_EQ(dissect(from_hex("1188ffff000100030011002201")),
            "RUD_REQ psn 0x10003 clear 0x10002 pdc 0x11>0x22 [ar] | cut short REQUEST_STD bytes 1");
}

TEST(Dissect, EveryVectorGivesOneLineWithoutComplaint) {
  for (const auto& vector : wire_vectors()) {
    const std::string line = dissect(from_hex(vector["hex"].get<std::string>()));
    EXPECT_THAT(line, Not(HasSubstr("malformed"))) << vector["name"];
    EXPECT_THAT(line, Not(HasSubstr("\n"))) << vector["name"];
  }
}

template <class Enum>
struct Named {
  int number;  // number and name as the reference gives them
  Enum value;
  std::string_view name;
};

template <class Enum>
void expect_names(std::initializer_list<Named<Enum>> all) {
  for (const Named<Enum>& row : all) {
    EXPECT_EQ(static_cast<int>(row.value), row.number) << row.name;
    EXPECT_EQ(name_of(row.value), row.name);
  }
}

// WIRE 2.1, WIRE 2.5, WIRE 2.6
TEST(NameOf, NumbersOfThePdsHeaders) {
  expect_names<PdsType>({{0x01, PdsType::Tss, "TSS"},
                         {0x02, PdsType::RudReq, "RUD_REQ"},
                         {0x03, PdsType::RodReq, "ROD_REQ"},
                         {0x04, PdsType::RudiReq, "RUDI_REQ"},
                         {0x05, PdsType::RudiResp, "RUDI_RESP"},
                         {0x06, PdsType::UudReq, "UUD_REQ"},
                         {0x07, PdsType::Ack, "ACK"},
                         {0x08, PdsType::AckCc, "ACK_CC"},
                         {0x09, PdsType::AckCcx, "ACK_CCX"},
                         {0x0A, PdsType::Nack, "NACK"},
                         {0x0B, PdsType::Cp, "CP"},
                         {0x0C, PdsType::NackCcx, "NACK_CCX"},
                         {0x0D, PdsType::RudCcReq, "RUD_CC_REQ"},
                         {0x0E, PdsType::RodCcReq, "ROD_CC_REQ"}});
  expect_names<NextHdr>({{0, NextHdr::None, "NONE"},
                         {1, NextHdr::RequestSmall, "REQUEST_SMALL"},
                         {2, NextHdr::RequestMedium, "REQUEST_MEDIUM"},
                         {3, NextHdr::RequestStd, "REQUEST_STD"},
                         {4, NextHdr::Response, "RESPONSE"},
                         {5, NextHdr::ResponseData, "RESPONSE_DATA"},
                         {6, NextHdr::ResponseDataSmall, "RESPONSE_DATA_SMALL"}});
  expect_names<NackCode>({{0x01, NackCode::Trimmed, "TRIMMED"},
                          {0x02, NackCode::TrimmedLastHop, "TRIMMED_LASTHOP"},
                          {0x03, NackCode::TrimmedAck, "TRIMMED_ACK"},
                          {0x04, NackCode::NoPdcAvail, "NO_PDC_AVAIL"},
                          {0x05, NackCode::NoCccAvail, "NO_CCC_AVAIL"},
                          {0x06, NackCode::NoBitmap, "NO_BITMAP"},
                          {0x07, NackCode::NoPktBuffer, "NO_PKT_BUFFER"},
                          {0x08, NackCode::NoGtdDelAvail, "NO_GTD_DEL_AVAIL"},
                          {0x09, NackCode::NoSesMsgAvail, "NO_SES_MSG_AVAIL"},
                          {0x0A, NackCode::NoResource, "NO_RESOURCE"},
                          {0x0B, NackCode::PsnOorWindow, "PSN_OOR_WINDOW"},
                          {0x0D, NackCode::RodOoo, "ROD_OOO"},
                          {0x0E, NackCode::InvDpdcid, "INV_DPDCID"},
                          {0x0F, NackCode::PdcHdrMismatch, "PDC_HDR_MISMATCH"},
                          {0x10, NackCode::Closing, "CLOSING"},
                          {0x11, NackCode::ClosingInErr, "CLOSING_IN_ERR"},
                          {0x12, NackCode::PktNotRcvd, "PKT_NOT_RCVD"},
                          {0x13, NackCode::GtdRespUnavail, "GTD_RESP_UNAVAIL"},
                          {0x14, NackCode::AckWithData, "ACK_WITH_DATA"},
                          {0x15, NackCode::InvalidSyn, "INVALID_SYN"},
                          {0x16, NackCode::PdcModeMismatch, "PDC_MODE_MISMATCH"},
                          {0x17, NackCode::NewStartPsn, "NEW_START_PSN"},
                          {0x18, NackCode::RcvdSesProcg, "RCVD_SES_PROCG"},
                          {0x19, NackCode::UnexpEvent, "UNEXP_EVENT"},
                          {0x1A, NackCode::RcvrInferLoss, "RCVR_INFER_LOSS"},
                          {0xFD, NackCode::ExpNormal, "EXP_NORMAL"},
                          {0xFE, NackCode::ExpErr, "EXP_ERR"},
                          {0xFF, NackCode::ExpFatal, "EXP_FATAL"}});
  expect_names<CpType>({{0x00, CpType::Noop, "NOOP"},
                        {0x01, CpType::AckRequest, "ACK_REQ"},
                        {0x02, CpType::Clear, "CLEAR"},
                        {0x03, CpType::ClearRequest, "CLEAR_REQ"},
                        {0x04, CpType::Close, "CLOSE"},
                        {0x05, CpType::CloseRequest, "CLOSE_REQ"},
                        {0x06, CpType::Probe, "PROBE"},
                        {0x07, CpType::Credit, "CREDIT"},
                        {0x08, CpType::CreditRequest, "CREDIT_REQ"},
                        {0x09, CpType::Negotiation, "NEGOTIATION"}});
}

TEST(NameOf, Wire31_NumbersOfTheSesHeaders) {
  expect_names<SesOpcode>({{0x00, SesOpcode::NoOp, "NO_OP"},
                           {0x01, SesOpcode::Write, "WRITE"},
                           {0x02, SesOpcode::Read, "READ"},
                           {0x03, SesOpcode::Atomic, "ATOMIC"},
                           {0x04, SesOpcode::FetchingAtomic, "FETCHING_ATOMIC"},
                           {0x05, SesOpcode::Send, "SEND"},
                           {0x06, SesOpcode::RendezvousSend, "RENDEZVOUS_SEND"},
                           {0x07, SesOpcode::DatagramSend, "DATAGRAM_SEND"},
                           {0x08, SesOpcode::DeferrableSend, "DEFERRABLE_SEND"},
                           {0x09, SesOpcode::TaggedSend, "TAGGED_SEND"},
                           {0x0A, SesOpcode::RendezvousTsend, "RENDEZVOUS_TSEND"},
                           {0x0B, SesOpcode::DeferrableTsend, "DEFERRABLE_TSEND"},
                           {0x0C, SesOpcode::DeferrableRtr, "DEFERRABLE_RTR"},
                           {0x0D, SesOpcode::TsendAtomic, "TSEND_ATOMIC"},
                           {0x0E, SesOpcode::TsendFetchAtomic, "TSEND_FETCH_ATOMIC"},
                           {0x0F, SesOpcode::MsgError, "MSG_ERROR"}});
  expect_names<ResponseOpcode>({{0x00, ResponseOpcode::DefaultResponse, "DEFAULT_RESPONSE"},
                                {0x01, ResponseOpcode::Response, "RESPONSE"},
                                {0x02, ResponseOpcode::ResponseWData, "RESPONSE_W_DATA"},
                                {0x03, ResponseOpcode::NoResponse, "NO_RESPONSE"}});
  EXPECT_EQ(static_cast<int>(List::Expected), 0);
  EXPECT_EQ(static_cast<int>(List::Overflow), 1);
  expect_names<ReturnCode>({{0x00, ReturnCode::Null, "NULL"},
                            {0x01, ReturnCode::Ok, "OK"},
                            {0x02, ReturnCode::BadGeneration, "BAD_GENERATION"},
                            {0x03, ReturnCode::Disabled, "DISABLED"},
                            {0x04, ReturnCode::DisabledGen, "DISABLED_GEN"},
                            {0x05, ReturnCode::NoMatch, "NO_MATCH"},
                            {0x06, ReturnCode::UnsupportedOp, "UNSUPPORTED_OP"},
                            {0x07, ReturnCode::UnsupportedSize, "UNSUPPORTED_SIZE"},
                            {0x08, ReturnCode::AtInvalid, "AT_INVALID"},
                            {0x09, ReturnCode::AtPerm, "AT_PERM"},
                            {0x0A, ReturnCode::AtAtsError, "AT_ATS_ERROR"},
                            {0x0B, ReturnCode::AtNoTrans, "AT_NO_TRANS"},
                            {0x0C, ReturnCode::AtOutOfRange, "AT_OUT_OF_RANGE"},
                            {0x0D, ReturnCode::HostPoisoned, "HOST_POISONED"},
                            {0x0E, ReturnCode::HostUnsuccessCmpl, "HOST_UNSUCCESS_CMPL"},
                            {0x0F, ReturnCode::AmoUnsupportedOp, "AMO_UNSUPPORTED_OP"},
                            {0x10, ReturnCode::AmoUnsupportedDt, "AMO_UNSUPPORTED_DT"},
                            {0x11, ReturnCode::AmoUnsupportedSize, "AMO_UNSUPPORTED_SIZE"},
                            {0x12, ReturnCode::AmoUnaligned, "AMO_UNALIGNED"},
                            {0x13, ReturnCode::AmoFpNan, "AMO_FP_NAN"},
                            {0x14, ReturnCode::FpUnderflow, "FP_UNDERFLOW"},
                            {0x15, ReturnCode::FpOverflow, "FP_OVERFLOW"},
                            {0x16, ReturnCode::FpInexact, "FP_INEXACT"},
                            {0x17, ReturnCode::PermViolation, "PERM_VIOLATION"},
                            {0x18, ReturnCode::OpViolation, "OP_VIOLATION"},
                            {0x19, ReturnCode::BadIndex, "BAD_INDEX"},
                            {0x1A, ReturnCode::BadPid, "BAD_PID"},
                            {0x1B, ReturnCode::BadJobId, "BAD_JOB_ID"},
                            {0x1C, ReturnCode::BadMkey, "BAD_MKEY"},
                            {0x1D, ReturnCode::BadAddr, "BAD_ADDR"},
                            {0x1E, ReturnCode::Cancelled, "CANCELLED"},
                            {0x1F, ReturnCode::Undeliverable, "UNDELIVERABLE"},
                            {0x20, ReturnCode::Uncor, "UNCOR"},
                            {0x21, ReturnCode::UncorTrnsnt, "UNCOR_TRNSNT"},
                            {0x22, ReturnCode::TooLong, "TOO_LONG"},
                            {0x23, ReturnCode::InitiatorErr, "INITIATOR_ERR"},
                            {0x24, ReturnCode::Dropped, "DROPPED"}});
  expect_names<AmoOp>({{0x00, AmoOp::Min, "MIN"},          {0x01, AmoOp::Max, "MAX"},
                       {0x02, AmoOp::Sum, "SUM"},          {0x03, AmoOp::Diff, "DIFF"},
                       {0x04, AmoOp::Prod, "PROD"},        {0x05, AmoOp::Lor, "LOR"},
                       {0x06, AmoOp::Land, "LAND"},        {0x07, AmoOp::Bor, "BOR"},
                       {0x08, AmoOp::Band, "BAND"},        {0x09, AmoOp::Lxor, "LXOR"},
                       {0x0A, AmoOp::Bxor, "BXOR"},        {0x0B, AmoOp::Read, "READ"},
                       {0x0C, AmoOp::Write, "WRITE"},      {0x0D, AmoOp::Cswap, "CSWAP"},
                       {0x0E, AmoOp::CswapNe, "CSWAP_NE"}, {0x0F, AmoOp::CswapLe, "CSWAP_LE"},
                       {0x10, AmoOp::CswapLt, "CSWAP_LT"}, {0x11, AmoOp::CswapGe, "CSWAP_GE"},
                       {0x12, AmoOp::CswapGt, "CSWAP_GT"}, {0x13, AmoOp::Mswap, "MSWAP"},
                       {0x14, AmoOp::Inval, "INVAL"}});
  expect_names<AmoDatatype>({{0x00, AmoDatatype::Int8, "INT8"},
                             {0x01, AmoDatatype::Uint8, "UINT8"},
                             {0x02, AmoDatatype::Int16, "INT16"},
                             {0x03, AmoDatatype::Uint16, "UINT16"},
                             {0x04, AmoDatatype::Int32, "INT32"},
                             {0x05, AmoDatatype::Uint32, "UINT32"},
                             {0x06, AmoDatatype::Int64, "INT64"},
                             {0x07, AmoDatatype::Uint64, "UINT64"},
                             {0x08, AmoDatatype::Int128, "INT128"},
                             {0x09, AmoDatatype::Uint128, "UINT128"},
                             {0x0A, AmoDatatype::Float, "FLOAT"},
                             {0x0B, AmoDatatype::Double, "DOUBLE"},
                             {0x0C, AmoDatatype::FloatComplex, "FLOAT_COMPLEX"},
                             {0x0D, AmoDatatype::DoubleComplex, "DOUBLE_COMPLEX"},
                             {0x0E, AmoDatatype::LongDouble, "LONG_DOUBLE"},
                             {0x0F, AmoDatatype::LongDoubleComplex, "LONG_DOUBLE_COMPLEX"},
                             {0x10, AmoDatatype::Bf16, "BF16"},
                             {0x11, AmoDatatype::Fp16, "FP16"}});
}

TEST(NameOf, ReservedNumbers) {
  EXPECT_EQ(name_of(PdsType::Reserved), "reserved");
  EXPECT_EQ(name_of(static_cast<PdsType>(15)), "reserved");
  EXPECT_EQ(name_of(static_cast<NackCode>(0x0C)), "reserved");
  EXPECT_EQ(name_of(static_cast<NackCode>(0x1B)), "reserved");
  EXPECT_EQ(name_of(static_cast<ReturnCode>(0x25)), "reserved");
}

}  // namespace
}  // namespace uet::wire
