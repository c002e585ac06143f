// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RUDI, receiving (PDS section 18): each request is delivered and answered each time that it comes,
// and nothing is remembered of it (PDS-184). The other end is Rudi. Must not know what a PDC is.
#pragma once

#include "pds/datagrams.h"
#include "pds/environment.h"
#include "uet/base/packet.h"
#include "uet/base/result.h"
#include "uet/base/time.h"
#include "uet/pds/api.h"
#include "uet/wire/pds.h"

namespace uet::pds {

class RudiTarget {
 public:
  // Both arguments outlive it. Responses with data leave through `datagrams`.
  RudiTarget(Environment& environment, Datagrams& datagrams)
      : env_(environment), datagrams_(datagrams) {}

  // A request with this header has come.
  void on_request(const RxPacket& packet, const wire::RudiHeader& header, Time now);
  // Answers the request that Client::rx_req is being called for with the data of a message
  // (PDS-222). Invalid: there is no such request. Again: no memory now, or the host of the request
  // is not proved and has had its share of bytes; the request comes again.
  Result<void> respond(Message& message, Time now);

 private:
  void refuse(const RxPacket& packet, const wire::RudiHeader& header, NackCode code);
  void send(const Response& response, const FepAddress& to, std::uint16_t entropy);

  Environment& env_;
  Datagrams& datagrams_;
  const RxPacket* request_ = nullptr;  // the one that rx_req is being called for
  wire::RudiHeader response_;          // and the header of its response
  bool responded_ = false;             // by respond()
};

}  // namespace uet::pds
