// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Two processes that exchange checked tagged messages through any provider of libfabric, here lnx:
// all sizes, expected and not, named and any source, in order, peeked and discarded, with data.
//
// Use: lnx_driver PROVIDER shm|uet PORT [ADDRESS]   what is to carry them; without ADDRESS the
// first
//                    process, which waits for the second one; names are exchanged over TCP.
// Ends with 77, saying why, where libfabric has no such provider.
#include <arpa/inet.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Bytes = std::vector<unsigned char>;

constexpr auto kPatience = std::chrono::seconds(60);
constexpr std::size_t kLargest = std::size_t{4} << 20;

[[noreturn]] void fail(const char* what, long code = 0) {
  std::fprintf(stderr, "lnx_driver: %s: %s\n", what, code != 0 ? fi_strerror(-code) : "wrong");
  std::exit(1);
}

void check(long code, const char* what) {
  if (code != 0) fail(what, code);
}

void require(bool good, const char* what) {
  if (!good) fail(what);
}

// ---- the other process, over TCP ---------------------------------------------------------------

class Line {
 public:
  Line(int port, const char* address) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    auto* name = reinterpret_cast<sockaddr*>(&to);
    if (address != nullptr) {
      require(inet_pton(AF_INET, address, &to.sin_addr) == 1, "ADDRESS");
      const auto end = Clock::now() + kPatience;
      for (;;) {
        fd_ = ::socket(AF_INET, SOCK_STREAM, 0);
        if (::connect(fd_, name, sizeof to) == 0) return;
        ::close(fd_);
        require(Clock::now() < end, "connect");
        ::usleep(50'000);
      }
    }
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    require(::bind(listener, name, sizeof to) == 0 && ::listen(listener, 1) == 0, "listen");
    fd_ = ::accept(listener, nullptr, nullptr);
    require(fd_ >= 0, "accept");
    ::close(listener);
  }
  ~Line() { ::close(fd_); }
  Line(const Line&) = delete;
  Line& operator=(const Line&) = delete;

  Bytes swap(const Bytes& mine) {
    const std::uint64_t size = mine.size();
    std::uint64_t other = 0;
    put(&size, sizeof size);
    get(&other, sizeof other);
    Bytes theirs(other);
    put(mine.data(), mine.size());
    get(theirs.data(), theirs.size());
    return theirs;
  }
  void ring() { put("", 1); }
  bool rung() {
    pollfd wait{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, 0) != 1) return false;
    char byte = 1;
    get(&byte, 1);
    return true;
  }

 private:
  void put(const void* data, std::size_t size) {
    require(::send(fd_, data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size), "send");
  }
  void get(void* data, std::size_t size) {
    require(size == 0 || ::recv(fd_, data, size, MSG_WAITALL) == static_cast<ssize_t>(size),
            "recv");
  }

  int fd_ = -1;
};

// ---- libfabric ---------------------------------------------------------------------------------

struct Side {
  fi_info* info = nullptr;
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_ep* ep = nullptr;
  fid_cq* cq = nullptr;
  fid_av* av = nullptr;
  fi_addr_t peer = FI_ADDR_UNSPEC;
};

bool open(const char* provider, Side& side) {
  fi_info* hints = fi_allocinfo();
  hints->fabric_attr->prov_name = ::strdup(provider);
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_TAGGED | FI_DIRECTED_RECV | FI_SEND | FI_RECV;
  hints->tx_attr->msg_order = FI_ORDER_SAS;
  hints->rx_attr->msg_order = FI_ORDER_SAS;
  hints->domain_attr->threading = FI_THREAD_DOMAIN;
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  const int found = fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints, &side.info);
  fi_freeinfo(hints);
  if (found == -FI_ENODATA) return false;
  check(found, "fi_getinfo");
  check(fi_fabric(side.info->fabric_attr, &side.fabric, nullptr), "fi_fabric");
  check(fi_domain(side.fabric, side.info, &side.domain, nullptr), "fi_domain");
  fi_cq_attr cq{};
  cq.format = FI_CQ_FORMAT_TAGGED;
  cq.size = 1024;
  check(fi_cq_open(side.domain, &cq, &side.cq, nullptr), "fi_cq_open");
  fi_av_attr av{};
  av.type = FI_AV_TABLE;
  check(fi_av_open(side.domain, &av, &side.av, nullptr), "fi_av_open");
  check(fi_endpoint(side.domain, side.info, &side.ep, nullptr), "fi_endpoint");
  check(fi_ep_bind(side.ep, &side.av->fid, 0), "bind AV");
  check(fi_ep_bind(side.ep, &side.cq->fid, FI_TRANSMIT | FI_RECV), "bind CQ");
  check(fi_enable(side.ep), "fi_enable");
  return true;
}

Bytes name_of(const Side& side) {
  std::size_t length = 0;
  require(fi_getname(&side.ep->fid, nullptr, &length) == -FI_ETOOSMALL, "fi_getname");
  Bytes name(length);
  check(fi_getname(&side.ep->fid, name.data(), &length), "fi_getname");
  return name;
}

void close(Side& side) {
  check(fi_close(&side.ep->fid), "close endpoint");
  check(fi_close(&side.cq->fid), "close CQ");
  check(fi_close(&side.av->fid), "close AV");
  check(fi_close(&side.domain->fid), "close domain");
  check(fi_close(&side.fabric->fid), "close fabric");
  fi_freeinfo(side.info);
}

// ---- the exchange ------------------------------------------------------------------------------

unsigned char byte_at(std::size_t place, std::uint64_t tag) {
  return static_cast<unsigned char>(place * 131 + (place >> 8) * 17 + tag * 29);
}

Bytes message(std::size_t size, std::uint64_t tag) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_at(i, tag);
  return bytes;
}

class Exchange {
 public:
  Exchange(Side& side, Line& line, bool first) : side_(side), line_(line), first_(first) {}

  // Runs both ways, with a meeting in between.
  template <class Test>
  void both_ways(const char* what, Test test) {
    test(first_);
    meet();
    test(!first_);
    meet();
    if (first_) std::printf("ok: %s\n", what);
  }
  // Waits for the other process and goes on making progress: the other may need our answer.
  void meet() {
    line_.ring();
    while (!line_.rung()) fi_cq_read(side_.cq, nullptr, 0);
  }

  void send(const Bytes& bytes, std::uint64_t tag) {
    post([&] {
      return fi_tsend(side_.ep, bytes.data(), bytes.size(), nullptr, side_.peer, tag, &sent_);
    });
  }
  void send_data(const Bytes& bytes, std::uint64_t tag, std::uint64_t data) {
    post([&] {
      return fi_tsenddata(side_.ep, bytes.data(), bytes.size(), nullptr, data, side_.peer, tag,
                          &sent_);
    });
  }
  void inject(const Bytes& bytes, std::uint64_t tag) {
    post([&] { return fi_tinject(side_.ep, bytes.data(), bytes.size(), side_.peer, tag); });
  }
  void receive(Bytes& into, std::uint64_t tag, std::uint64_t ignore, fi_addr_t from) {
    post([&] {
      return fi_trecv(side_.ep, into.data(), into.size(), nullptr, from, tag, ignore, &into);
    });
  }
  void look(std::uint64_t flags, std::uint64_t tag, fi_context& context) {
    fi_msg_tagged message{};
    message.addr = side_.peer;
    message.tag = tag;
    message.context = &context;
    post([&] { return fi_trecvmsg(side_.ep, &message, flags); });
  }

  // The next completion; of an error only its code.
  fi_cq_tagged_entry next(int* error = nullptr) {
    fi_cq_tagged_entry entry{};
    const auto end = Clock::now() + kPatience;
    for (;;) {
      const ssize_t got = fi_cq_read(side_.cq, &entry, 1);
      if (got == 1) return entry;
      if (got == -FI_EAVAIL) {
        alignas(fi_cq_err_entry) char room[128] = {};  // longer in later versions
        auto& failure = *reinterpret_cast<fi_cq_err_entry*>(room);
        require(fi_cq_readerr(side_.cq, &failure, 0) == 1, "fi_cq_readerr");
        if (error == nullptr) fail("completion", -failure.err);
        *error = failure.err;
        entry.op_context = failure.op_context;
        entry.len = failure.len;
        return entry;
      }
      require(got == -FI_EAGAIN || got == 0, "fi_cq_read");
      require(Clock::now() < end, "nothing completes");
      ::sched_yield();
    }
  }
  void expect_sent() { require(next().op_context == &sent_, "what was sent completes"); }
  void expect_message(const Bytes& into, std::size_t size, std::uint64_t tag) {
    const fi_cq_tagged_entry entry = next();
    require(entry.op_context == &into, "the receive that it is for completes");
    require((entry.flags & (FI_TAGGED | FI_RECV)) == (FI_TAGGED | FI_RECV), "flags");
    require(entry.len == size && entry.tag == tag, "length and tag");
    for (std::size_t i = 0; i < size; ++i) require(into[i] == byte_at(i, tag), "bytes");
  }
  fi_addr_t peer() const { return side_.peer; }

 private:
  template <class Post>
  void post(Post post) {
    const auto end = Clock::now() + kPatience;
    for (;;) {
      const ssize_t posted = post();
      if (posted == 0) return;
      if (posted != -FI_EAGAIN) fail("post", posted);
      require(Clock::now() < end, "the post returns FI_EAGAIN until the deadline");
      fi_cq_read(side_.cq, nullptr, 0);
    }
  }

  Side& side_;
  Line& line_;
  const bool first_;
  int sent_ = 0;
};

// Until the message with this tag has begun to arrive.
fi_cq_tagged_entry see(Exchange& exchange, std::uint64_t tag, fi_context& context) {
  for (;;) {
    int error = 0;
    exchange.look(FI_PEEK, tag, context);
    const fi_cq_tagged_entry seen = exchange.next(&error);
    if (error == 0) return seen;
    require(error == FI_ENOMSG, "a peek");
  }
}

void sizes(Exchange& exchange, bool sends, bool expected) {
  std::uint64_t tag = 100;
  fi_context context{};
  for (std::size_t size = 0; size <= kLargest; size = size < 4 ? size + 1 : size * 3) {
    ++tag;
    Bytes bytes = sends ? message(size, tag) : Bytes(size);
    if (!sends && expected) exchange.receive(bytes, tag, 0, exchange.peer());
    exchange.meet();
    if (sends) {
      exchange.send(bytes, tag);
      exchange.expect_sent();
      continue;
    }
    if (!expected) {
      see(exchange, tag, context);
      exchange.receive(bytes, tag, 0, exchange.peer());
    }
    exchange.expect_message(bytes, size, tag);
  }
}

// So many that both ends have them waiting; wildcards take them in the order sent.
void order(Exchange& exchange, bool sends) {
  constexpr std::uint64_t kMessages = 500;
  constexpr std::size_t kBytes = 48;
  std::vector<Bytes> into(kMessages);
  if (sends) {
    for (std::uint64_t i = 0; i < kMessages; ++i)
      exchange.inject(message(kBytes, 1000 + i), 1000 + i);
    const Bytes last = message(kBytes, 5000);
    exchange.send(last, 5000);
    exchange.expect_sent();
    return;
  }
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    into[i].resize(kBytes);
    exchange.receive(into[i], 0, 0xFFF, i % 2 == 0 ? FI_ADDR_UNSPEC : exchange.peer());
  }
  for (std::uint64_t i = 0; i < kMessages; ++i) exchange.expect_message(into[i], kBytes, 1000 + i);
  Bytes last(kBytes);
  exchange.receive(last, 5000, 0, FI_ADDR_UNSPEC);
  exchange.expect_message(last, kBytes, 5000);
}

void looks(Exchange& exchange, bool sends) {
  if (sends) {
    std::vector<Bytes> messages;
    for (const std::uint64_t tag : {7, 8, 9}) messages.push_back(message(1000, tag));
    for (const std::uint64_t tag : {7, 8, 9}) {
      exchange.send_data(messages[tag - 7], tag, 0xDA7A00 + tag);
    }
    for (int i = 0; i < 3; ++i) exchange.expect_sent();
    return;
  }
  fi_context context{};
  int error = 0;
  fi_cq_tagged_entry seen{};
  exchange.look(FI_PEEK, 77, context);
  seen = exchange.next(&error);
  require(error == FI_ENOMSG && seen.op_context == &context, "a peek of nothing");
  seen = see(exchange, 9, context);
  require(seen.len == 1000 && seen.tag == 9, "a peek");
  require((seen.flags & FI_REMOTE_CQ_DATA) != 0 && seen.data == 0xDA7A09, "a peek's data");
  exchange.look(FI_PEEK | FI_DISCARD, 8, context);
  require(exchange.next().tag == 8, "a discard");
  exchange.look(FI_PEEK, 8, context);
  error = 0;
  exchange.next(&error);
  require(error == FI_ENOMSG, "what was discarded is gone");
  for (const std::uint64_t tag : {9, 7}) {
    Bytes into(1000);
    exchange.receive(into, tag, 0, exchange.peer());
    exchange.expect_message(into, 1000, tag);
  }
}

// A buffer that is too short, for a message that is here and for one that is not.
void truncation(Exchange& exchange, bool sends) {
  const Bytes long_one = message(300, 21);
  Bytes into(100);
  fi_context context{};
  for (const bool message_first : {true, false}) {
    if (!sends && !message_first) exchange.receive(into, 21, 0, FI_ADDR_UNSPEC);
    exchange.meet();
    if (sends) {
      exchange.send(long_one, 21);
      exchange.expect_sent();
      continue;
    }
    if (message_first) {
      see(exchange, 21, context);
      exchange.receive(into, 21, 0, FI_ADDR_UNSPEC);
    }
    int error = 0;
    const fi_cq_tagged_entry entry = exchange.next(&error);
    require(error == FI_ETRUNC && entry.op_context == &into, "truncation");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4 || argc > 5) fail("use: lnx_driver PROVIDER shm|uet PORT [ADDRESS]");
  const bool first = argc == 4;
  Side side;
  if (!open(argv[1], side)) {
    std::printf("SKIPPED: libfabric offers no %s\n", argv[1]);
    return 77;
  }
  Line line(std::atoi(argv[3]), first ? nullptr : argv[4]);
  const Bytes name = line.swap(name_of(side));
  require(fi_av_insert(side.av, name.data(), 1, &side.peer, 0, nullptr) == 1, "fi_av_insert");
  Exchange exchange(side, line, first);
  exchange.meet();
  exchange.both_ways("messages for waiting receives",
                     [&](bool sends) { sizes(exchange, sends, true); });
  exchange.both_ways("messages that wait", [&](bool sends) { sizes(exchange, sends, false); });
  exchange.both_ways("order", [&](bool sends) { order(exchange, sends); });
  exchange.both_ways("peeks and discards", [&](bool sends) { looks(exchange, sends); });
  if (std::strcmp(argv[2], "shm") != 0) {  // in libfabric 2.6 that ends in a segmentation fault
    exchange.both_ways("truncation", [&](bool sends) { truncation(exchange, sends); });
  }
  close(side);
  return 0;
}
