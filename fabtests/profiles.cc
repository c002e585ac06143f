// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// fi_profile(3): counters of the domain as variables, snapshots, reset. Libfabric has the header
// since 2.0; with older headers the program says so.
#include <cstddef>
#include <cstdio>
#include <string_view>

#include "common.h"
#if __has_include(<rdma/fi_profile.h>)
#ifndef container_of  // which fi_profile_open uses and no public header of 2.6 defines
#define container_of(object, type, member) \
  reinterpret_cast<type*>(reinterpret_cast<char*>(object) - offsetof(type, member))
#endif
#include <rdma/fi_profile.h>
#endif

using namespace fabtests;

namespace {

#if __has_include(<rdma/fi_profile.h>)
void send_one(Node& node) {
  POST(node, fi_send(node.ep, "x", 1, nullptr, node.peer, nullptr));
  node.completion(node.tx);
}

void sent_messages_are_counted(Link& link) {
  Node node(link);
  node.connect();
  if (link.server()) {
    char byte = 0;
    for (int i = 0; i < 3; ++i) {
      POST(node, fi_recv(node.ep, &byte, 1, nullptr, FI_ADDR_UNSPEC, nullptr));
      node.completion(node.rx);
    }
    node.meet();
    return;
  }
  fid_profile* profile = nullptr;
  OK(fi_profile_open(&node.domain->fid, 0, &profile, nullptr));
  std::size_t count = 0;
  OK(fi_profile_query_vars(profile, nullptr, &count));
  std::vector<fi_profile_desc> variables(count);
  RETURNS(count, fi_profile_query_vars(profile, variables.data(), &count));
  std::uint32_t id = 0;
  for (const fi_profile_desc& each : variables) {
    CHECK(each.datatype.primitive == FI_UINT64);
    if (each.name == std::string_view("ses_messages_sent")) id = each.id;
  }
  CHECK(id != 0);
  const auto value = [&] {
    std::uint64_t read = 0;
    OK(fi_profile_read_u64(profile, id, &read));
    return read;
  };
  send_one(node);
  fi_profile_start_reads(profile, 0);
  CHECK(value() == 1);
  send_one(node);
  CHECK(value() == 1);  // of the snapshot
  fi_profile_end_reads(profile, 0);
  CHECK(value() == 2);
  fi_profile_reset(profile, 0);
  CHECK(value() == 0);
  send_one(node);
  CHECK(value() == 1);
  OK(fi_profile_close(profile));
  node.meet();
}
#else
void sent_messages_are_counted(Link& link) {
  if (link.server()) std::printf("skipped: fi_profile came with libfabric 2.0\n");
}
#endif

constexpr Case kCases[] = {{"sent_messages_are_counted", sent_messages_are_counted}};

}  // namespace

int main(int argc, char** argv) { return run_cases(argc, argv, kCases); }
