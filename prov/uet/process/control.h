// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_UET_ENGINE=process: what an application asks of its engine besides operations, by messages of
// a Unix socket: one connection for each domain, one answer for each request. The first request is
// Open; its answer brings the descriptors.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "nic/socket.h"
#include "process/share.h"
#include "ri/mr_table.h"
#include "settings/params.h"
#include "uet/base/result.h"
#include "uet/nic/nic.h"

namespace uet::prov {

inline constexpr std::size_t kMostSharedJobs = 256;
inline constexpr std::size_t kMostSharedCounters = 256;

enum class Request : std::uint8_t {
  Open = 1,
  OpenContext,
  OpenQueue,  // receives of several contexts
  EnableContext,
  ConnectContext,
  RebindContext,
  CloseContext,
  RequestAcks,
  CancelReceives,
  Peek,
  Cancel,
  AddRegion,
  ChangeRegion,
  RemoveRegion,
  MoveContext,
  Learn,
  Unlearn,
  Forget,
  LearnFurther,
  WatchRefusals,
  WatchPeers,  // with PeerGivenUp from then on
  Counters,
};

// Open: a domain at this address, with what must be equal at both ends.
struct OpenRequest {
  std::array<char, 64> interface;  // domain_attr->name, "" if there is none
  std::array<std::uint8_t, 16> ip;
  std::array<std::uint8_t, 32> auth_key;  // domain_attr->auth_key
  std::uint32_t auth_key_bytes;
  std::uint16_t port;  // 0: any
  std::uint8_t is_ipv6;
  std::uint8_t profile;
};

struct OpenAnswer {
  std::array<char, 240> message;  // why not
  std::array<std::uint8_t, 16> ip;
  nic::NicCaps caps;
  std::uint32_t payload_mtu;
  std::uint16_t port;
  std::uint8_t is_ipv6;
};

// A ses::ContextConfig; of a queue only `rx_size` and `directed_receive`.
struct ContextRequest {
  std::uint64_t tx_size;
  std::uint64_t rx_size;
  std::uint32_t job;
  std::uint32_t initiator;
  std::uint32_t more_jobs;  // so many of `jobs`
  std::uint16_t pid_on_fep;
  std::uint16_t resource_index;
  std::uint16_t queue;  // that it takes its receives from, if `has_queue`
  std::uint8_t has_queue;
  std::uint8_t connected;
  std::uint8_t receives;
  std::uint8_t relative;
  std::uint8_t own_job_only;
  std::uint8_t mode;
  std::uint8_t traffic_class;
  std::uint8_t directed_receive;
  std::uint8_t remote_cq_data;
  std::uint8_t data_takes_receive;
  std::array<std::uint32_t, kMostSharedJobs> jobs;
};

// A ses::PeekOp.
struct PeekRequest {
  std::uint64_t tag;
  std::uint64_t ignore;
  SharedPeer source;
  std::uint32_t job;
  OperationNumber operation;  // of `claimed` that of the peek that has claimed
  std::uint8_t tagged;
  std::uint8_t has_source;
  std::uint8_t has_job;
  std::uint8_t claimed;
  std::uint8_t claim;
  std::uint8_t discard;
};

// A ri::MemoryRegion and its key.
struct RegionRequest {
  std::uint64_t key;
  std::uint64_t base;
  std::uint64_t length;
  std::uint64_t virtual_base;
  std::uint32_t job;
  std::uint16_t resource_index;
  std::uint16_t pid_on_fep;
  std::uint16_t indices;
  std::uint8_t access;
  std::uint8_t has_job;
  std::uint8_t has_index;
  std::uint8_t has_pid;
  std::uint8_t enabled;
};

// MoveContext; without `has_to` the context ends.
struct MoveRequest {
  std::uint16_t from_pid;
  std::uint16_t from_index;
  std::uint16_t to_pid;
  std::uint16_t to_index;
  std::uint8_t has_to;
};

// ConnectContext, Learn, Unlearn, Forget: `peer` alone.
struct PeerRequest {
  SharedPeer peer;
  std::uint32_t further_count;
  std::array<std::array<std::uint8_t, 16>, kMostFurtherAddresses> further;  // IPv4
};

struct ControlRequest {
  std::uint32_t version;  // control_version()
  std::uint8_t request;   // Request
  std::uint16_t context;
  OperationNumber operation;  // Cancel
  union {
    OpenRequest open;
    ContextRequest config;
    PeekRequest peek;
    RegionRequest region;
    MoveRequest move;
    PeerRequest peer;
  };
};

struct ControlAnswer {
  std::uint32_t version;
  std::int32_t error;     // of Open: 0 or a negative fi_errno; else 0 or 1 + an uet::Error
  std::uint16_t context;  // OpenContext, OpenQueue: its number
  std::uint32_t counter_count;
  OpenAnswer open;
  std::array<std::uint64_t, kMostSharedCounters> counters;
};

// Equal where both ends mean the same by all structs.
constexpr std::uint32_t control_version() {
  return std::uint32_t{1} << 24 ^ static_cast<std::uint32_t>(sizeof(Share)) ^
         static_cast<std::uint32_t>(sizeof(ControlRequest) << 12) ^
         static_cast<std::uint32_t>(sizeof(ControlAnswer));
}

ControlRequest request_of(Request kind);

// Result<void> as a number and back.
std::int32_t code_of(const Result<void>& result);
Result<void> result_of(std::int32_t code);

RegionRequest share(const ri::MemoryRegion& region, std::uint64_t key);
// Without observer and device.
ri::MemoryRegion region_of(const RegionRequest& request);

// ---- the socket --------------------------------------------------------------------------------

struct PeerProcess {
  pid_t pid = 0;
  uid_t uid = 0;
};
// Of the process that has connected or listened.
PeerProcess process_at(int socket);

// A whole message and up to three descriptors. False: the other end has gone, or has sent something
// else.
bool send_message(int socket, const void* bytes, std::size_t length,
                  std::span<const int> descriptors = {});
bool receive_message(int socket, void* bytes, std::size_t length,
                     std::vector<nic::FileDescriptor>* descriptors = nullptr);

// Where the engine of this user listens, and that of the host, in the order in which applications
// try them; or the one path that FI_UET_ENGINE=process:PATH names.
std::vector<std::string> engine_sockets(const std::string& named);
// A listening socket, or one that is connected to the first path where an engine listens. Not
// valid: `why` says why.
nic::FileDescriptor listen_at(const std::string& path, bool all_users, std::string& why);
nic::FileDescriptor connect_to_engine(const std::vector<std::string>& paths, std::string& why);

}  // namespace uet::prov
