// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Keys of jobs (auth_key, fi_endpoint(3) and fi_mr(3)): an endpoint is there for its own job, and a
// region may be there for one job alone. One endpoint for several jobs (FI_AV_AUTH_KEY) needs
// libfabric 1.20 or later; with older headers that case says so.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common.h"

using namespace fabtests;

namespace {

// A JobID of 3 bytes, which fi_freeinfo releases.
void set_key(fi_ep_attr& attr, std::uint8_t job) {
  attr.auth_key = static_cast<std::uint8_t*>(std::malloc(3));
  attr.auth_key[0] = attr.auth_key[1] = 0;
  attr.auth_key[2] = job;
  attr.auth_key_size = 3;
}

Setup of_job(std::uint8_t job) {
  Setup setup;
  setup.hints = [job](fi_info& hints) { set_key(*hints.ep_attr, job); };
  return setup;
}

void one_job_meets(Link& link) {
  Node node(link, of_job(7));
  node.connect();
  char byte = 'x';
  if (link.server()) {
    POST(node, fi_recv(node.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
    node.meet();
    node.completion(node.rx);
    CHECK(byte == 'y');
  } else {
    byte = 'y';
    node.meet();
    POST(node, fi_send(node.ep, &byte, 1, nullptr, node.peer, nullptr));
    node.completion(node.tx);
  }
  node.meet();
}

void other_job_is_refused(Link& link) {
  Node node(link, of_job(link.server() ? 7 : 8));
  node.connect();
  char byte = 'x';
  if (link.server()) {
    POST(node, fi_recv(node.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
    node.meet();
    node.meet();
    CHECK(node.stays_empty(node.rx) && byte == 'x');
  } else {
    node.meet();
    POST(node, fi_send(node.ep, &byte, 1, nullptr, node.peer, nullptr));
    CHECK(node.error(node.tx).err == FI_EKEYREJECTED);
    node.meet();
  }
  node.meet();
}

// A region of job 9, reached through an endpoint of job 7.
void region_of_another_job(Link& link) {
  Node node(link, of_job(7));
  node.connect();
  char byte = 'x';
  if (link.server()) {
    const iovec piece{&byte, 1};
    std::uint8_t key[3] = {0, 0, 9};
    fi_mr_attr attr{};
    attr.mr_iov = &piece;
    attr.iov_count = 1;
    attr.access = FI_REMOTE_WRITE;
    attr.requested_key = 4;
    attr.auth_key = key;
    attr.auth_key_size = sizeof key;
    fid_mr* mr = nullptr;
    OK(fi_mr_regattr(node.domain, &attr, 0, &mr));
    node.meet();
    node.meet();
    CHECK(byte == 'x');
    OK(fi_close(&mr->fid));
  } else {
    node.meet();
    POST(node, fi_write(node.ep, "y", 1, nullptr, node.peer, 0, 4, nullptr));
    CHECK(node.error(node.tx).err != 0);
    node.meet();
  }
  node.meet();
}

#ifdef FI_AV_AUTH_KEY
// A server for the jobs 7 and 8, and a client of each.
void one_endpoint_serves_two_jobs(Link& link) {
  char byte = 0;
  if (link.server()) {
    Setup setup;
    setup.hints = [](fi_info& hints) { hints.domain_attr->auth_key_size = FI_AV_AUTH_KEY; };
    Node node(link, setup);
    for (std::uint8_t job = 7; job <= 8; ++job) {
      const std::uint8_t key[3] = {0, 0, job};
      fi_addr_t handle = FI_ADDR_NOTAVAIL;
      OK(fi_av_insert_auth_key(node.av, key, sizeof key, &handle, 0));
      std::uint8_t back[3] = {};
      std::size_t size = sizeof back;
      OK(fi_av_lookup_auth_key(node.av, handle, back, &size));
      CHECK(size == 3 && back[2] == job);
    }
    OK(fi_enable(node.ep));
    link.send(Node::name_of(node.ep));
    for (std::uint8_t job = 7; job <= 8; ++job) {
      POST(node, fi_recv(node.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
      node.completion(node.rx);
      CHECK(byte == static_cast<char>(job));
    }
    CHECK(link.receive_value<char>(&node) == 'e');
  } else {
    const Bytes name = link.receive();
    for (std::uint8_t job = 7; job <= 8; ++job) {
      Node node(link, of_job(job));
      OK(fi_enable(node.ep));
      byte = static_cast<char>(job);
      POST(node, fi_send(node.ep, &byte, 1, nullptr, node.insert(name), nullptr));
      node.completion(node.tx);
    }
    link.send_value('e');
  }
}
#else
void one_endpoint_serves_two_jobs(Link& link) {
  if (link.server()) std::printf("skipped: FI_AV_AUTH_KEY came with libfabric 1.20\n");
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const Case cases[] = {{"one_job_meets", one_job_meets},
                        {"other_job_is_refused", other_job_is_refused},
                        {"region_of_another_job", region_of_another_job},
                        {"one_endpoint_serves_two_jobs", one_endpoint_serves_two_jobs}};
  return run_cases(argc, argv, cases);
}
