// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "connection.h"

#include <poll.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace uet::copy {
namespace {

constexpr unsigned kReceives = 32;
constexpr int kNapMs = 20;
constexpr std::chrono::seconds kPatience{30};  // for the answer to a connection request

template <class Fid, class Call>
void open(Owned<Fid>& out, const char* what, Call call) {
  Fid* object = nullptr;
  check(call(&object), what);
  out.reset(object);
}

int wait_fd(fid& object) {
  int fd = -1;
  return fi_control(&object, FI_GETWAIT, &fd) == 0 ? fd : -1;
}

[[noreturn]] void broken(const std::string& why) {
  throw Failure(Status::NoConnection, "the connection broke: " + why);
}

}  // namespace

ssize_t check(ssize_t result, const std::string& what) {
  if (result < 0) {
    throw Failure(Status::Failed, what + ": " + fi_strerror(static_cast<int>(-result)));
  }
  return result;
}

Info find_info(const char* host, const std::string& service, std::uint64_t flags,
               const std::string& provider, bool with_devices) {
  const Info hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_MSG;
  hints->caps = FI_MSG | FI_RMA;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  if (with_devices) {
    hints->caps |= FI_HMEM;
    hints->domain_attr->mr_mode |= FI_MR_HMEM;
  }
  hints->domain_attr->threading = FI_THREAD_SAFE;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());  // fi_freeinfo frees it
  fi_info* found = nullptr;
  const int result =
      fi_getinfo(FI_VERSION(1, 17), host, service.c_str(), flags, hints.get(), &found);
  if (result != 0) {
    throw Failure(Status::NoConnection,
                  "provider " + provider + " finds no way to " +
                      (host == nullptr ? std::string("the network") : std::string(host)) +
                      " port " + service + ": " + fi_strerror(-result));
  }
  return Info(found);
}

std::optional<CmEvent> read_event(fid_eq& eq) {
  alignas(fi_eq_cm_entry) std::array<std::byte, 1024> buffer{};
  CmEvent event;
  const ssize_t result = fi_eq_read(&eq, &event.number, buffer.data(), buffer.size(), 0);
  if (result == -FI_EAGAIN) return {};
  if (result == -FI_EAVAIL) {
    std::array<char, 1024> data{};
    fi_eq_err_entry error{};
    error.err_data = data.data();
    error.err_data_size = data.size();
    check(fi_eq_readerr(&eq, &error, 0), "fi_eq_readerr");
    event.number = 0;
    event.error = error.err;
    event.data.assign(data.data(), std::min(error.err_data_size, data.size()));
    return event;
  }
  check(result, "fi_eq_read");
  fi_eq_cm_entry head{};
  const std::size_t front = offsetof(fi_eq_cm_entry, data);
  const auto bytes = static_cast<std::size_t>(result);
  if (bytes < front) return {};
  std::memcpy(&head, buffer.data(), front);
  event.info.reset(head.info);
  event.data.assign(reinterpret_cast<const char*>(buffer.data()) + front, bytes - front);
  return event;
}

Connection::Connection(fid_fabric& fabric, fi_info& info, std::uint32_t slot_bytes,
                       std::uint32_t slots, Gpu* gpu)
    : fabric_(fabric), gpu_(gpu), slot_bytes_(slot_bytes), count_(slots) {
  const std::size_t bytes = std::size_t{slot_bytes} * slots;
  if (gpu != nullptr) {
    memory_ = gpu->allocate(bytes);
  } else {
    void* memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw Failure(Status::Failed, "no memory for the slots");
    memory_ = static_cast<std::byte*>(memory);
  }
  try {
    open_objects(info, bytes);
  } catch (...) {
    free_memory();
    throw;
  }
}

void Connection::open_objects(fi_info& info, std::size_t bytes) {
  open(domain_, "fi_domain", [&](auto** out) { return fi_domain(&fabric_, &info, out, nullptr); });
  fi_eq_attr eq_attr{};
  eq_attr.wait_obj = FI_WAIT_FD;
  open(eq_, "fi_eq_open", [&](auto** out) { return fi_eq_open(&fabric_, &eq_attr, out, nullptr); });
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_DATA;
  cq_attr.wait_obj = FI_WAIT_FD;
  open(cq_, "fi_cq_open",
       [&](auto** out) { return fi_cq_open(domain_.get(), &cq_attr, out, nullptr); });
  const iovec all{memory_, bytes};
  fi_mr_attr attr{};
  attr.mr_iov = &all;
  attr.iov_count = 1;
  attr.access = FI_WRITE | FI_REMOTE_WRITE;
  attr.requested_key = 1;
  attr.iface = gpu_ != nullptr ? FI_HMEM_CUDA : FI_HMEM_SYSTEM;
  if (gpu_ != nullptr) attr.device.cuda = gpu_->device();
  open(region_, "fi_mr_regattr",
       [&](auto** out) { return fi_mr_regattr(domain_.get(), &attr, 0, out); });
  virtual_addresses_ = (info.domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  open(ep_, "fi_endpoint",
       [&](auto** out) { return fi_endpoint(domain_.get(), &info, out, nullptr); });
  check(fi_ep_bind(ep_.get(), &eq_->fid, 0), "binding the event queue");
  check(fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), "binding the completion queue");
  check(fi_enable(ep_.get()), "fi_enable");
  receives_.assign(kReceives, Bytes(kMessageBytes));
  for (unsigned i = 0; i < kReceives; ++i) post_receive(i);
}

Connection::~Connection() { free_memory(); }

// Afterwards the provider uses the memory no more.
void Connection::free_memory() noexcept {
  ep_.reset();
  region_.reset();
  if (gpu_ != nullptr) {
    gpu_->free(memory_);
  } else {
    ::munmap(memory_, std::size_t{slot_bytes_} * count_);
  }
}

std::span<std::byte> Connection::slot(unsigned index) {
  return {memory_ + std::size_t{index} * slot_bytes_, slot_bytes_};
}

Slots Connection::own_slots() const {
  return {.address = virtual_addresses_ ? reinterpret_cast<std::uintptr_t>(memory_) : 0,
          .key = fi_mr_key(region_.get()),
          .bytes = slot_bytes_,
          .count = count_};
}

std::optional<CmEvent> Connection::next_event() {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < kPatience) {
    if (std::optional<CmEvent> event = read_event(*eq_)) return event;
    wait(-1);
  }
  return {};
}

Welcome Connection::connect(const void* address, const Hello& hello, const std::string& what) {
  check(fi_connect(ep_.get(), address, &hello, sizeof hello), "connecting to " + what);
  const std::optional<CmEvent> event = next_event();
  if (!event) throw Failure(Status::NoConnection, what + ": no answer");
  if (event->number == FI_CONNECTED) return parse_welcome(event->data, hello.slots);
  if (event->number != 0) throw Failure(Status::NoConnection, what + ": the connection ended");
  // A server says why it refuses.
  if (event->data.size() >= sizeof(std::uint32_t)) {
    Status status{};
    std::memcpy(&status, event->data.data(), sizeof status);
    if (status == Status::Done || status > Status::BadPeer) status = Status::Failed;
    throw Failure(status, what + " refuses: " + event->data.substr(sizeof status));
  }
  throw Failure(Status::NoConnection,
                what + ": " + fi_strerror(event->error) + "; is uet_copy --serve running there?");
}

void Connection::accept() {
  const Welcome welcome{.slots = own_slots()};
  check(fi_accept(ep_.get(), &welcome, sizeof welcome), "fi_accept");
  const std::optional<CmEvent> event = next_event();
  if (!event || event->number != FI_CONNECTED) broken("the client has gone");
}

void Connection::post_receive(unsigned index) {
  Bytes& buffer = receives_[index];
  check(fi_recv(ep_.get(), buffer.data(), buffer.size(), nullptr, FI_ADDR_UNSPEC, &buffer),
        "fi_recv");
}

void Connection::send(const Message& message) {
  sending_.push_back({.bytes = encode(message)});
  post_all();
}

void Connection::write_slot(unsigned index, std::size_t bytes) {
  writes_.push_back({index, bytes});
  post_all();
}

void Connection::post_all() {
  // A write behind the message that explains it, and a message behind the write that it is about:
  // the caller sees to the order by waiting, except that Open comes before its pieces.
  for (Outgoing& out : sending_) {
    if (out.posted) continue;
    const ssize_t result =
        fi_send(ep_.get(), out.bytes.data(), out.bytes.size(), nullptr, FI_ADDR_UNSPEC, &out);
    if (result == -FI_EAGAIN) return;
    if (result != 0) broken(fi_strerror(static_cast<int>(-result)));
    out.posted = true;
  }
  while (!writes_.empty()) {
    const Write& next = writes_.front();
    std::span<std::byte> bytes = slot(next.slot);
    const ssize_t result =
        fi_writedata(ep_.get(), bytes.data(), next.bytes, fi_mr_desc(region_.get()), next.slot,
                     FI_ADDR_UNSPEC, peer_slots_.address + std::uint64_t{next.slot} * slot_bytes_,
                     peer_slots_.key, bytes.data());
    if (result == -FI_EAGAIN) return;
    if (result != 0) broken(fi_strerror(static_cast<int>(-result)));
    writes_.pop_front();
  }
}

void Connection::fail_operation() {
  fi_cq_err_entry error{};
  check(fi_cq_readerr(cq_.get(), &error, 0), "fi_cq_readerr");
  if (error.err == FI_ETRUNC) {
    throw Failure(Status::BadPeer, "the peer broke the protocol: a message is too long");
  }
  broken(fi_strerror(error.err));
}

void Connection::read_queue(News& news) {
  std::array<fi_cq_data_entry, 32> entries{};
  const ssize_t count = fi_cq_read(cq_.get(), entries.data(), entries.size());
  if (count == -FI_EAGAIN) return;
  if (count == -FI_EAVAIL) fail_operation();
  check(count, "fi_cq_read");
  for (ssize_t i = 0; i < count; ++i) {
    const fi_cq_data_entry& entry = entries[static_cast<std::size_t>(i)];
    if ((entry.flags & FI_RECV) != 0) {
      auto* buffer = static_cast<Bytes*>(entry.op_context);
      news.messages.push_back(decode(std::span(*buffer).first(entry.len)));
      post_receive(static_cast<unsigned>(buffer - receives_.data()));
    } else if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
      news.arrived.push_back(entry.data);
    } else if ((entry.flags & FI_WRITE) != 0) {
      const auto offset =
          static_cast<std::size_t>(static_cast<std::byte*>(entry.op_context) - memory_);
      news.written.push_back(static_cast<unsigned>(offset / slot_bytes_));
    } else {
      sending_.remove_if([&](const Outgoing& out) { return &out == entry.op_context; });
    }
  }
}

void Connection::poll(News& news) {
  if (!kept_.empty()) news = std::exchange(kept_, {});
  read_queue(news);
  post_all();
  if (!over_ && !read_event(*eq_)) return;
  over_ = true;
  // The last messages of the peer may still be in the queue.
  if (news.empty()) read_queue(news);
  if (news.empty()) broken("the peer has gone");
}

void Connection::wait(int other_fd) {
  std::array<fid*, 2> fids{&cq_->fid, &eq_->fid};
  if (fi_trywait(&fabric_, fids.data(), static_cast<int>(fids.size())) != FI_SUCCESS) return;
  std::array<pollfd, 3> fds{{{wait_fd(cq_->fid), POLLIN, 0},
                             {wait_fd(eq_->fid), POLLIN, 0},
                             {other_fd, POLLIN, 0}}};  // a negative one is left out
  ::poll(fds.data(), fds.size(), kNapMs);
}

}  // namespace uet::copy
