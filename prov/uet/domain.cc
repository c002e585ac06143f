// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// From an fi_info to a running FEP: which address and port, how large, which congestion control;
// and how it ends. Forked children are told apart here.
#include "domain.h"

#include <poll.h>
#include <pthread.h>
#include <strings.h>
#include <sys/random.h>

#include <algorithm>
#include <mutex>

#include "atomic.h"
#include "av_fid.h"
#include "cntr.h"
#include "compat.h"
#include "cq.h"
#include "endpoint_fid.h"
#include "eq.h"
#include "errors.h"
#include "getinfo.h"
#include "mr_fid.h"
#include "ops.h"
#include "poll_set.h"
#include "scalable_ep.h"
#include "shared_ctx.h"
#include "uet/nic/registry.h"

namespace uet::prov {

// All domains of the process, so that a fork can mark the child's copies.
struct ForkRegistry {
  std::mutex mutex;
  IntrusiveList<Domain, ForkTag> domains;

  static ForkRegistry& instance() {
    // Never destroyed: fork handlers may run after static destructors.
    static ForkRegistry& registry = *new ForkRegistry;
    return registry;
  }
  void add(Domain& domain) {
    static std::once_flag once;
    std::call_once(once, [] { pthread_atfork(before_fork, after_fork, in_child); });
    const std::lock_guard guard(mutex);
    domains.push_back(domain);
  }
  void remove(Domain& domain) {
    const std::lock_guard guard(mutex);
    domains.remove(domain);
  }

 private:
  static void before_fork() { instance().mutex.lock(); }
  static void after_fork() { instance().mutex.unlock(); }
  static void in_child() {
    for (Domain& domain : instance().domains) {
      domain.dead_.store(true, std::memory_order_relaxed);
      domain.thread_.forget();
    }
    instance().mutex.unlock();
  }
};

namespace {

bool wants_thread(const fi_domain_attr& attr) {
  return attr.control_progress == FI_PROGRESS_AUTO || attr.data_progress == FI_PROGRESS_AUTO;
}

bool same(const char* a, const std::string& b) { return strcasecmp(a, b.c_str()) == 0; }

// The address that an fi_info without source address means: by fabric name, else the first.
std::optional<FabricAddress> address_of(const nic::Interface& interface, const fi_info& info) {
  const char* fabric = info.fabric_attr != nullptr ? info.fabric_attr->name : nullptr;
  for (const auto& address : interface.addresses) {
    if (fabric == nullptr || same(fabric, address.subnet())) return address.ip;
  }
  return {};
}

std::optional<av::UetAddress> source_of(const fi_info& info, const Params& params) {
  if (info.src_addr != nullptr) {
    return AddressFormat::decode(info.addr_format, info.src_addr, info.src_addrlen);
  }
  if (info.domain_attr->name == nullptr) return {};
  for (const auto& interface : usable_interfaces(params)) {
    if (!same(info.domain_attr->name, interface.name)) continue;
    if (const auto ip = address_of(interface, info)) {
      av::UetAddress address;
      address.flags = av::kFabricAddressValid;
      address.fabric_address = *ip;
      return address;
    }
  }
  return {};
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
    seed = static_cast<std::uint64_t>(to_ns(clock_now()));
  }
  return seed;
}

// Also where FI_UET_SEED makes all else repeat itself.
ri::KeySecret random_secret() {
  ri::KeySecret secret{};
  if (getrandom(&secret, sizeof secret, 0) != sizeof secret)
    secret = {random_seed(), random_seed()};
  return secret;
}

cms::Parameters cms_parameters(const Params& params, const nic::Nic& nic,
                               std::uint32_t payload_mtu) {
  const nic::NicCaps& caps = nic.caps();
  cms::Parameters cms = params.core.cms;
  const auto preset = caps.loopback ? cms::Algorithm::None : cms::Algorithm::Nscc;
  cms.algorithm = params.cc_algorithm.value_or(preset);
  if (!caps.per_packet_entropy) cms.paths = cms::PathPolicy::Single;
  if (caps.source_ports != 0) {
    cms.path_count = std::min(cms.path_count, caps.source_ports);
    cms.train_packets = params.gso ? static_cast<std::uint32_t>(params.cc_train_packets) : 1;
  }
  cms.mtu_bytes = payload_mtu + 128;  // largest headers above IP, and IP itself
  if (caps.link_rate_bps != 0) cms.link_rate_bps = caps.link_rate_bps;
  if (params.cc_link_rate_mbps != 0) cms.link_rate_bps = params.cc_link_rate_mbps * 1'000'000;
  // Half of what the peer's socket can hold, taken to be like ours: the other half is for others.
  const std::uint64_t smallest = 4 * std::uint64_t{cms.mtu_bytes};
  if (caps.receive_credit_bytes != 0) {
    cms.max_window_bytes = std::max(smallest, caps.receive_credit_bytes / 2);
    cms.fixed_window_bytes = cms.max_window_bytes;
  }
  const std::uint64_t window = params.cc_loopback_window_bytes != 0
                                   ? std::max(smallest, params.cc_loopback_window_bytes)
                                   : cms.fixed_window_bytes;
  if (caps.loopback) {
    cms.fixed_window_bytes = window;
    cms.max_window_bytes = std::max(cms.max_window_bytes, window);
  } else if (!params.cc_algorithm) {
    cms.same_host = {.ip = nic.local_address().ip, .fixed_window_bytes = window};
  }
  cms.ack_gen_trigger_bytes = params.core.pds.ack_gen_trigger_bytes;  // of peers like us
  return cms;
}

// Bytes that one context may have in flight.
std::uint64_t largest_window(const cms::Parameters& cms) {
  const double rtt_us = to_us(cms.base_rtt.value_or(cms.default_base_rtt));
  const double bdp = static_cast<double>(cms.path_rate_bps()) / 8e6 * rtt_us;
  const auto by_rate = static_cast<std::uint64_t>(cms.tuning.max_window_bdp * bdp);
  return std::min(by_rate, cms.max_window_bytes);
}

// CMS-310: MPR is not what bounds the rate.
std::uint8_t default_mpr(const Params& params, const cms::Parameters& cms) {
  if (params.mpr_zero) return 0;  // PDS-219
  const std::uint8_t by_rule = pds::mpr_for_window(largest_window(cms), cms.mtu_bytes);
  if (params.mpr == 0) return by_rule;
  if (params.mpr < by_rule) {
    FI_INFO(&provider, FI_LOG_DOMAIN,
            "FI_UET_TUNING: mpr=%d bounds what is in flight: the congestion window may need %d\n",
            static_cast<int>(params.mpr), static_cast<int>(by_rule));
  }
  return static_cast<std::uint8_t>(params.mpr);
}

pds::Parameters pds_parameters(const Params& params, const cms::Parameters& cms) {
  pds::Parameters pds = params.core.pds;
  pds.default_mpr = default_mpr(params, cms);
  pds.ccc_count = 2 * pds.pdc_count;  // one for each ROD PDC, and those that RUDI shares
  pds.reserved_target_pdcs = std::min(pds.reserved_target_pdcs, pds.pdc_count / 2);
  return pds;
}

int close_fid(fid* fid) noexcept { return Domain::from(fid).close(); }

int domain_bind(fid* fid, struct fid* other, std::uint64_t flags) noexcept {
  return Domain::from(fid).bind(*other, flags);
}

int domain_control(fid* fid, int command, void* argument) noexcept {
  Domain& domain = Domain::from(fid);
  if (domain.dead()) return -FI_EOPNOTSUPP;
  auto* work = static_cast<fi_deferred_work*>(argument);
  switch (command) {
    case FI_QUEUE_WORK:
      return work != nullptr ? domain.works().queue(*work) : -FI_EINVAL;
    case FI_CANCEL_WORK:
      return work != nullptr ? domain.works().cancel(*work) : -FI_EINVAL;
    case FI_FLUSH_WORK:
      return domain.works().flush(work);
    case FI_MAP_RAW_MR:
      return map_raw_key(*static_cast<const struct fi_mr_map_raw*>(argument));
    case FI_UNMAP_KEY:
      return 0;
    default:
      return -FI_ENOSYS;
  }
}

int domain_endpoint2(fid_domain* domain, fi_info* info, fid_ep** ep, std::uint64_t flags,
                     void* context) noexcept {
  return flags == 0 ? endpoint_open(domain, info, ep, context) : -FI_EOPNOTSUPP;
}

fi_ops domain_fid_ops = {
    .size = sizeof(fi_ops),
    .close = close_fid,
    .bind = domain_bind,
    .control = domain_control,
    .ops_open = open_domain_ops,
    .tostr = no_tostr,
    .ops_set = no_ops_set,
};

fi_ops_domain domain_ops = {
    .size = sizeof(fi_ops_domain),
    .av_open = av_open,
    .cq_open = cq_open,
    .endpoint = endpoint_open,
    .scalable_ep = scalable_ep_open,
    .cntr_open = cntr_open,
    .poll_open = poll_open,
    .stx_ctx = stx_open,
    .srx_ctx = srx_open,
    .query_atomic = query_atomic,
    .query_collective = not_supported<&fi_ops_domain::query_collective>,
    .endpoint2 = domain_endpoint2,
};

fi_ops_mr domain_mr_ops = {
    .size = sizeof(fi_ops_mr),
    .reg = mr_reg,
    .regv = mr_regv,
    .regattr = mr_regattr,
};

}  // namespace

Result<JobId> job_of(const std::uint8_t* auth_key, std::size_t size) {
  if (auth_key == nullptr || (size != 3 && size != 4)) return Error::Invalid;
  if (size == 4 && auth_key[0] != 0) return Error::Invalid;
  const std::uint8_t* key = auth_key + (size - 3);
  return JobId{static_cast<std::uint32_t>(key[0] << 16 | key[1] << 8 | key[2])};
}

Domain::Domain(Fabric& fabric, const fi_info& info, const Params& params, void* context)
    : fid_domain{},
      fabric_(fabric.references()),
      version_(fabric.version()),
      params_(params),
      mr_mode_(info.domain_attr->mr_mode),
      caps_(info.caps),
      job_{static_cast<std::uint32_t>(params.job_id)},
      lock_(info.domain_attr->threading != FI_THREAD_DOMAIN) {
  fid.fclass = FI_CLASS_DOMAIN;
  fid.context = context;
  fid.ops = &domain_fid_ops;
  ops = &domain_ops;
  mr = &domain_mr_ops;
}

int Domain::open_nic(const fi_info& info) {
  const auto source = source_of(info, params_);
  if (!source) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "fi_domain: the info names no usable local address\n");
    return -FI_EINVAL;
  }
  const auto format = AddressFormat::of(info.addr_format, source->fabric_address.is_ipv6);
  if (!format) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "fi_domain: addr_format is not one for the source address\n");
    return -FI_EINVAL;
  }
  format_ = *format;
  nic::NicConfig config;
  // The info says which one it was made for (nic_attr.h); FI_UET_NIC may have changed since.
  const bool named = info.nic != nullptr && info.nic->device_attr != nullptr &&
                     info.nic->device_attr->driver != nullptr;
  const std::string back_end = named ? info.nic->device_attr->driver : params_.nic;
  nic::set_back_end(config, back_end);
  config.ip = source->fabric_address;
  config.port = source->udp_port;
  config.first_port = params_.udp_port;
  config.receive_buffer_bytes = static_cast<std::uint32_t>(params_.socket_buffer_bytes);
  config.send_buffer_bytes = config.receive_buffer_bytes;
  config.source_ports = source_ports(params_);
  config.gso = params_.gso;
  config.gro = params_.gro;
  // Only to a controller that was asked for do they say something there (cms_parameters).
  config.arrival_times_on_loopback =
      params_.cc_algorithm.value_or(cms::Algorithm::None) != cms::Algorithm::None;
  config.local_rings = params_.local_rings;
  config.faults = params_.faults;
  config.crc = params_.crc;
  config.dscp_data = params_.core.pds.dscp_data;
  config.trimming = params_.core.cms.trimming;
  config.trim_marks = trim_marks(params_);
  config.pcap_file = params_.pcap;
  config.tell_way = [&back_end](const std::string& way) {
    FI_INFO(&provider, FI_LOG_DOMAIN, "FI_UET_NIC=%s: %s\n", back_end.c_str(), way.c_str());
  };
  std::string message;
  auto nic = nic::open_nic(config, message);
  if (!message.empty()) FI_WARN(&provider, FI_LOG_DOMAIN, "%s\n", message.c_str());
  if (!nic) return to_fi_errno(nic.error());
  nic_ = std::move(nic).value();
  if (!format_.can_name(av::default_address(local_address()))) {
    FI_WARN(&provider, FI_LOG_DOMAIN,
            "fi_domain: a socket address cannot name a place at a shared port: let the format of "
            "addresses be FI_ADDR_UET or FI_ADDR_STR, or use FI_UET_NIC=udp\n");
    return -FI_EADDRNOTAVAIL;
  }
  return 0;
}

int Domain::open_fep() {
  payload_mtu_ = prov::payload_mtu(params_, nic_->caps().ip_mtu);
  if (payload_mtu_ == 0) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "an MTU of %u bytes is too small for a payload of %llu\n",
            nic_->caps().ip_mtu,
            static_cast<unsigned long long>(std::max<std::uint64_t>(1024, params_.payload_mtu)));
    return -FI_EINVAL;
  }
  fep::Config config = params_.core;
  config.cms = cms_parameters(params_, *nic_, payload_mtu_);
  config.pds = pds_parameters(params_, config.cms);
  config.pds.place = place_of(local_address().port);
  config.pds.first_udp_port = params_.udp_port;
  if (config.pds.place) {
    config.pds.pdc_count = std::min(config.pds.pdc_count, pds::kPdcIdsOfPlace / 2);
  }
  config.trim_marks = recognized_trim_marks(params_);
  config.ses.payload_mtu = payload_mtu_;
  config.ses.host_copy = &placing_copy_;
  config.ses.rudi = config.ses.rudi && params_.profile == Profile::Hpc;  // SES-138
  config.ses.rendezvous = params_.profile == Profile::Hpc;
  config.ses.deferrable = params_.profile == Profile::AiFull;
  // Each endpoint's queues have their own sizes.
  config.ses.tx_messages = 65535;
  config.ses.posted_receives = std::size_t{1} << 32;
  // Room for what one endpoint may keep, beside the share that SES leaves to other traffic (1/8).
  config.buffers += config.ses.unexpected_bytes_per_context / payload_mtu_ * 8 / 7;
  config.seed = params_.seed != 0 ? params_.seed : random_seed();
  config.key_secret = random_secret();
  config.ses.key_secret = random_secret();
  // Not that of what peers see, start PSNs for example, from which they might find it.
  config.ses.seed = params_.seed != 0 ? params_.seed : random_seed();
  fep_ = std::make_unique<fep::Fep>(config, *nic_, clock_now());
  return 0;
}

int Domain::open_activity() noexcept {
  if (!timer_.open()) return -errno;
  if (params_.stats.when == StatsDump::When::Signal) stats_signal_.subscribe();
  activity_ = open_epoll(timer_.get(), stats_signal_.fd());
  return activity_.valid() ? 0 : -errno;
}

// The NIC's descriptor is watched from the first sleep on: the kernel tells who watches a socket of
// every packet, at the expense of its sender.
void Domain::prepare_sleep() {
  const nic::NoCancel no_cancel;
  if (!nic_watched_) nic_watched_ = watch(activity_, nic_->wait_fd());
  timer_.arm(!nic_watched_ || nic_->prepare_wait() ? Time{} : fep_->next_deadline());
}

int Domain::need_thread() noexcept {
  lock_.need();
  const Guard guard(lock_);
  return thread_.running() ? 0 : thread_.start(*this);
}

int Domain::open(Fabric& fabric, const fi_info& info, void* context, Domain*& out) {
  if (info.domain_attr == nullptr) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "fi_domain: the info has no domain_attr\n");
    return -FI_EINVAL;
  }
  const auto params = load_params();
  if (!params) return -FI_EINVAL;
  std::unique_ptr<Domain> domain(new Domain(fabric, info, *params, context));
  if (info.domain_attr->auth_key_size != 0) {
    const auto job = job_of(info.domain_attr->auth_key, info.domain_attr->auth_key_size);
    if (!job) {
      FI_WARN(&provider, FI_LOG_DOMAIN, "fi_domain: auth_key is not a JobID of 3 bytes\n");
      return -FI_EINVAL;
    }
    domain->job_ = job.value();
    domain->auth_job_ = job.value();
  }
  int result = domain->open_nic(info);
  if (result == 0) result = domain->open_fep();
  if (result == 0) result = domain->open_activity();
  if (result == 0 && wants_thread(*info.domain_attr)) result = domain->need_thread();
  if (result != 0) return result;
  ForkRegistry::instance().add(*domain);
  out = domain.release();
  return 0;
}

int Domain::close() noexcept {
  const nic::NoCancel no_cancel;
  if (references_.any()) return -FI_EBUSY;
  if (!dead()) {
    thread_.stop();
    const Guard guard(lock_);
    linger([&] { return fep_->ses().idle(); });  // senders that wait for what nobody received
    fep_->begin_close(clock_now());
    linger([&] { return fep_->closed(); });
    if (params_.stats.when == StatsDump::When::Exit) write_stats("closed");
  }
  ForkRegistry::instance().remove(*this);
  delete this;
  return 0;
}

void Domain::write_stats(const char* why) noexcept {
  guarded([&] {
    prov::write_stats(params_.stats, local_address(), why, fep_->stats());
    return 0;
  });
}

// Other threads may still run, and one may have ended with the lock in its hands.
void Domain::write_stats_at_exit() noexcept {
  ForkRegistry& registry = ForkRegistry::instance();
  const std::lock_guard guard(registry.mutex);
  for (Domain& domain : registry.domains) {
    const bool stats = domain.params_.stats.when == StatsDump::When::Exit;
    if (domain.dead() || !stats) continue;
    if (!domain.lock_.try_lock_for_a_while()) {
      FI_WARN(&provider, FI_LOG_DOMAIN, "FI_UET_STATS: a thread is busy in a domain at exit\n");
      continue;
    }
    domain.write_stats("process ends");
    domain.lock_.unlock();
  }
}

bool Domain::mr_mode_has(int bit) const {
  constexpr int kBasicBits = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  if (mr_mode_ == kMrBasic) return (bit & kBasicBits) != 0;
  return mr_mode_ != kMrScalable && (mr_mode_ & bit) != 0;
}

// Of what happens to a domain only registrations have events, when they are asked for.
int Domain::bind(struct fid& other, std::uint64_t flags) {
  if (other.fclass != FI_CLASS_EQ || (flags & ~kRegMr) != 0) {
    FI_WARN(&provider, FI_LOG_DOMAIN, "fi_domain_bind: an EQ, with flags 0 or FI_REG_MR\n");
    return -FI_EINVAL;
  }
  Eq& eq = Eq::from(&other);
  if (const int result = eq_.open(eq, *this); result != 0) return result;
  if ((flags & kRegMr) != 0) registration_eq_ = &eq;
  return 0;
}

void Domain::registered(fid_mr& mr) {
  if (registration_eq_ == nullptr) return;
  fi_eq_entry entry{};
  entry.fid = &mr.fid;
  entry.context = mr.fid.context;
  registration_eq_->write(FI_MR_COMPLETE, &entry, sizeof entry);
}

void Domain::rest(Time until) {
  const nic::NoCancel no_cancel;
  if (nic_->prepare_wait()) return;
  const Time deadline = std::min(until, fep_->next_deadline());
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock_now());
  pollfd poll_fd{.fd = nic_->wait_fd(), .events = POLLIN, .revents = 0};
  lock_.unlock();
  ::poll(&poll_fd, 1, static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, 10)));
  lock_.lock();
}

Result<ResourceIndex> Domain::take_resource_indices(std::optional<ResourceIndex> wanted,
                                                    std::size_t count) {
  const auto can_begin = [&](std::size_t index) {
    const ResourceIndex candidate{static_cast<std::uint16_t>(index)};
    return wanted || format_.can_name(av::default_address(local_address(), candidate));
  };
  std::size_t first = wanted ? wanted->value : av::kFirstResourceIndex.value;
  for (std::size_t free = 0; free < count;) {
    if (first + free >= indices_.size()) return Error::NoMemory;
    if (!indices_[first + free] && (free > 0 || can_begin(first))) {
      ++free;
    } else if (wanted) {
      return Error::AddressInUse;
    } else {
      first += free + 1;
      free = 0;
    }
  }
  for (std::size_t i = 0; i < count; ++i) indices_.set(first + i);
  return ResourceIndex{static_cast<std::uint16_t>(first)};
}

void Domain::give_back(ResourceIndex first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) indices_.reset(first.value + i);
}

int domain_open(fid_fabric* fabric, fi_info* info, fid_domain** domain, void* context) noexcept {
  return guarded([&] {
    Domain* opened = nullptr;
    const int result = Domain::open(Fabric::from(fabric), *info, context, opened);
    if (result == 0) *domain = opened;
    return result;
  });
}

}  // namespace uet::prov
