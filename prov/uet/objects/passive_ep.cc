// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "objects/passive_ep.h"

#include <rdma/fi_cm.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "errors.h"
#include "objects/domain.h"
#include "objects/ep_options.h"
#include "objects/open_nic.h"
#include "ops.h"
#include "provider.h"
#include "settings/core_config.h"

namespace uet::prov {
namespace {

constexpr std::size_t kListenerReceives = 256;
constexpr std::size_t kDefaultBacklog = 128;
constexpr int kMaxBacklog = 65536;

int refuse_passive_ep(int error, const char* why) {
  FI_WARN(&provider, FI_LOG_EP_CTRL, "%s\n", why);
  return error;
}

// ---- handles of requests -----------------------------------------------------------------------

struct Handle {
  struct fid fid {};
  PassiveEndpoint* listener = nullptr;
  cm::RequestKey key;
};

// All handles of the process that have not been used. One that has been used, was never given, or
// whose listener is closed is recognised by its absence.
class Handles {
 public:
  static Handles& instance() {
    static Handles& handles = *new Handles;  // never destroyed: threads may still be in here
    return handles;
  }
  struct fid* add(PassiveEndpoint& listener, const cm::RequestKey& key);
  void remove(struct fid* fid) {
    const std::lock_guard guard(mutex_);
    handles_.erase(fid);
  }
  // The handle is used up.
  std::optional<Handle> take(struct fid* fid) {
    const std::lock_guard guard(mutex_);
    const auto found = handles_.find(fid);
    if (found == handles_.end()) return {};
    const Handle handle = *found->second;
    handles_.erase(found);
    return handle;
  }
  // Passive endpoints that are open.
  void enter(const PassiveEndpoint& listener) {
    const std::lock_guard guard(mutex_);
    listeners_.insert(&listener.fid);
  }
  bool knows(const struct fid* fid) {
    const std::lock_guard guard(mutex_);
    return listeners_.contains(fid);
  }
  void forget(const PassiveEndpoint& listener) {
    const std::lock_guard guard(mutex_);
    listeners_.erase(&listener.fid);
    std::erase_if(handles_, [&](const auto& each) { return each.second->listener == &listener; });
  }

 private:
  std::mutex mutex_;
  std::map<struct fid*, std::unique_ptr<Handle>> handles_;
  std::set<const struct fid*> listeners_;
};

int close_handle(fid* fid) noexcept {
  return guarded([&] {
    const auto handle = Handles::instance().take(fid);
    return handle ? handle->listener->reject(handle->key, {}) : -FI_EINVAL;
  });
}

fi_ops handle_ops = {
    .size = sizeof(fi_ops),
    .close = close_handle,
    .bind = no_bind,
    .control = no_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

struct fid* Handles::add(PassiveEndpoint& listener, const cm::RequestKey& key) {
  auto handle = std::make_unique<Handle>();
  handle->fid.fclass = FI_CLASS_CONNREQ;
  handle->fid.ops = &handle_ops;
  handle->listener = &listener;
  handle->key = key;
  struct fid* const fid = &handle->fid;
  const std::lock_guard guard(mutex_);
  handles_.emplace(fid, std::move(handle));
  return fid;
}

// ---- tables ------------------------------------------------------------------------------------

int close_passive_ep(fid* fid) noexcept { return PassiveEndpoint::from(fid).close(); }

int pep_bind(fid* fid, struct fid* other, std::uint64_t flags) noexcept {
  return guarded([&] { return PassiveEndpoint::from(fid).bind(*other, flags); });
}

int pep_control(fid* fid, int command, void* argument) noexcept {
  if (command != FI_BACKLOG) return -FI_ENOSYS;
  if (argument == nullptr)
    return refuse_passive_ep(-FI_EINVAL,
                             "fi_control: passive endpoint: FI_BACKLOG without argument; pass one");
  return PassiveEndpoint::from(fid).set_backlog(*static_cast<int*>(argument));
}

int pep_getname(fid* fid, void* address, std::size_t* length) noexcept {
  return guarded([&] { return PassiveEndpoint::from(fid).get_name(address, length); });
}

int pep_setname(fid* fid, void* address, std::size_t length) noexcept {
  return guarded([&] { return PassiveEndpoint::from(fid).set_name(address, length); });
}

int pep_listen(fid_pep* pep) noexcept {
  return guarded([&] { return PassiveEndpoint::from(pep).listen(); });
}

int pep_reject(fid_pep* pep, fid_t handle, const void* data, std::size_t length) noexcept {
  return guarded([&] { return PassiveEndpoint::from(pep).reject(handle, data, length); });
}

int pep_getopt(fid*, int level, int name, void* value, std::size_t* length) noexcept {
  if (level != FI_OPT_ENDPOINT || name != FI_OPT_CM_DATA_SIZE) return -FI_ENOPROTOOPT;
  if (value == nullptr || length == nullptr)
    return refuse_passive_ep(
        -FI_EINVAL, "fi_getopt: passive endpoint: NULL argument; pass a value and its length");
  return give_option(cm::kMaxData, value, length);
}

fi_ops pep_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_passive_ep,
    .bind = pep_bind,
    .control = pep_control,
    .ops_open = no_ops_open,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_ep pep_ops = {
    .size = sizeof(fi_ops_ep),
    .cancel = not_supported<&fi_ops_ep::cancel>,
    .getopt = pep_getopt,
    .setopt = [](fid*, int, int, const void*, std::size_t) noexcept { return -FI_ENOPROTOOPT; },
    .tx_ctx = not_supported<&fi_ops_ep::tx_ctx>,
    .rx_ctx = not_supported<&fi_ops_ep::rx_ctx>,
    .rx_size_left = not_supported<&fi_ops_ep::rx_size_left>,
    .tx_size_left = not_supported<&fi_ops_ep::tx_size_left>,
};

fi_ops_cm pep_cm_ops = {
    .size = sizeof(fi_ops_cm),
    .setname = pep_setname,
    .getname = pep_getname,
    .getpeer = not_supported<&fi_ops_cm::getpeer>,
    .connect = not_supported<&fi_ops_cm::connect>,
    .listen = pep_listen,
    .accept = not_supported<&fi_ops_cm::accept>,
    .reject = pep_reject,
    .shutdown = not_supported<&fi_ops_cm::shutdown>,
    .join = not_supported<&fi_ops_cm::join>,
};

void set_handle_address(void*& to, std::size_t& length, const std::vector<std::byte>& address) {
  void* copy = std::malloc(address.size());
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, address.data(), address.size());
  std::free(to);
  to = copy;
  length = address.size();
}

// CM-3: the name of a listener; its resource index is the one that the address names, else the
// first.
av::UetAddress listener_name(const FepAddress& here, const av::UetAddress& wanted) {
  const bool named = wanted.has(av::kResourceIndexValid);
  av::UetAddress name =
      av::default_address(here, named ? wanted.start_resource_index : av::kFirstResourceIndex);
  if (named && wanted.has(av::kPidOnFepValid) && !slot_of_port(here.port)) {
    name.pid_on_fep = wanted.pid_on_fep;
  }
  return name;
}

}  // namespace

std::optional<std::optional<cm::PeerRequest>> take_request(struct fid* handle) {
  const auto taken = Handles::instance().take(handle);
  if (!taken) return {};
  return taken->listener->take(taken->key);
}

// ---- the engine --------------------------------------------------------------------------------

PassiveEndpoint::Station::Station(PassiveEndpoint& pep, const Params& params,
                                  fi_threading threading)
    : owner(pep), engine(params, threading, false) {}

int PassiveEndpoint::Station::open(OpenedNic& from, const av::UetAddress& wanted, JobId job,
                                   bool thread) UET_NO_THREAD_ANALYSIS {
  if (const int result = engine.open(std::move(from.nic), thread, from.link); result != 0) {
    return result;
  }
  opened = true;
  name = listener_name(engine.local_address(), wanted);
  const Guard guard(engine.lock());
  listener.emplace(name, random_seed());
  port.emplace(engine, *listener, kListenerReceives);
  if (const int result = port->open(name, job); result != 0) return result;
  engine.attach(this);
  return 0;
}

PassiveEndpoint::Station::~Station() UET_NO_THREAD_ANALYSIS {
  if (!opened) return;
  if (!engine.dead() && port) {
    const Guard guard(engine.lock());
    listener->close(clock_now());
    port->run(clock_now());
    engine.linger([&] { return port->idle(); });
    engine.attach(nullptr);
    port->close();
  }
  engine.close();
}

void PassiveEndpoint::Station::run(Time now) noexcept UET_NO_THREAD_ANALYSIS {
  port->run(now);
  if (!owner.listens_ || !listener->next_request()) return;
  try {
    owner.announce();
  } catch (const std::bad_alloc&) {
    FI_WARN(&provider, FI_LOG_EP_CTRL, "no memory for an FI_CONNREQ\n");
  }
}

// ---- life --------------------------------------------------------------------------------------

PassiveEndpoint::PassiveEndpoint(Fabric& fabric, InfoPtr info, void* context)
    : fid_pep{}, hold_(fabric.references()), info_(std::move(info)), backlog_(kDefaultBacklog) {
  fid.fclass = FI_CLASS_PEP;
  fid.context = context;
  fid.ops = &pep_fid_ops;
  ops = &pep_ops;
  cm = &pep_cm_ops;
}

int PassiveEndpoint::open_station(std::unique_ptr<Station>& out) {
  auto params = load_params();
  if (!params) return -FI_EINVAL;
  Protection protection;
  int result = open_protection(*info_, *params, "fi_passive_ep", protection);
  if (result != 0) return result;
  const JobId job = protection.job.value_or(JobId{static_cast<std::uint32_t>(params->job_id)});
  OpenedNic opened;
  result = open_nic(*info_, *params, "fi_passive_ep", {}, protection.of_nic(), opened);
  if (result != 0) return result;
  std::optional<av::UetAddress> wanted;
  if (info_->src_addr != nullptr) {
    wanted = AddressFormat::decode(info_->addr_format, info_->src_addr, info_->src_addrlen);
  }
  auto station = std::make_unique<Station>(*this, *params, info_->domain_attr->threading);
  station->engine.keep(std::move(protection.security));
  result = station->open(opened, wanted.value_or(av::UetAddress{}), job, wants_thread(*info_));
  if (result != 0) return result;
  if (!opened.format.can_name(station->name)) {
    return refuse_passive_ep(
        -FI_EADDRNOTAVAIL,
        "fi_passive_ep: addr_format: cannot express the address; use FI_ADDR_UET or FI_ADDR_STR");
  }
  format_ = opened.format;
  name_ = station->name;
  out = std::move(station);
  return 0;
}

int PassiveEndpoint::open(Fabric& fabric, const fi_info& info, void* context,
                          PassiveEndpoint*& out) {
  const bool complete = info.ep_attr != nullptr && info.domain_attr != nullptr &&
                        info.tx_attr != nullptr && info.rx_attr != nullptr;
  if (!complete || info.ep_attr->type != FI_EP_MSG) {
    return refuse_passive_ep(
        -FI_EINVAL,
        "fi_passive_ep: ep_attr.type: not FI_EP_MSG; use an info of fi_getinfo for FI_EP_MSG");
  }
  InfoPtr copy = copy_info(info);
  if (copy == nullptr) return -FI_ENOMEM;
  copy->handle = nullptr;
  std::unique_ptr<PassiveEndpoint> pep(new PassiveEndpoint(fabric, std::move(copy), context));
  if (const int result = pep->open_station(pep->station_); result != 0) return result;
  Handles::instance().enter(*pep);
  out = pep.release();
  return 0;
}

bool PassiveEndpoint::is_open(const struct fid* fid) { return Handles::instance().knows(fid); }

int PassiveEndpoint::close() noexcept {
  const nic::NoCancel no_cancel;
  if (station_ != nullptr && !station_->engine.dead()) {
    const Guard guard(station_->engine.lock());
    listens_ = false;
  }
  Handles::instance().forget(*this);
  if (eq_.eq() != nullptr) eq_.eq()->forget(fid);
  eq_.reset();
  station_.reset();
  delete this;
  return 0;
}

// 0, or the negative fi_errno of a call that needs the engine, with the reason logged.
int PassiveEndpoint::check_open() const {
  if (station_ == nullptr) {
    return refuse_passive_ep(-FI_EOPBADSTATE,
                             "fi_listen, fi_pep_bind, fi_setname: passive endpoint: a domain has "
                             "taken its address; close it");
  }
  return station_->engine.dead() ? -FI_EOPNOTSUPP : 0;
}

// The address is free when the call returns.
InfoPtr PassiveEndpoint::hand_over() {
  if (check_open() != 0 || listens_) return {};
  InfoPtr info = copy_info(*info_);
  if (info == nullptr) throw std::bad_alloc();
  set_handle_address(info->src_addr, info->src_addrlen, format_.encode(name_));
  eq_.reset();
  station_.reset();
  return info;
}

int PassiveEndpoint::bind(struct fid& other, std::uint64_t flags) {
  if (const int result = check_open(); result != 0) return result;
  if (other.fclass != FI_CLASS_EQ || flags != 0) {
    return refuse_passive_ep(
        -FI_EINVAL, "fi_pep_bind: passive endpoint: not an EQ, or flags; bind an EQ with flags 0");
  }
  return eq_.open(Eq::from(&other), station_->engine);
}

int PassiveEndpoint::listen() {
  if (const int result = check_open(); result != 0) return result;
  if (eq_.eq() == nullptr)
    return refuse_passive_ep(-FI_ENOEQ,
                             "fi_listen: passive endpoint: no EQ is bound; call fi_pep_bind first");
  const Guard guard(station_->engine.lock());
  if (listens_)
    return refuse_passive_ep(-FI_EOPBADSTATE,
                             "fi_listen: passive endpoint: listens already; call fi_listen once");
  station_->listener->listen(backlog_);
  listens_ = true;
  return 0;
}

int PassiveEndpoint::set_backlog(int backlog) {
  if (backlog <= 0 || backlog > kMaxBacklog) {
    return refuse_passive_ep(
        -FI_EINVAL, "fi_control: passive endpoint: FI_BACKLOG out of range; pass 1 to 65536");
  }
  if (const int result = check_open(); result != 0) return result;
  const Guard guard(station_->engine.lock());
  backlog_ = static_cast<std::size_t>(backlog);
  if (listens_) station_->listener->listen(backlog_);
  return 0;
}

int PassiveEndpoint::set_name(const void* address, std::size_t length) {
  if (const int result = check_open(); result != 0) return result;
  if (listens_)
    return refuse_passive_ep(
        -FI_EOPBADSTATE,
        "fi_setname: passive endpoint: listens already; call fi_setname before fi_listen");
  if (eq_.eq() != nullptr)
    return refuse_passive_ep(
        -FI_EOPBADSTATE,
        "fi_setname: passive endpoint: an EQ is bound; call fi_setname before fi_pep_bind");
  if (!AddressFormat::decode(info_->addr_format, address, length)) {
    return refuse_passive_ep(
        -FI_EINVAL,
        "fi_setname: passive endpoint: the address is not of addr_format; pass one that is");
  }
  const auto* bytes = static_cast<const std::byte*>(address);
  std::vector<std::byte> old(static_cast<std::byte*>(info_->src_addr),
                             static_cast<std::byte*>(info_->src_addr) + info_->src_addrlen);
  set_handle_address(info_->src_addr, info_->src_addrlen, {bytes, bytes + length});
  std::unique_ptr<Station> other;
  const int result = open_station(other);
  if (result != 0) set_handle_address(info_->src_addr, info_->src_addrlen, old);
  if (result == 0) station_ = std::move(other);
  return result;
}

int PassiveEndpoint::get_name(void* address, std::size_t* length) const {
  const std::vector<std::byte> bytes = format_.encode(name_);
  const std::size_t room = *length;
  *length = bytes.size();
  if (room > 0 && address != nullptr) {
    std::memcpy(address, bytes.data(), std::min(room, bytes.size()));
  }
  return room < bytes.size() ? -FI_ETOOSMALL : 0;
}

// ---- requests ----------------------------------------------------------------------------------

std::optional<cm::PeerRequest> PassiveEndpoint::take(const cm::RequestKey& key) {
  if (check_open() != 0) return {};
  const Guard guard(station_->engine.lock());
  return station_->listener->take(key, clock_now());
}

int PassiveEndpoint::reject(struct fid* handle, const void* data, std::size_t length) {
  if (const int result = check_open(); result != 0) return result;
  if (length > cm::kMaxData || (data == nullptr && length > 0)) {
    return refuse_passive_ep(
        -FI_EINVAL,
        "fi_reject: passive endpoint: NULL or too much data; pass at most FI_OPT_CM_DATA_SIZE");
  }
  const auto request = Handles::instance().take(handle);
  if (!request || request->listener != this) {
    return refuse_passive_ep(-FI_EINVAL,
                             "fi_reject: passive endpoint: not the handle of an unanswered "
                             "FI_CONNREQ; pass that of the event");
  }
  return reject(request->key, {static_cast<const std::byte*>(data), length});
}

// CM-39: the initiator gets the answer, also if the application never reads the EQ again.
int PassiveEndpoint::reject(const cm::RequestKey& key, std::span<const std::byte> data) {
  if (const int result = check_open(); result != 0) return result;
  if (const int result = station_->engine.need_thread(); result != 0) {
    FI_WARN(&provider, FI_LOG_EP_CTRL,
            "fi_reject: no thread starts (%s); read the EQ until the initiator has the answer\n",
            fi_strerror(-result));
  }
  const Guard guard(station_->engine.lock());
  const Time now = clock_now();
  (void)station_->listener->reject(key, data, now);  // false: the initiator has withdrawn it
  station_->run(now);
  return 0;
}

// fi_cm(3): an info to open a domain and an endpoint with, from which fi_accept is called.
InfoPtr PassiveEndpoint::make_info(const cm::PeerRequest& request) const {
  InfoPtr info = copy_info(*info_);
  if (info == nullptr) throw std::bad_alloc();
  set_handle_address(info->src_addr, info->src_addrlen, format_.encode(name_));
  set_handle_address(info->dest_addr, info->dest_addrlen, format_.encode(request.endpoint));
  return info;
}

void PassiveEndpoint::announce() {
  while (const auto key = station_->listener->next_request()) {
    const cm::PeerRequest& request = *station_->listener->find(*key);
    InfoPtr info = make_info(request);
    info->handle = Handles::instance().add(*this, *key);
    fi_eq_cm_entry head{};
    head.fid = &fid;
    head.info = info.get();
    const std::size_t offset = offsetof(fi_eq_cm_entry, data);
    struct fid* const handle = info->handle;
    try {
      std::vector<std::byte> entry(offset + request.data.length);
      std::memcpy(entry.data(), &head, offset);
      std::memcpy(entry.data() + offset, request.data.bytes.data(), request.data.length);
      eq_.eq()->write(FI_CONNREQ, entry.data(), entry.size(), std::move(info));
    } catch (const std::bad_alloc&) {
      Handles::instance().remove(handle);
      throw;
    }
    station_->listener->pop_request();
  }
}

int passive_ep_open(fid_fabric* fabric, fi_info* info, fid_pep** pep, void* context) noexcept {
  return guarded([&] {
    PassiveEndpoint* opened = nullptr;
    const int result = PassiveEndpoint::open(Fabric::from(fabric), *info, context, opened);
    if (result == 0) *pep = opened;
    return result;
  });
}

}  // namespace uet::prov
