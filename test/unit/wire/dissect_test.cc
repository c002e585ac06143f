// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet/wire/dissect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "uet/base/rng.h"
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

TEST(Dissect, Extensions) {
  EXPECT_THAT(line_of("rud_fetch_cswap"), HasSubstr("FETCHING_ATOMIC REQUEST_STD msg 1026"));
  EXPECT_THAT(line_of("rud_fetch_cswap"), HasSubstr("CSWAP UINT64 compare 0x5 swap 0x9"));
  EXPECT_THAT(line_of("rud_rendezvous_tsend"), HasSubstr("eager 16 read_key 0x8000000000005678"));
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
            "RUD_REQ psn 0x10003 clear 0x10002 pdc 0x11>0x22 [ar] | malformed REQUEST_STD bytes 1");
}

TEST(Dissect, EveryVectorGivesOneLineWithoutComplaint) {
  for (const auto& vector : wire_vectors()) {
    const std::string line = dissect(from_hex(vector["hex"].get<std::string>()));
    EXPECT_THAT(line, Not(HasSubstr("malformed"))) << vector["name"];
    EXPECT_THAT(line, Not(HasSubstr("\n"))) << vector["name"];
  }
}

TEST(NameOf, LastOfEachTable) {
  EXPECT_EQ(name_of(PdsType::RodCcReq), "ROD_CC_REQ");
  EXPECT_EQ(name_of(NextHdr::ResponseDataSmall), "RESPONSE_DATA_SMALL");
  EXPECT_EQ(name_of(CpType::Negotiation), "NEGOTIATION");
  EXPECT_EQ(name_of(NackCode::RodOoo), "ROD_OOO");
  EXPECT_EQ(name_of(NackCode::RcvrInferLoss), "RCVR_INFER_LOSS");
  EXPECT_EQ(name_of(NackCode::ExpFatal), "EXP_FATAL");
  EXPECT_EQ(name_of(SesOpcode::MsgError), "MSG_ERROR");
  EXPECT_EQ(name_of(ResponseOpcode::NoResponse), "NO_RESPONSE");
  EXPECT_EQ(name_of(ReturnCode::BadMkey), "BAD_MKEY");
  EXPECT_EQ(name_of(ReturnCode::Dropped), "DROPPED");
  EXPECT_EQ(name_of(AmoOp::Inval), "INVAL");
  EXPECT_EQ(name_of(AmoDatatype::Fp16), "FP16");
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
