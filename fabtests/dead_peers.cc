// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Peers that die: an event of the EQ for endpoints that ask for it (FI_UET_FABRIC_EVENTS of
// <rdma/fi_ext_uet.h>), FI_SHUTDOWN for the connection of an idle peer (keep_alive_ms of
// FI_UET_TUNING), and none for a peer that computes. The server's side is a child of its own.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "common.h"
#include "uet/fi_ext_uet.h"

using namespace fabtests;

namespace {

// The server's side runs `body` in a child, which dies by `signal` when the client asks for it.
void in_a_victim(Link& link, int signal, void (*body)(Link&)) {
  int ready[2];
  CHECK(::pipe(ready) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    body(link);
    CHECK(::write(ready[1], "r", 1) == 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ::close(ready[1]);
  CHECK(::read(ready[0], &byte, 1) == 1);  // else the link would have two readers
  ::close(ready[0]);
  CHECK(link.receive_value<char>() == 'k');
  ::kill(child, signal);
  link.send_value('k');
  CHECK(link.receive_value<char>() == 'e');
  ::kill(child, SIGKILL);
  int status = 0;
  CHECK(::waitpid(child, &status, 0) == child);
}

void kill_the_peer(Link& link) {
  link.send_value('k');
  CHECK(link.receive_value<char>() == 'k');
}

fid_eq* open_eq(Node& node) {
  fi_eq_attr attr{};
  attr.wait_obj = FI_WAIT_FD;
  fid_eq* eq = nullptr;
  OK(fi_eq_open(node.fabric, &attr, &eq, nullptr));
  return eq;
}

// The next event or error of the queue, by its descriptor. A dead peer is given up after about 10 s
// in which the transport is called often; on a busy machine it takes longer.
ssize_t await(Node& node, fid_eq* eq, std::uint32_t& event, void* entry, std::size_t size) {
  int fd = -1;
  OK(fi_control(&eq->fid, FI_GETWAIT, &fd));
  const Clock::time_point end = Clock::now() + 3 * kPatience;
  for (;;) {
    const ssize_t got = fi_eq_read(eq, &event, entry, size, 0);
    if (got != -FI_EAGAIN) return got;
    CHECK(Clock::now() < end);
    fid_t fids[] = {&eq->fid};
    if (fi_trywait(node.fabric, fids, 1) != 0) continue;
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, 100);
  }
}

// ---- events of the fabric ----------------------------------------------------------------------

void serve_one_message(Link& link) {
  static Node node(link);  // stays until the process dies
  node.connect();
  static char byte;
  POST(node, fi_recv(node.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
  node.meet();
  node.completion(node.rx);
}

void dead_peer_is_an_event(Link& link) {
  if (link.server()) return in_a_victim(link, SIGKILL, serve_one_message);
  Node node(link);
  fid_eq* const eq = open_eq(node);
  OK(fi_ep_bind(node.ep, &eq->fid, FI_UET_FABRIC_EVENTS));
  node.connect();
  node.meet();
  char byte = 'x';
  POST(node, fi_send(node.ep, &byte, 1, nullptr, node.peer, nullptr));
  node.completion(node.tx);
  kill_the_peer(link);
  POST(node, fi_send(node.ep, &byte, 1, nullptr, node.peer, nullptr));
  std::uint32_t event = 0;
  fi_eq_entry entry{};
  RETURNS(-FI_EAVAIL, await(node, eq, event, &entry, sizeof entry));
  fi_eq_err_entry error{};
  CHECK(fi_eq_readerr(eq, &error, 0) == sizeof error);
  CHECK(error.fid == &node.ep->fid && error.data == node.peer);
  CHECK(error.err == FI_ETIMEDOUT || error.err == FI_ECONNRESET);
  const int first = error.err;
  CHECK(node.error(node.tx).err != 0);
  // The end of the process may have been known before the second send, which then met the silence
  // of its address.
  if (first == FI_ECONNRESET && fi_eq_read(eq, &event, &entry, sizeof entry, 0) == -FI_EAVAIL) {
    CHECK(fi_eq_readerr(eq, &error, 0) == sizeof error);
    CHECK(error.data == node.peer && error.err == FI_ETIMEDOUT);
  }
  RETURNS(-FI_EAGAIN, fi_eq_read(eq, &event, &entry, sizeof entry, 0));
  OK(fi_close(&node.ep->fid));
  node.ep = nullptr;
  OK(fi_close(&eq->fid));
  link.send_value('e');
}

// ---- keep-alive --------------------------------------------------------------------------------

Setup for_connections() {
  Setup setup;
  setup.hints = [](fi_info& hints) {
    hints.ep_attr->type = FI_EP_MSG;
    hints.caps = FI_MSG;
  };
  setup.endpoint = false;
  return setup;
}

void open_endpoint(Node& node, fi_info* info, fid_eq* eq) {
  OK(fi_endpoint(node.domain, info, &node.ep, nullptr));
  OK(fi_ep_bind(node.ep, &eq->fid, 0));
  OK(fi_ep_bind(node.ep, &node.tx->fid, FI_TRANSMIT));
  OK(fi_ep_bind(node.ep, &node.rx->fid, FI_RECV));
  OK(fi_enable(node.ep));
}

void accept_one(Link& link) {
  static Node node(link, for_connections());
  fid_eq* const eq = open_eq(node);
  fid_pep* pep = nullptr;
  OK(fi_passive_ep(node.fabric, node.info, &pep, nullptr));
  OK(fi_pep_bind(pep, &eq->fid, 0));
  OK(fi_listen(pep));
  Bytes name(128);
  std::size_t length = name.size();
  OK(fi_getname(&pep->fid, name.data(), &length));
  name.resize(length);
  link.send(name);
  std::uint32_t event = 0;
  fi_eq_cm_entry entry{};
  CHECK(await(node, eq, event, &entry, sizeof entry) > 0 && event == FI_CONNREQ);
  open_endpoint(node, entry.info, eq);
  OK(fi_accept(node.ep, nullptr, 0));
  CHECK(await(node, eq, event, &entry, sizeof entry) > 0 && event == FI_CONNECTED);
}

// Connects; the peer ends as `how` says. Expects FI_SHUTDOWN, or none for a while.
void connect_and_watch(Link& link, void (*how)(Link&), bool ends) {
  Node node(link, for_connections());
  fid_eq* const eq = open_eq(node);
  const Bytes to = link.receive();
  open_endpoint(node, node.info, eq);
  OK(fi_connect(node.ep, to.data(), nullptr, 0));
  std::uint32_t event = 0;
  fi_eq_cm_entry entry{};
  CHECK(await(node, eq, event, &entry, sizeof entry) > 0 && event == FI_CONNECTED);
  how(link);
  if (ends) {
    CHECK(await(node, eq, event, &entry, sizeof entry) > 0 && event == FI_SHUTDOWN);
  } else {
    const Clock::time_point end = Clock::now() + std::chrono::seconds(3);
    while (Clock::now() < end) {
      RETURNS(-FI_EAGAIN, fi_eq_read(eq, &event, &entry, sizeof entry, 0));
    }
  }
  OK(fi_close(&node.ep->fid));
  node.ep = nullptr;
  OK(fi_close(&eq->fid));
}

void idle_peer_that_dies(Link& link) {
  if (link.server()) return in_a_victim(link, SIGKILL, accept_one);
  connect_and_watch(link, kill_the_peer, true);
  link.send_value('e');
}

// As if its host had died: nothing answers.
void idle_peer_that_stands_still(Link& link) {
  if (link.server()) return in_a_victim(link, SIGSTOP, accept_one);
  connect_and_watch(link, kill_the_peer, true);
  link.send_value('e');
}

// The victim calls nothing after it has connected.
void peer_that_computes(Link& link) {
  if (link.server()) return in_a_victim(link, SIGKILL, accept_one);
  connect_and_watch(
      link, [](Link&) {}, false);
  kill_the_peer(link);
  link.send_value('e');
}

}  // namespace

int main(int argc, char** argv) {
  // A period of half a second, and a transport that gives up soon enough for the first case.
  setenv("FI_UET_TUNING", "keep_alive_ms=500,rto_max_us=100000", 0);
  const Case cases[] = {{"dead_peer_is_an_event", dead_peer_is_an_event},
                        {"idle_peer_that_dies", idle_peer_that_dies},
                        {"idle_peer_that_stands_still", idle_peer_that_stands_still},
                        {"peer_that_computes", peer_that_computes}};
  return run_cases(argc, argv, cases);
}
