// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Active messages by libfabric: a message names the function that handles it at the receiver. Short
// ones travel with their header into a ring of multi-receive buffers, where the handler may keep
// them; of long ones only the header travels, and the receiver reads the data (fi_read) into memory
// of the handler's choice. Senders need not be known: FI_SOURCE_ERR says who they are.
//
//   active_messages --server                on one machine, until SIGTERM
//   active_messages --client ADDRESS        on another: sends 0 B to 16 MiB, and checks the answers
//   --threads N (1; client: senders, each with an endpoint of its own)  --rounds N (20, of all
//   sizes)
//   --ring BYTES (1048576; of each of the two buffers of the ring)
//   --provider NAME (uet)  --port PORT (7475, TCP: the server's address)
//
// The exit status of the client is 0 if the server has answered each message with its right sum.
#include <rdma/fi_rma.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "common.h"

namespace {

using example::check;
using example::Introduction;
using example::Owned;
using example::Socket;

constexpr std::size_t kShort = 8192;  // longest message that travels with its header
constexpr std::size_t kRingBuffers = 2;
constexpr std::size_t kMostKept = 64;                     // messages that the server answers later
constexpr std::size_t kMostBytes = std::size_t{1} << 30;  // of a message; longer ones are refused

using Bytes = std::vector<std::byte>;

// In front of each message.
struct Header {
  std::uint16_t id = 0;  // of the handler
  std::uint16_t kind = 0;
  std::uint32_t reserved = 0;
  std::uint64_t number = 0;  // of a long message at its sender
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;  // of a long message, for fi_read
  std::uint64_t key = 0;
};
enum : std::uint16_t { kWhole, kLong, kTaken };

// One endpoint that sends and receives active messages. For one thread.
class Messenger {
 public:
  // Held as long as the bytes of a short message are needed.
  using Lease = std::shared_ptr<void>;
  struct Message {
    fi_addr_t from = FI_ADDR_UNSPEC;
    std::span<const std::byte> data;
    Lease lease;  // empty for a long message: its memory is the handler's own
  };
  struct Handler {
    std::function<void(const Message&)> on_message;
    std::function<std::span<std::byte>(std::size_t bytes)> memory;  // for a long message
  };

  Messenger(const std::string& provider, const std::string& local_host, std::size_t ring_bytes);
  ~Messenger() { ep_.reset(); }  // afterwards the provider uses no memory of the members

  Introduction introduce();
  fi_addr_t meet(const Introduction& peer) { return insert(peer.name.data()); }
  void handle(std::uint16_t id, Handler handler) { handlers_[id] = std::move(handler); }
  // Short data are copied; long data must stay until progress() has seen that the peer took them.
  void send(fi_addr_t to, std::uint16_t id, std::span<const std::byte> data);
  void progress();
  // Messages that have left, or long ones that the peer has not taken yet, count.
  std::size_t outstanding() const { return operations_.size() + waiting_.size(); }
  std::uint64_t failed() const { return failed_; }

 private:
  struct Operation {
    enum { kSend, kRead } kind = kSend;
    Bytes packet;  // of a send
    bool posted = false;
    fi_addr_t peer = FI_ADDR_UNSPEC;
    Header header;  // of the long message that is read
    std::span<std::byte> into;
    Owned<fid_mr> region;
  };
  struct Ring {
    Bytes bytes;
    Owned<fid_mr> region;
    Lease lease;  // this side's, while the provider has the buffer
    std::weak_ptr<void> leases;
    bool posted = false;
  };

  fi_addr_t insert(const void* name) {
    fi_addr_t address = FI_ADDR_UNSPEC;
    if (fi_av_insert(av_.get(), name, 1, &address, 0, nullptr) != 1) example::fail("fi_av_insert");
    return address;
  }
  Owned<fid_mr> register_memory(const void* memory, std::size_t bytes, std::uint64_t access) {
    fid_mr* region = nullptr;
    check(fi_mr_reg(domain_.get(), memory, bytes, access, 0, ++last_key_, 0, &region, nullptr),
          "fi_mr_reg");
    return Owned<fid_mr>(region);
  }
  void post_ring();
  void post_operations();
  void post_packet(fi_addr_t to, const Header& header, std::span<const std::byte> data);
  void on_bytes(Ring& ring, const std::byte* at, std::size_t bytes, fi_addr_t from);
  void on_done(void* context, bool well);
  void on_error();

  std::unique_ptr<fi_info, void (*)(fi_info*)> info_{nullptr, &fi_freeinfo};
  Owned<fid_fabric> fabric_;
  Owned<fid_domain> domain_;
  Owned<fid_cq> cq_;
  Owned<fid_av> av_;
  Owned<fid_ep> ep_;
  std::map<std::uint16_t, Handler> handlers_;
  std::array<Ring, kRingBuffers> rings_;
  std::list<Operation> operations_;
  std::map<std::uint64_t, Owned<fid_mr>> waiting_;  // long messages that the peer has yet to take
  std::uint64_t last_number_ = 0;
  std::uint64_t last_key_ = 0;
  std::uint64_t failed_ = 0;
};

Messenger::Messenger(const std::string& provider, const std::string& local_host,
                     std::size_t ring_bytes) {
  const std::unique_ptr<fi_info, void (*)(fi_info*)> hints(fi_allocinfo(), &fi_freeinfo);
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | FI_RMA | FI_MULTI_RECV | FI_SOURCE | FI_SOURCE_ERR;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  hints->fabric_attr->prov_name = ::strdup(provider.c_str());  // fi_freeinfo frees it
  fi_info* found = nullptr;
  check(fi_getinfo(FI_VERSION(1, 17), local_host.c_str(), nullptr, FI_SOURCE, hints.get(), &found),
        "fi_getinfo");
  info_.reset(found);
  const auto open = [](auto& out, const char* what, auto call) {
    typename std::remove_reference_t<decltype(out)>::pointer object = nullptr;
    check(call(&object), what);
    out.reset(object);
  };
  open(fabric_, "fi_fabric",
       [&](auto** out) { return fi_fabric(info_->fabric_attr, out, nullptr); });
  open(domain_, "fi_domain",
       [&](auto** out) { return fi_domain(fabric_.get(), info_.get(), out, nullptr); });
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_DATA;
  open(cq_, "fi_cq_open",
       [&](auto** out) { return fi_cq_open(domain_.get(), &cq_attr, out, nullptr); });
  fi_av_attr av_attr{};
  av_attr.type = FI_AV_TABLE;
  open(av_, "fi_av_open",
       [&](auto** out) { return fi_av_open(domain_.get(), &av_attr, out, nullptr); });
  open(ep_, "fi_endpoint",
       [&](auto** out) { return fi_endpoint(domain_.get(), info_.get(), out, nullptr); });
  check(fi_ep_bind(ep_.get(), &av_->fid, 0), "binding the address vector");
  check(fi_ep_bind(ep_.get(), &cq_->fid, FI_TRANSMIT | FI_RECV), "binding the completion queue");
  // A buffer is given back when less than that is left of it.
  std::size_t least = sizeof(Header) + kShort;
  check(fi_setopt(&ep_->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least),
        "FI_OPT_MIN_MULTI_RECV");
  check(fi_enable(ep_.get()), "fi_enable");
  for (Ring& ring : rings_) {
    ring.bytes.resize(ring_bytes);
    ring.region = register_memory(ring.bytes.data(), ring_bytes, FI_RECV);
  }
  post_ring();
}

Introduction Messenger::introduce() {
  Introduction introduction;
  std::size_t bytes = introduction.name.size();
  check(fi_getname(&ep_->fid, introduction.name.data(), &bytes), "fi_getname");
  introduction.name_bytes = bytes;
  return introduction;
}

// Buffers that the provider has given back, and of which no handler keeps a message.
void Messenger::post_ring() {
  for (Ring& ring : rings_) {
    if (ring.posted || !ring.leases.expired()) continue;
    iovec part{ring.bytes.data(), ring.bytes.size()};
    void* descriptor = fi_mr_desc(ring.region.get());
    fi_msg message{};
    message.msg_iov = &part;
    message.desc = &descriptor;
    message.iov_count = 1;
    message.addr = FI_ADDR_UNSPEC;
    message.context = &ring;
    const ssize_t result = fi_recvmsg(ep_.get(), &message, FI_MULTI_RECV);
    if (result == -FI_EAGAIN) return;
    check(result, "fi_recvmsg");
    ring.posted = true;
    ring.lease = std::make_shared<char>();
    ring.leases = ring.lease;
  }
}

void Messenger::post_packet(fi_addr_t to, const Header& header, std::span<const std::byte> data) {
  Operation& operation = operations_.emplace_back();
  operation.peer = to;
  operation.packet.resize(sizeof header + data.size());
  std::memcpy(operation.packet.data(), &header, sizeof header);
  std::copy(data.begin(), data.end(), operation.packet.begin() + sizeof header);
  operation.region = register_memory(operation.packet.data(), operation.packet.size(), FI_SEND);
  post_operations();
}

void Messenger::send(fi_addr_t to, std::uint16_t id, std::span<const std::byte> data) {
  Header header{.id = id,
                .kind = kWhole,
                .reserved = 0,
                .number = ++last_number_,
                .bytes = data.size(),
                .address = 0,
                .key = 0};
  if (data.size() <= kShort) {
    post_packet(to, header, data);
    return;
  }
  Owned<fid_mr> region = register_memory(data.data(), data.size(), FI_REMOTE_READ);
  header.kind = kLong;
  header.key = fi_mr_key(region.get());
  const bool virtual_addresses = (info_->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
  if (virtual_addresses) header.address = reinterpret_cast<std::uintptr_t>(data.data());
  waiting_[header.number] = std::move(region);
  post_packet(to, header, {});
}

void Messenger::post_operations() {
  for (Operation& one : operations_) {
    if (one.posted) continue;
    void* descriptor = one.region ? fi_mr_desc(one.region.get()) : nullptr;
    const ssize_t result =
        one.kind == Operation::kSend
            ? fi_send(ep_.get(), one.packet.data(), one.packet.size(), descriptor, one.peer, &one)
            : fi_read(ep_.get(), one.into.data(), one.into.size(), descriptor, one.peer,
                      one.header.address, one.header.key, &one);
    if (result == -FI_EAGAIN) return;
    check(result, "posting a message");
    one.posted = true;
  }
}

void Messenger::on_bytes(Ring& ring, const std::byte* at, std::size_t bytes, fi_addr_t from) {
  Header header;
  if (bytes < sizeof header) return;  // not of this program
  std::memcpy(&header, at, sizeof header);
  if (header.kind == kTaken) {
    waiting_.erase(header.number);
    return;
  }
  const auto found = handlers_.find(header.id);
  if (found == handlers_.end()) return;
  if (header.kind == kWhole) {
    if (header.bytes != bytes - sizeof header) return;
    found->second.on_message({from, std::span(at, bytes).subspan(sizeof header), ring.lease});
    return;
  }
  if (header.kind != kLong || header.bytes == 0 || header.bytes > kMostBytes) return;
  Operation& read = operations_.emplace_back();
  read.kind = Operation::kRead;
  read.peer = from;
  read.header = header;
  read.into = found->second.memory(header.bytes);
  read.region = register_memory(read.into.data(), read.into.size(), FI_READ);
}

void Messenger::on_done(void* context, bool well) {
  const auto one = std::find_if(operations_.begin(), operations_.end(),
                                [&](const Operation& operation) { return &operation == context; });
  if (one == operations_.end()) return;
  // Taken out first: the handler may send.
  std::list<Operation> ended;
  ended.splice(ended.begin(), operations_, one);
  failed_ += well ? 0 : 1;
  if (one->kind == Operation::kSend || !well) return;
  handlers_[one->header.id].on_message({one->peer, one->into, {}});
  post_packet(one->peer,
              {.id = 0,
               .kind = kTaken,
               .reserved = 0,
               .number = one->header.number,
               .bytes = 0,
               .address = 0,
               .key = 0},
              {});
}

// An operation that failed, for example to a peer that has died; or the first message of a sender.
void Messenger::on_error() {
  std::array<std::byte, 64> name{};
  fi_cq_err_entry error{};
  error.err_data = name.data();
  error.err_data_size = name.size();
  check(fi_cq_readerr(cq_.get(), &error, 0), "fi_cq_readerr");
  for (Ring& ring : rings_) {
    if (error.op_context != &ring) continue;
    if (error.err == FI_EADDRNOTAVAIL) {
      on_bytes(ring, static_cast<std::byte*>(error.buf), error.len, insert(name.data()));
    } else {
      ++failed_;
    }
    if ((error.flags & FI_MULTI_RECV) != 0) {
      ring.posted = false;
      ring.lease.reset();
    }
    return;
  }
  on_done(error.op_context, false);
}

void Messenger::progress() {
  std::array<fi_cq_data_entry, 16> entries{};
  std::array<fi_addr_t, 16> sources{};
  const ssize_t count = fi_cq_readfrom(cq_.get(), entries.data(), entries.size(), sources.data());
  if (count == -FI_EAVAIL) {
    on_error();
  } else if (count != -FI_EAGAIN) {
    check(count, "fi_cq_readfrom");
    for (ssize_t i = 0; i < count; ++i) {
      const fi_cq_data_entry& entry = entries[static_cast<std::size_t>(i)];
      if ((entry.flags & FI_RECV) == 0) {
        on_done(entry.op_context, true);
        continue;
      }
      auto& ring = *static_cast<Ring*>(entry.op_context);
      if (entry.len > 0) {
        on_bytes(ring, static_cast<std::byte*>(entry.buf), entry.len,
                 sources[static_cast<std::size_t>(i)]);
      }
      if ((entry.flags & FI_MULTI_RECV) != 0) {
        ring.posted = false;
        ring.lease.reset();
      }
    }
  }
  post_operations();
  post_ring();
}

// ---- the program -------------------------------------------------------------------------------

struct Options {
  bool server = false;
  std::string client_of;
  std::string provider = "uet";
  std::string port = "7475";
  std::uint64_t threads = 1;
  std::uint64_t rounds = 20;
  std::uint64_t ring = 1 << 20;
};

enum : std::uint16_t { kSum = 1, kAnswer = 2 };  // handlers

struct Answer {
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;
};

Answer answer_to(std::span<const std::byte> data) {
  Answer answer{data.size(), 0xcbf29ce484222325};
  for (const std::byte byte : data) {
    answer.sum = (answer.sum ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
  }
  return answer;
}

volatile std::sig_atomic_t ended = 0;

int run_server(const Options& options) {
  std::signal(SIGTERM, [](int) { ended = 1; });
  const Socket listener = Socket::listen_on(options.port);
  std::unique_ptr<Messenger> messenger;
  std::deque<Messenger::Message> kept;  // answered later, from their place in the ring
  std::list<Bytes> memories;
  std::uint64_t handled = 0;
  const auto reply = [&](fi_addr_t to, std::span<const std::byte> data) {
    const Answer answer = answer_to(data);
    messenger->send(to, kAnswer, std::as_bytes(std::span(&answer, 1)));
    ++handled;
  };
  for (std::uint64_t round = 0; ended == 0; ++round) {
    if (round % 256 == 0 && listener.has_client()) {
      Socket socket = listener.accept();
      if (messenger == nullptr) {
        messenger =
            std::make_unique<Messenger>(options.provider, socket.local_host(), options.ring);
        messenger->handle(kSum, {[&](const Messenger::Message& message) {
                                   if (message.lease) {
                                     kept.push_back(message);
                                     return;
                                   }
                                   reply(message.from, message.data);
                                   memories.remove_if([&](const Bytes& memory) {
                                     return memory.data() == message.data.data();
                                   });
                                 },
                                 [&](std::size_t bytes) -> std::span<std::byte> {
                                   return memories.emplace_back(bytes);
                                 }});
      }
      socket.send(messenger->introduce());
    }
    if (messenger == nullptr) continue;
    messenger->progress();
    // Late, so that messages really wait in the ring.
    while (kept.size() > kMostKept || (!kept.empty() && round % 512 == 0)) {
      const Messenger::Message next = std::move(kept.front());
      kept.pop_front();
      reply(next.from, next.data);
    }
  }
  std::printf("%llu messages handled, %llu operations failed\n",
              static_cast<unsigned long long>(handled),
              static_cast<unsigned long long>(messenger ? messenger->failed() : 0));
  return 0;
}

// One sender: all sizes, one message at a time, then many short ones at once.
void run_sender(const Options& options, std::uint64_t seed) {
  Socket socket = Socket::connect_to(options.client_of, options.port);
  Messenger messenger(options.provider, socket.local_host(), options.ring);
  const fi_addr_t server = messenger.meet(socket.receive<Introduction>());
  std::deque<Answer> expected;
  std::uint64_t wrong = 0;
  messenger.handle(kAnswer, {[&](const Messenger::Message& message) {
                               Answer answer;
                               if (message.data.size() != sizeof answer || expected.empty()) {
                                 ++wrong;
                                 return;
                               }
                               std::memcpy(&answer, message.data.data(), sizeof answer);
                               const auto one = std::find_if(
                                   expected.begin(), expected.end(), [&](const Answer& other) {
                                     return other.bytes == answer.bytes && other.sum == answer.sum;
                                   });
                               if (one == expected.end()) {
                                 ++wrong;
                               } else {
                                 expected.erase(one);
                               }
                             },
                             {}});
  const auto wait = [&](std::size_t most) {
    const auto start = std::chrono::steady_clock::now();
    while (expected.size() > most || (most == 0 && messenger.outstanding() > 0)) {
      messenger.progress();
      if (std::chrono::steady_clock::now() - start > example::kPatience) {
        example::fail("no answer");
      }
    }
  };
  Bytes data(std::size_t{16} << 20);
  for (std::size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<std::byte>(i * 13 + i / 251 + seed);
  }
  const auto send = [&](std::span<const std::byte> bytes) {
    expected.push_back(answer_to(bytes));
    messenger.send(server, kSum, bytes);
  };
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kShort - 1, kShort, kShort + 1,
                                  std::size_t{1} << 20, data.size()}) {
    send(std::span(data).first(bytes));
    wait(0);
  }
  for (std::uint64_t round = 0; round < options.rounds; ++round) {
    for (std::size_t bytes = 8; bytes <= 65536; bytes *= 2) {
      send(std::span(data).subspan(round, bytes));
      wait(64);
    }
  }
  wait(0);
  if (wrong > 0) example::fail("wrong answers");
  if (messenger.failed() > 0) example::fail("operations failed");
}

int run_client(const Options& options) {
  std::vector<std::thread> threads;
  std::vector<std::string> errors(options.threads);
  for (std::uint64_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&options, &errors, i] {
      try {
        run_sender(options, i);
      } catch (const std::exception& error) {
        errors[i] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) {
    if (error.empty()) continue;
    std::fprintf(stderr, "active_messages: %s\n", error.c_str());
    return 1;
  }
  std::printf("all right\n");
  return 0;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--server") {
      options.server = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string_view value = argv[i];
    std::uint64_t* number = nullptr;
    if (name == "--client") {
      options.client_of = value;
    } else if (name == "--provider") {
      options.provider = value;
    } else if (name == "--port") {
      options.port = value;
    } else if (name == "--threads") {
      number = &options.threads;
    } else if (name == "--ring") {
      number = &options.ring;
    } else if (name == "--rounds") {
      number = &options.rounds;
    } else {
      return false;
    }
    if (number == nullptr) continue;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
    if (error != std::errc{} || end != value.data() + value.size()) return false;
  }
  return options.server == options.client_of.empty() && options.threads > 0 &&
         options.threads <= 64 && options.ring >= 2 * (sizeof(Header) + kShort) &&
         options.ring <= kMostBytes;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "usage: active_messages --server | --client ADDRESS; see the source\n");
    return 2;
  }
  try {
    return options.server ? run_server(options) : run_client(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "active_messages: %s\n", error.what());
    return 1;
  }
}
