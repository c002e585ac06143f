// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A rank for uet_run's end-to-end test: joins, gathers, fills the AV, publishes a region, and
// writes its number into the region of the next rank. Ends with 1 and a reason on standard error.
#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "uet/uet_job.h"

namespace {

void check(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "%s: %s\n", what, uet_job_error());
  std::exit(1);
}

}  // namespace

int main() {
  uet_job* job = nullptr;
  check(uet_job_join(&job) == 0, "uet_job_join");
  const std::uint32_t rank = uet_job_rank(job);
  const std::uint32_t size = uet_job_size(job);
  std::vector<std::uint32_t> ranks(size);
  check(uet_job_all_gather(job, &rank, sizeof rank, ranks.data()) == 0, "uet_job_all_gather");
  for (std::uint32_t i = 0; i < size; ++i) check(ranks[i] == i, "rank order");

  fi_info* hints = fi_allocinfo();
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_RMA | FI_MSG;
  hints->fabric_attr->prov_name = strdup("uet");
  fi_info* info = nullptr;
  check(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", nullptr, FI_SOURCE, hints, &info) == 0,
        "fi_getinfo");
  fid_fabric* fabric = nullptr;
  fid_domain* domain = nullptr;
  fid_ep* ep = nullptr;
  fid_av* av = nullptr;
  fid_cq* cq = nullptr;
  fid_mr* mr = nullptr;
  fi_av_attr av_attr{};
  av_attr.type = FI_AV_TABLE;
  fi_cq_attr cq_attr{};
  cq_attr.format = FI_CQ_FORMAT_DATA;
  check(fi_fabric(info->fabric_attr, &fabric, nullptr) == 0, "fi_fabric");
  check(fi_domain(fabric, info, &domain, nullptr) == 0, "fi_domain");
  check(fi_endpoint(domain, info, &ep, nullptr) == 0, "fi_endpoint");
  check(fi_av_open(domain, &av_attr, &av, nullptr) == 0, "fi_av_open");
  check(fi_cq_open(domain, &cq_attr, &cq, nullptr) == 0, "fi_cq_open");
  check(fi_ep_bind(ep, &av->fid, 0) == 0, "fi_ep_bind");
  check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV) == 0, "fi_ep_bind");
  check(fi_enable(ep) == 0, "fi_enable");

  volatile std::uint64_t memory = 0;
  auto* const buffer = const_cast<std::uint64_t*>(&memory);
  check(
      fi_mr_reg(domain, buffer, sizeof memory, FI_REMOTE_WRITE, 0, 40 + rank, 0, &mr, nullptr) == 0,
      "fi_mr_reg");
  std::vector<fi_addr_t> addresses(size);
  check(uet_job_fill_av(job, ep, av, addresses.data()) == 0, "uet_job_fill_av");
  for (std::uint32_t i = 0; i < size; ++i) check(addresses[i] == i, "an AV in rank order");
  std::vector<uet_job_region> table(size);
  check(
      uet_job_publish(job, info, ep, mr, buffer, sizeof memory, FI_REMOTE_WRITE, table.data()) == 0,
      "uet_job_publish");
  for (std::uint32_t i = 0; i < size; ++i) {
    check(table[i].rank == i && table[i].length == 8 && table[i].rights == FI_REMOTE_WRITE &&
              table[i].job_id == uet_job_id(job),
          "the table of regions");
  }

  const std::uint64_t value = 1000 + rank;
  const std::uint32_t next = (rank + 1) % size;
  check(fi_write(ep, &value, sizeof value, nullptr, addresses[next], table[next].base,
                 table[next].rkey, nullptr) == 0,
        "fi_write");
  // Each rank makes progress until its own write is done and that of the rank before has come.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool written = false;
  while (!written || memory == 0) {
    fi_cq_data_entry entry{};
    const ssize_t got = fi_cq_read(cq, &entry, 1);
    check(got == 1 || got == -FI_EAGAIN, "fi_cq_read");
    written = written || got == 1;
    check(std::chrono::steady_clock::now() < end, "the write of 30 s");
  }
  check(memory == 1000 + (rank + size - 1) % size, "the number of the rank before");
  // The peer's last ACK is on its way: progress goes on for a moment.
  const auto quiet = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (std::chrono::steady_clock::now() < quiet) fi_cq_read(cq, nullptr, 0);
  check(uet_job_barrier(job) == 0, "uet_job_barrier");
  for (fid* each : {&mr->fid, &ep->fid, &av->fid, &cq->fid, &domain->fid, &fabric->fid}) {
    fi_close(each);
  }
  fi_freeinfo(info);
  fi_freeinfo(hints);
  std::printf("rank %u of %u in job %u\n", rank, size, uet_job_id(job));
  uet_job_leave(job);
}
