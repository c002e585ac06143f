// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FI_EP_MSG, fi_cm(3) and fi_endpoint(3): a listener, connections with data, rejected ones, names,
// what travels over a connection, and its end.
#include <arpa/inet.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "common.h"

using namespace fabtests;

namespace {

constexpr int kTimeoutMs = 20'000;
constexpr std::size_t kMostData = 256;

void ask_for_connections(fi_info& hints) {
  hints.ep_attr->type = FI_EP_MSG;
  hints.caps = FI_MSG | FI_TAGGED | FI_RMA;
  hints.addr_format = FI_SOCKADDR_IN;
}

Setup without_endpoint() {
  Setup setup;
  setup.hints = ask_for_connections;
  setup.endpoint = false;
  return setup;
}

struct Event {
  std::uint32_t number = 0;  // 0: an error
  fid_t fid = nullptr;
  fi_info* info = nullptr;
  int error = 0;
  std::string data;
};

// This side's objects of connections; a domain's endpoints come one after the other.
class Connector {
 public:
  explicit Connector(Link& link) : link_(link), node_(link, without_endpoint()) {
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_UNSPEC;
    OK(fi_eq_open(node_.fabric, &attr, &eq_, nullptr));
    node_.events = eq_;
  }
  ~Connector() {
    close_endpoint();
    if (pep_ != nullptr) OK(fi_close(&pep_->fid));
    OK(fi_close(&eq_->fid));
  }
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  // Listens, at `port` if it is not 0, and tells the other side where.
  void listen(std::uint16_t port = 0) {
    fi_info* const info = fi_dupinfo(node_.info);
    CHECK(info != nullptr && info->src_addr != nullptr);
    static_cast<sockaddr_in*>(info->src_addr)->sin_port = htons(port);
    OK(fi_passive_ep(node_.fabric, info, &pep_, this));
    fi_freeinfo(info);
    OK(fi_pep_bind(pep_, &eq_->fid, 0));
    OK(fi_listen(pep_));
    link_.send(name_of(pep_->fid));
  }
  static Bytes name_of(fid& object) {
    Bytes name(128);
    std::size_t length = name.size();
    OK(fi_getname(&object, name.data(), &length));
    name.resize(length);
    return name;
  }
  void open_endpoint(fi_info* info) {
    close_endpoint();
    OK(fi_endpoint(node_.domain, info, &node_.ep, this));
    OK(fi_ep_bind(node_.ep, &eq_->fid, 0));
    OK(fi_ep_bind(node_.ep, &node_.tx->fid, FI_TRANSMIT));
    OK(fi_ep_bind(node_.ep, &node_.rx->fid, FI_RECV));
    OK(fi_enable(node_.ep));
  }
  void close_endpoint() {
    if (node_.ep != nullptr) OK(fi_close(&node_.ep->fid));
    node_.ep = nullptr;
  }
  Event next() {
    Event event;
    alignas(fi_eq_cm_entry) std::array<char, sizeof(fi_eq_cm_entry) + kMostData> buffer{};
    const ssize_t got =
        fi_eq_sread(eq_, &event.number, buffer.data(), buffer.size(), kTimeoutMs, 0);
    if (got == -FI_EAVAIL) {
      std::array<char, kMostData> data{};
      fi_eq_err_entry error{};
      error.err_data = data.data();
      error.err_data_size = data.size();
      CHECK(fi_eq_readerr(eq_, &error, 0) > 0);
      event.number = 0;
      event.fid = error.fid;
      event.error = error.err;
      event.data.assign(data.data(), error.err_data_size);
      return event;
    }
    fi_eq_cm_entry entry{};
    CHECK(got >= static_cast<ssize_t>(offsetof(fi_eq_cm_entry, data)));
    std::memcpy(&entry, buffer.data(), offsetof(fi_eq_cm_entry, data));
    event.fid = entry.fid;
    event.info = entry.info;
    event.data.assign(buffer.data() + offsetof(fi_eq_cm_entry, data),
                      static_cast<std::size_t>(got) - offsetof(fi_eq_cm_entry, data));
    return event;
  }
  void expect(std::uint32_t number, std::string_view data = {}) {
    const Event event = next();
    if (event.number != number) {
      fail(__FILE__, __LINE__,
           "event " + std::to_string(event.number) + ", error " + std::to_string(event.error) +
               ", not event " + std::to_string(number));
    }
    CHECK(event.fid == &node_.ep->fid);
    CHECK(event.data.substr(0, data.size()) == data);
  }
  // The server's half of a connection, and the client's.
  void accept(std::string_view expected, std::string_view answer) {
    const Event request = next();
    CHECK(request.number == FI_CONNREQ && request.fid == &pep_->fid);
    CHECK(request.data.substr(0, expected.size()) == expected);
    open_endpoint(request.info);
    fi_freeinfo(request.info);
    OK(fi_accept(node_.ep, answer.data(), answer.size()));
    expect(FI_CONNECTED);
  }
  void connect(const Bytes& to, std::string_view data) {
    open_endpoint(node_.info);
    OK(fi_connect(node_.ep, to.data(), data.data(), data.size()));
  }

  Node& node() { return node_; }
  fid_pep* pep() { return pep_; }

 private:
  Link& link_;
  Node node_;
  fid_eq* eq_ = nullptr;
  fid_pep* pep_ = nullptr;
};

void handshake_carries_data(Link& link) {
  Connector side(link);
  if (link.server()) {
    side.listen();
    std::size_t size = 0;
    std::size_t length = sizeof size;
    OK(fi_getopt(&side.pep()->fid, FI_OPT_ENDPOINT, FI_OPT_CM_DATA_SIZE, &size, &length));
    CHECK(size >= kMostData);
    side.accept("may I?", "you may");
  } else {
    const Bytes to = link.receive();
    side.connect(to, "may I?");
    side.expect(FI_CONNECTED, "you may");
    Bytes peer(128);
    std::size_t length = peer.size();
    OK(fi_getpeer(side.node().ep, peer.data(), &length));
    peer.resize(length);
    CHECK(peer == to);
  }
  link.meet(&side.node());
}

void rejected_with_reason(Link& link) {
  Connector side(link);
  if (link.server()) {
    side.listen();
    const Event request = side.next();
    CHECK(request.number == FI_CONNREQ);
    OK(fi_reject(side.pep(), request.info->handle, "no", 2));
    fi_freeinfo(request.info);
    link.meet(&side.node());
  } else {
    side.connect(link.receive(), {});
    const Event event = side.next();
    CHECK(event.number == 0 && event.error == FI_ECONNREFUSED);
    CHECK(event.fid == &side.node().ep->fid);
    CHECK(event.data == "no");
    link.meet(&side.node());
  }
}

// Nothing listens at the address any more. It is one that no program beside this one gets without
// asking for it: else that program may have the port by now, and takes the request.
void nobody_listens(Link& link) {
  if (link.server()) {
    {
      Connector side(link);
      side.listen(static_cast<std::uint16_t>(5300 + getpid() % 500));
    }
    link.meet();
  } else {
    Connector side(link);
    const Bytes to = link.receive();
    link.meet();
    side.connect(to, {});
    const Event event = side.next();
    CHECK(event.number == 0 && event.error == FI_ECONNREFUSED);
  }
}

void everything_travels(Link& link) {
  Connector side(link);
  if (link.server()) {
    side.listen();
    side.accept({}, {});
  } else {
    side.connect(link.receive(), {});
    side.expect(FI_CONNECTED);
  }
  Node& node = side.node();
  Bytes window(100'000);
  const std::uint64_t seed = link.server() ? 1 : 2;
  const std::uint64_t others = 3 - seed;
  const Region region(node, window, FI_REMOTE_READ | FI_REMOTE_WRITE, seed);
  link.send_value(region.remote);
  const auto remote = link.receive_value<Remote>(&node);
  Bytes in(70'000);
  Bytes tagged_in(10);
  POST(node, fi_recv(node.ep, in.data(), in.size(), nullptr, 0, in.data()));
  POST(node, fi_trecv(node.ep, tagged_in.data(), 10, nullptr, 0, 7, 0, tagged_in.data()));
  const Bytes out = pattern(in.size(), seed);
  POST(node, fi_send(node.ep, out.data(), out.size(), nullptr, 0, nullptr));
  POST(node, fi_tsend(node.ep, out.data(), 10, nullptr, 0, 7, nullptr));
  const Bytes written = pattern(window.size(), seed);
  POST(node, fi_write(node.ep, written.data(), written.size(), nullptr, 0, remote.address,
                      remote.key, nullptr));
  for (int i = 0; i < 3; ++i) node.completion(node.tx);
  const void* const first = node.completion(node.rx).op_context;  // a long message may end later
  const void* const second = node.completion(node.rx).op_context;
  CHECK(first == in.data() ? second == tagged_in.data()
                           : first == tagged_in.data() && second == in.data());
  CHECK(same(in, others));
  CHECK(same(tagged_in, others));
  link.meet(&node);
  CHECK(same(window, others));
  Bytes back(window.size());
  POST(node,
       fi_read(node.ep, back.data(), back.size(), nullptr, 0, remote.address, remote.key, nullptr));
  node.completion(node.tx);
  CHECK(same(back, seed));
  link.meet(&node);
}

void both_ends_hear_the_end(Link& link) {
  Connector side(link);
  char byte = 0;
  if (link.server()) {
    side.listen();
    side.accept({}, {});
    POST(side.node(), fi_recv(side.node().ep, &byte, 1, nullptr, 0, &byte));
    link.meet(&side.node());
    side.expect(FI_SHUTDOWN);
    CHECK(side.node().error(side.node().rx).op_context == &byte);
  } else {
    side.connect(link.receive(), {});
    side.expect(FI_CONNECTED);
    link.meet(&side.node());
    OK(fi_shutdown(side.node().ep, 0));
    side.expect(FI_SHUTDOWN);
    CHECK(fi_send(side.node().ep, &byte, 1, nullptr, 0, nullptr) < 0);
  }
  link.meet(&side.node());
}

void many_come_and_go(Link& link) {
  constexpr int kRounds = 50;
  Connector side(link);
  Bytes to;
  if (link.server()) {
    side.listen();
  } else {
    to = link.receive();
  }
  for (int i = 0; i < kRounds; ++i) {
    const std::string number = std::to_string(i);
    if (link.server()) {
      side.accept(number, number);
    } else {
      side.connect(to, number);
      side.expect(FI_CONNECTED, number);
    }
    link.meet(&side.node());  // else the next request may be here before this event
    if (link.server()) side.expect(FI_SHUTDOWN);
    side.close_endpoint();
    link.meet(&side.node());
  }
  link.meet(&side.node());
}

}  // namespace

int main(int argc, char** argv) {
  const Case cases[] = {
      {"handshake_carries_data", handshake_carries_data},
      {"rejected_with_reason", rejected_with_reason},
      {"nobody_listens", nobody_listens},
      {"everything_travels", everything_travels},
      {"both_ends_hear_the_end", both_ends_hear_the_end},
      {"many_come_and_go", many_come_and_go},
  };
  return run_cases(argc, argv, cases);
}
