// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// What the two ends of one connection do: one sends files out of a Source, the other receives them
// into a Sink. Slots are the back-pressure: the sender fills a slot when the receiver has freed it.
#pragma once

#include "connection.h"
#include "sink.h"
#include "source.h"

namespace uet::copy {

// Both return when all is sent and written, and throw the Failure that ended the transfer.
void send_files(Connection& connection, Source& source, Tally& tally, bool verify);
void receive_files(Connection& connection, Sink& sink, Tally& tally);

// Waits until the last messages have left. The peer may go as soon as it has them.
void flush(Connection& connection);

// Waits for the first message of a client.
Message receive_request(Connection& connection);

// Tells the peer why this end gives up; ignores that it cannot.
void send_failure(Connection& connection, const Failure& failure);

}  // namespace uet::copy
