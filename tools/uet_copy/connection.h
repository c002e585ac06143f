// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// One connection of FI_EP_MSG with its slots: libfabric's public interface alone. Each connection
// has a domain of its own, so that threads do not wait for each other.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#include <cstddef>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gpu.h"
#include "protocol.h"

namespace uet::copy {

struct Close {
  template <class T>
  void operator()(T* object) const {
    fi_close(&object->fid);
  }
};
template <class T>
using Owned = std::unique_ptr<T, Close>;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;

// An event of a connection's or a listener's event queue.
struct CmEvent {
  std::uint32_t number = 0;  // 0: an error
  int error = 0;
  Info info;
  std::string data;
};

// Completions and messages since the last poll().
struct News {
  std::vector<Message> messages;
  std::vector<std::uint64_t> arrived;  // data of the peer's writes
  std::vector<unsigned> written;       // own slots whose bytes have left
  bool empty() const { return messages.empty() && arrived.empty() && written.empty(); }
};

class Connection {
 public:
  // Opens domain, queues, endpoint and slots for `info`, which leads to a peer or asks for one.
  // `fabric` must outlive it. With `gpu`, which must too, the slots are memory of that device.
  Connection(fid_fabric& fabric, fi_info& info, std::uint32_t slot_bytes, std::uint32_t slots,
             Gpu* gpu = nullptr);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // The client's half; the peer's answer. `what` names the server in messages.
  Welcome connect(const void* address, const Hello& hello, const std::string& what);
  // The server's half.
  void accept();

  // Where the peer writes to.
  Slots own_slots() const;
  void set_peer_slots(const Slots& slots) { peer_slots_ = slots; }
  unsigned slots() const { return count_; }
  std::span<std::byte> slot(unsigned index);

  void send(const Message& message);
  // Writes the first bytes of slot `index` into the same slot of the peer.
  void write_slot(unsigned index, std::size_t bytes);
  // Makes progress. Throws Failure if the connection is over.
  void poll(News& news);
  // The next poll() returns this again.
  void put_back(News news) { kept_ = std::move(news); }
  // All that was sent has arrived.
  bool flushed() const { return sending_.empty() && writes_.empty(); }
  // Sleeps until there may be news, `other_fd` is readable (unless -1) or 20 ms have passed.
  void wait(int other_fd);

 private:
  struct Outgoing {
    Bytes bytes;
    bool posted = false;
  };
  struct Write {
    unsigned slot;
    std::size_t bytes;
  };

  void open_objects(fi_info& info, std::size_t bytes);
  void free_memory() noexcept;
  std::optional<CmEvent> next_event();
  void post_receive(unsigned index);
  void post_all();
  void read_queue(News& news);
  [[noreturn]] void fail_operation();

  fid_fabric& fabric_;
  Gpu* const gpu_;
  std::byte* memory_ = nullptr;
  std::uint32_t slot_bytes_;
  std::uint32_t count_;
  Owned<fid_domain> domain_;
  Owned<fid_eq> eq_;
  Owned<fid_cq> cq_;
  Owned<fid_mr> region_;
  Owned<fid_ep> ep_;
  bool virtual_addresses_ = false;
  News kept_;
  bool over_ = false;  // the event queue has said so
  Slots peer_slots_;
  std::vector<Bytes> receives_;
  std::list<Outgoing> sending_;  // contexts of sends are addresses of these
  std::deque<Write> writes_;     // to be posted
};

// Throws a Failure with libfabric's word for a negative result; else returns it.
ssize_t check(ssize_t result, const std::string& what);

// The fi_infos of FI_EP_MSG at `host` (nullptr: any interface) and UDP port `service`.
// `with_devices`: buffers may be memory of devices (FI_HMEM).
Info find_info(const char* host, const std::string& service, std::uint64_t flags,
               const std::string& provider, bool with_devices = false);

// Reads an event queue; empty: there is none.
std::optional<CmEvent> read_event(fid_eq& eq);

}  // namespace uet::copy
