// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Cost of writing and reading the headers that every packet of a transfer carries.
#include <benchmark/benchmark.h>

#include "uet/wire/ses.h"
#include "wire/parse.h"

namespace uet::wire {
namespace {

RequestHeader request() {
  RequestHeader header;
  header.next_hdr = NextHdr::RequestStd;
  header.ar = true;
  header.clear_psn_offset = -7;
  header.psn = Psn{123456};
  header.spdcid = PdcId{17};
  header.dpdcid = PdcId{34};
  return header;
}

SesRequest write_request() {
  SesRequest header;
  header.opcode = SesOpcode::Write;
  header.rel = true;
  header.message_id = MsgId{9};
  header.job_id = JobId{1};
  header.resource_index = ResourceIndex{3};
  header.buffer_offset = 0x2000;
  header.match_bits = 0x1234;
  header.request_length = 1 << 20;
  return header;
}

AckHeader ack() {
  AckHeader header;
  header.type = PdsType::AckCc;
  header.next_hdr = NextHdr::Response;
  header.cack_psn = Psn{123456};
  header.spdcid = PdcId{34};
  header.dpdcid = PdcId{17};
  header.mpr = 8;
  header.sack_bitmap = 0xFF00FF;
  header.rcvd_bytes = 4711;
  return header;
}

void EncodeRequest(benchmark::State& state) {
  RequestHeader pds = request();
  SesRequest ses = write_request();
  std::byte buffer[kMaxPdsHeaderBytes + kMaxSesHeaderBytes];
  for (auto _ : state) {
    ++pds.psn;
    benchmark::DoNotOptimize(ses.encode(buffer + pds.encode(buffer)));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(EncodeRequest);

void DecodeRequest(benchmark::State& state) {
  std::byte buffer[kMaxPdsHeaderBytes + kMaxSesHeaderBytes] = {};
  const std::size_t pds_bytes = request().encode(buffer);
  const std::size_t bytes = pds_bytes + write_request().encode(buffer + pds_bytes);
  SesRequest ses;
  for (auto _ : state) {
    const auto packet = parse({buffer, bytes});
    if (!packet || !SesRequest::decode(NextHdr::RequestStd, packet->rest, ses)) {
      state.SkipWithError("the packet does not parse");
      break;
    }
    benchmark::DoNotOptimize(ses);
  }
}
BENCHMARK(DecodeRequest);

void EncodeAck(benchmark::State& state) {
  AckHeader header = ack();
  std::byte buffer[kMaxPdsHeaderBytes];
  for (auto _ : state) {
    ++header.cack_psn;
    benchmark::DoNotOptimize(header.encode(buffer));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(EncodeAck);

void DecodeAck(benchmark::State& state) {
  std::byte buffer[kMaxPdsHeaderBytes];
  const std::size_t bytes = ack().encode(buffer);
  for (auto _ : state) {
    const auto packet = parse({buffer, bytes});
    if (!packet) {
      state.SkipWithError("the ACK does not parse");
      break;
    }
    benchmark::DoNotOptimize(packet->as<AckHeader>().cack_psn);
  }
}
BENCHMARK(DecodeAck);

}  // namespace
}  // namespace uet::wire
