// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fid_pep: a listening address, and the requests for connections that have come to it. It belongs
// to a fabric and so has an engine of its own; accepted connections run in the domains of their
// endpoints.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_endpoint.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "cm/listener.h"
#include "objects/cm_port.h"
#include "objects/engine.h"
#include "objects/eq.h"
#include "objects/fabric.h"
#include "objects/references.h"
#include "settings/address_format.h"
#include "settings/info_ptr.h"

namespace uet::prov {

// fi_ops_fabric.passive_ep: fi_passive_ep(3).
int passive_ep_open(fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context) noexcept;

// The request that fi_info.handle of an FI_CONNREQ names. nullopt: `handle` is no request, or one
// that has an answer already. The inner nullopt: its initiator has withdrawn it.
std::optional<std::optional<cm::PeerRequest>> take_request(struct fid* handle);

struct OpenedNic;
class PassiveEndpoint final : public fid_pep {
 public:
  static PassiveEndpoint& from(struct fid* fid) {
    return static_cast<PassiveEndpoint&>(*reinterpret_cast<fid_pep*>(fid));
  }
  static PassiveEndpoint& from(fid_pep* fid) { return static_cast<PassiveEndpoint&>(*fid); }
  static int open(Fabric& fabric, const fi_info& info, void* context, PassiveEndpoint*& out);

  // Is it a passive endpoint of this process? Reads nothing behind the pointer.
  static bool is_open(const struct fid* fid);

  // Implementations of the calls of the same name. 0 or a negative fi_errno, with the reason
  // logged. Waiting requests are rejected by close().
  int close() noexcept;
  int bind(struct fid& other, std::uint64_t flags);
  int listen();
  int reject(struct fid* handle, const void* data, std::size_t length);
  int reject(const cm::RequestKey& key, std::span<const std::byte> data);
  int set_backlog(int backlog);
  int set_name(const void* address, std::size_t length);
  int get_name(void* address, std::size_t* length) const;

  // fi_endpoint(3): gives its address up to a domain that is opened with its handle. An info with
  // that address; nullptr if it listens or has none any more. Throws bad_alloc.
  InfoPtr hand_over();
  const av::UetAddress& name() const { return name_; }

  // nullopt: the request is there no more. Takes the engine's lock.
  std::optional<cm::PeerRequest> take(const cm::RequestKey& key);

 private:
  // The engine with what runs in it. Another name takes another one.
  struct Station final : PassClient {
    Station(PassiveEndpoint& owner, const Params& params, fi_threading threading);
    ~Station();
    int open(OpenedNic& from, const av::UetAddress& wanted, JobId job, bool thread);
    void run(Time now) noexcept override;
    Time next_deadline() const noexcept override { return port->next_deadline(); }

    PassiveEndpoint& owner;
    Engine engine;
    bool opened = false;
    av::UetAddress name;
    std::optional<cm::Listener> listener;
    std::optional<CmPort> port;
  };

  PassiveEndpoint(Fabric& fabric, InfoPtr info, void* context);
  int open_station(std::unique_ptr<Station>& out);
  int check_open() const;
  void announce();
  InfoPtr make_info(const cm::PeerRequest& request) const;

  Hold hold_;
  const InfoPtr info_;  // src_addr changes with fi_setname
  AddressFormat format_;
  std::size_t backlog_;
  bool listens_ = false;
  std::unique_ptr<Station> station_;  // nullptr: hand_over
  av::UetAddress name_;
  EqBinding eq_;
};

}  // namespace uet::prov
