// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Address vectors and event queues, fi_av(3) and fi_eq(3): inserting at once and later, what is
// wrong with a bad address, removing and inserting again, and events of the provider and of the
// program.
#include <array>
#include <cstring>
#include <string>

#include "common.h"

using namespace fabtests;

namespace {

constexpr int kTimeoutMs = 20'000;

struct EventQueue {
  explicit EventQueue(Node& node, std::uint64_t flags = FI_WRITE) {
    fi_eq_attr attr{};
    attr.wait_obj = FI_WAIT_UNSPEC;
    attr.flags = flags;
    OK(fi_eq_open(node.fabric, &attr, &eq, nullptr));
  }
  ~EventQueue() { OK(fi_close(&eq->fid)); }
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  fid_eq* eq = nullptr;
};

struct AddressVector {
  AddressVector(Node& node, fi_av_type type, std::uint64_t flags = 0, fid_eq* eq = nullptr) {
    fi_av_attr attr{};
    attr.type = type;
    attr.flags = flags;
    OK(fi_av_open(node.domain, &attr, &av, nullptr));
    if (eq != nullptr) OK(fi_av_bind(av, &eq->fid, 0));
  }
  ~AddressVector() { OK(fi_close(&av->fid)); }
  AddressVector(const AddressVector&) = delete;
  AddressVector& operator=(const AddressVector&) = delete;

  fid_av* av = nullptr;
};

void ping(Node& node, Link& link) {
  int value = 5;
  if (link.server()) {
    POST(node, fi_recv(node.ep, &value, sizeof value, nullptr, FI_ADDR_UNSPEC, nullptr));
    node.completion(node.rx);
  } else {
    POST(node, fi_send(node.ep, &value, sizeof value, nullptr, node.peer, nullptr));
    node.completion(node.tx);
  }
  node.meet();
}

// Table indices count up; what was inserted can be looked up and printed; both types of AV.
void insert_and_look_up(Link& link) {
  Node node(link);
  node.connect();
  const Bytes name = Node::name_of(node.ep);
  for (const fi_av_type type : {FI_AV_TABLE, FI_AV_MAP}) {
    const AddressVector vector(node, type);
    Bytes two = name;
    two.insert(two.end(), name.begin(), name.end());
    std::array<fi_addr_t, 2> addresses{};
    RETURNS(2, fi_av_insert(vector.av, two.data(), 2, addresses.data(), 0, nullptr));
    if (type == FI_AV_TABLE) CHECK(addresses[0] == 0 && addresses[1] == 1);
    Bytes found(name.size() + 8);
    std::size_t length = found.size();
    OK(fi_av_lookup(vector.av, addresses[1], found.data(), &length));
    CHECK(length == name.size());
    found.resize(length);
    CHECK(found == name);
    // Too short: what fits, and the length that would do.
    length = 4;
    fi_av_lookup(vector.av, addresses[0], found.data(), &length);
    CHECK(length == name.size());
    std::array<char, 128> text{};
    length = text.size();
    CHECK(fi_av_straddr(vector.av, name.data(), text.data(), &length) != nullptr);
    CHECK(std::strlen(text.data()) > 0 && length <= text.size());
    OK(fi_av_remove(vector.av, addresses.data(), 2, 0));
    CHECK(fi_av_lookup(vector.av, addresses[0], found.data(), &length) != 0);
  }
  node.meet();
}

// FI_SYNC_ERR: a bad address among good ones fails alone, and each result is reported.
void one_of_many_is_bad(Link& link) {
  Node node(link);
  node.connect();
  const AddressVector vector(node, FI_AV_TABLE);
  const Bytes name = Node::name_of(node.ep);
  Bytes three = name;
  three.insert(three.end(), name.size(), std::byte{0xff});
  three.insert(three.end(), name.begin(), name.end());
  std::array<fi_addr_t, 3> addresses{};
  std::array<int, 3> errors{-1, -1, -1};
  RETURNS(2,
          fi_av_insert(vector.av, three.data(), 3, addresses.data(), FI_SYNC_ERR, errors.data()));
  CHECK(addresses[0] != FI_ADDR_NOTAVAIL && addresses[2] != FI_ADDR_NOTAVAIL);
  CHECK(addresses[1] == FI_ADDR_NOTAVAIL);
  CHECK(errors[0] == 0 && errors[1] != 0 && errors[2] == 0);
  node.meet();
}

// An AV opened with FI_EVENT inserts later: the call returns 0, the event says how many.
void insert_later(Link& link) {
  Node node(link);
  const EventQueue events(node);
  {
    const AddressVector vector(node, FI_AV_TABLE, FI_EVENT, events.eq);
    node.connect();
    const Bytes name = Node::name_of(node.ep);
    fi_addr_t address = FI_ADDR_NOTAVAIL;
    int context = 0;
    OK(fi_av_insert(vector.av, name.data(), 1, &address, 0, &context));
    std::uint32_t event = 0;
    fi_eq_entry entry{};
    RETURNS(sizeof entry, fi_eq_sread(events.eq, &event, &entry, sizeof entry, kTimeoutMs, 0));
    CHECK(event == FI_AV_COMPLETE);
    CHECK(entry.fid == &vector.av->fid && entry.context == &context && entry.data == 1);
    CHECK(address == 0);
  }
  node.meet();
}

// A peer that was removed and inserted again is reached as before, several times.
void remove_and_insert_again(Link& link) {
  Node node(link);
  node.connect();
  link.send(Node::name_of(node.ep));
  const Bytes name = link.receive(&node);
  for (int round = 0; round < 3; ++round) {
    ping(node, link);
    OK(fi_av_remove(node.av, &node.peer, 1, 0));
    node.peer = node.insert(name);
  }
  ping(node, link);
}

// The program's own events: written, looked at, read; and a wait that ends by time.
void own_events(Link& link) {
  Node node(link);
  const EventQueue events(node);
  fi_eq_entry entry{};
  entry.fid = &node.domain->fid;
  entry.data = 77;
  RETURNS(sizeof entry, fi_eq_write(events.eq, 1000, &entry, sizeof entry, 0));
  std::uint32_t event = 0;
  fi_eq_entry seen{};
  RETURNS(sizeof seen, fi_eq_read(events.eq, &event, &seen, sizeof seen, FI_PEEK));
  CHECK(event == 1000 && seen.data == 77);
  seen = {};
  RETURNS(sizeof seen, fi_eq_sread(events.eq, &event, &seen, sizeof seen, kTimeoutMs, 0));
  CHECK(event == 1000 && seen.data == 77 && seen.fid == &node.domain->fid);
  RETURNS(-FI_EAGAIN, fi_eq_read(events.eq, &event, &seen, sizeof seen, 0));
  const Clock::time_point start = Clock::now();
  RETURNS(-FI_EAGAIN, fi_eq_sread(events.eq, &event, &seen, sizeof seen, 30, 0));
  CHECK(Clock::now() - start >= std::chrono::milliseconds(30));
  node.connect();
  node.meet();
}

constexpr Case kCases[] = {{"insert_and_look_up", insert_and_look_up},
                           {"one_of_many_is_bad", one_of_many_is_bad},
                           {"insert_later", insert_later},
                           {"remove_and_insert_again", remove_and_insert_again},
                           {"own_events", own_events}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
