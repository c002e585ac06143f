// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The table of functions through which a collectives library drives a network plug-in, in the
// version 6 that aws-ofi-nccl exports when it is built for host memory (--enable-neuron). Layout
// only: what a call does stands where the driver makes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uet::nccl {

inline constexpr const char* kTableSymbol = "ncclNetPlugin_v6";
inline constexpr std::size_t kHandleBytes = 128;  // what listen writes and connect takes
inline constexpr std::size_t kMaxRequests = 128;  // in flight on one communicator
inline constexpr int kMaxGroup = 8;               // receives of one irecv
inline constexpr int kHostMemory = 1;             // the type that regMr takes
inline constexpr int kSuccess = 0;
inline constexpr int kLogWarning = 2;

using LogFunction = void (*)(int level, unsigned long flags, const char* file, int line,
                             const char* format, ...);

struct NetProperties {
  char* name;
  char* pci_path;
  std::uint64_t guid;
  int memory_types;
  int registrations_are_global;
  int speed_mbps;
  int port;
  float latency;
  int max_communicators;
  int max_group;
  std::size_t max_inline_write;
  std::size_t max_key_bytes;
  int has_rma;
};

// All return kSuccess, or the kind of failure.
struct NetTable {
  const char* name;
  int (*init)(LogFunction log);
  int (*fini)();
  int (*devices)(int* count);
  int (*get_properties)(int device, NetProperties* properties);
  int (*listen)(int device, void* handle, void** listener);
  int (*connect)(int device, void* handle, void** sender);  // again while *sender is null
  int (*accept)(void* listener, void** receiver);           // again while *receiver is null
  int (*reg_mr)(void* communicator, void* data, std::size_t bytes, int type, void** region);
  int (*reg_mr_dmabuf)(void* communicator, void* data, std::size_t bytes, int type,
                       std::uint64_t offset, int fd, void** region);
  int (*dereg_mr)(void* communicator, void* region);
  // A null request means: not now.
  int (*isend)(void* sender, void* data, int bytes, int tag, void* region, void** request);
  int (*irecv)(void* receiver, int count, void** data, int* bytes, int* tags, void** regions,
               void** request);
  int (*iflush)(void* receiver, int count, void** data, int* bytes, void** regions, void** request);
  int (*test)(void* request, int* done, int* bytes);
  int (*close_send)(void* sender);
  int (*close_recv)(void* receiver);
  int (*close_listen)(void* listener);
  // Only with NetProperties::has_rma.
  int (*get_mr_key)(void* region, std::uint64_t* key);
  int (*iwrite)(void* sender, void* data, std::size_t bytes, void* region, std::uint64_t to,
                std::uint64_t key, void** request);
  int (*iwrite_inline)(void* sender, void* data, std::size_t bytes, std::uint64_t to,
                       std::uint64_t key, void** request);
  int (*iread)(void* receiver, void* data, std::size_t bytes, void* region, std::uint64_t from,
               std::uint64_t key, void** request);
};

}  // namespace uet::nccl
