// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A parallel job without MPI: each rank opens one network interface ("rail"), tells the others its
// address and memory through uet_run, and writes 16,384 bytes into the memory of a rank on the
// other half of the job. With four ranks on two hosts, and two rails, rank 0 writes to rank 2 over
// the first rail and rank 1 to rank 3 over the second, and back. JobID and keys are those of
// docs/walkthrough.md:
//
//   uet_run -n 4 --job-id 101 four_ranks lo lo                       on one host
//   uet_run -n 4 --job-id 101 --hosts FILE four_ranks eth0 eth1      on the two hosts of FILE
//
// Rank r uses the interface r modulo the number of interfaces; its PIDonFEP is r, its resource
// index 0x00a, the key of its memory 0xacce5. Uses libfabric, uet/uet_job.h, and of
// rdma/fi_ext_uet.h the format of addresses. The exit status is 0 only if every byte was right.
#include <rdma/fi_ext_uet.h>
#include <rdma/fi_rma.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "common.h"
#include "uet/uet_job.h"

namespace {

using example::check;
using example::Owned;

constexpr std::size_t kBytes = 16384;
constexpr std::uint64_t kKey = 0xacce5;
constexpr std::uint8_t kResourceIndex = 0x0a;
constexpr int kPatienceMs = 30000;

struct FreeInfo {
  void operator()(fi_info* info) const { fi_freeinfo(info); }
};
using Info = std::unique_ptr<fi_info, FreeInfo>;
using Job = std::unique_ptr<uet_job, decltype(&uet_job_leave)>;

// As check(), of a call of uet_job.h, which has words of its own.
void check_job(int result, const char* what) {
  if (result != 0) example::fail(std::string(what) + ": " + uet_job_error());
}

// The bytes that a rank writes.
std::byte pattern(std::uint32_t rank, std::size_t index) {
  return static_cast<std::byte>(rank * 101 + index * 7 + index / 256);
}

// The interface `rail` for an endpoint of `job`, with process number and resource index of our
// choice. The fabric address stays open: the provider adds that of the interface.
Info find_rail(const std::string& rail, const uet_job& job) {
  const std::uint32_t rank = uet_job_rank(&job);
  const std::uint32_t id = uet_job_id(&job);
  Info hints(fi_allocinfo());
  hints->ep_attr->type = FI_EP_RDM;
  hints->caps = FI_MSG | FI_RMA;
  hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
  // The provider answers peers by itself, while this program waits for the other ranks.
  hints->domain_attr->data_progress = FI_PROGRESS_AUTO;
  // fi_freeinfo frees all three.
  hints->fabric_attr->prov_name = ::strdup("uet");
  hints->domain_attr->name = ::strdup(rail.c_str());
  auto* const key = static_cast<std::uint8_t*>(std::calloc(1, FI_UET_AUTH_KEY_SIZE));
  key[0] = static_cast<std::uint8_t>(id >> 16);
  key[1] = static_cast<std::uint8_t>(id >> 8);
  key[2] = static_cast<std::uint8_t>(id);
  hints->ep_attr->auth_key = key;
  hints->ep_attr->auth_key_size = FI_UET_AUTH_KEY_SIZE;
  auto* const address = static_cast<std::uint8_t*>(std::calloc(1, FI_ADDR_UET_SIZE));
  address[1] = 0x04 | 0x08;  // PIDonFEP and resource index are valid
  address[20] = static_cast<std::uint8_t>(rank >> 8);
  address[21] = static_cast<std::uint8_t>(rank);
  address[23] = kResourceIndex;
  hints->addr_format = FI_ADDR_UET;
  hints->src_addr = address;
  hints->src_addrlen = FI_ADDR_UET_SIZE;
  fi_info* found = nullptr;
  check(fi_getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found),
        "fi_getinfo: interface " + rail);
  return Info(found);
}

// The endpoint of this rank; members are closed last to first.
struct Rank {
  explicit Rank(fi_info& info) {
    check(fi_fabric(info.fabric_attr, open(fabric), nullptr), "fi_fabric");
    check(fi_domain(fabric.get(), &info, open(domain), nullptr), "fi_domain");
    fi_cq_attr cq_attr{};
    cq_attr.format = FI_CQ_FORMAT_DATA;
    cq_attr.wait_obj = FI_WAIT_UNSPEC;
    check(fi_cq_open(domain.get(), &cq_attr, open(cq), nullptr), "fi_cq_open");
    fi_av_attr av_attr{};
    av_attr.type = FI_AV_TABLE;
    check(fi_av_open(domain.get(), &av_attr, open(av), nullptr), "fi_av_open");
    check(fi_mr_reg(domain.get(), memory.data(), kBytes, FI_REMOTE_WRITE, 0, kKey, 0, open(mr),
                    nullptr),
          "fi_mr_reg");
    check(fi_endpoint(domain.get(), &info, open(ep), nullptr), "fi_endpoint");
    check(fi_ep_bind(ep.get(), &av->fid, 0), "binding the address vector");
    check(fi_ep_bind(ep.get(), &cq->fid, FI_TRANSMIT | FI_RECV), "binding the completion queue");
    check(fi_enable(ep.get()), "fi_enable");
  }

  // Passes the address of a pointer to a call that opens an object, and owns the object afterwards.
  template <class T>
  struct Opening {
    explicit Opening(Owned<T>& to) : owner(to) {}
    ~Opening() { owner.reset(made); }
    operator T**() { return &made; }
    Owned<T>& owner;
    T* made = nullptr;
  };
  template <class T>
  static Opening<T> open(Owned<T>& owner) {
    return Opening<T>(owner);
  }

  std::vector<std::byte> memory = std::vector<std::byte>(kBytes);
  Owned<fid_fabric> fabric;
  Owned<fid_domain> domain;
  Owned<fid_cq> cq;
  Owned<fid_av> av;
  Owned<fid_mr> mr;
  Owned<fid_ep> ep;
};

void run(std::span<char*> rails) {
  uet_job* joined = nullptr;
  check_job(uet_job_join(&joined), "uet_job_join");
  const Job job(joined, &uet_job_leave);
  const std::uint32_t number = uet_job_rank(job.get());
  const std::uint32_t size = uet_job_size(job.get());
  if (size % 2 != 0) example::fail("the job needs an even number of ranks: uet_run -n 4");

  const std::string rail = rails[number % rails.size()];
  const Info info = find_rail(rail, *job);
  Rank rank(*info);
  std::vector<fi_addr_t> ranks(size);
  check_job(uet_job_fill_av(job.get(), rank.ep.get(), rank.av.get(), ranks.data()),
            "uet_job_fill_av");
  std::vector<uet_job_region> regions(size);
  check_job(uet_job_publish(job.get(), info.get(), rank.ep.get(), rank.mr.get(), rank.memory.data(),
                            kBytes, FI_REMOTE_WRITE, regions.data()),
            "uet_job_publish");

  const std::uint32_t peer = (number + size / 2) % size;
  std::vector<std::byte> source(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) source[i] = pattern(number, i);
  check(fi_write(rank.ep.get(), source.data(), kBytes, nullptr, ranks[peer], regions[peer].base,
                 regions[peer].rkey, nullptr),
        "fi_write");
  fi_cq_data_entry done{};
  check(fi_cq_sread(rank.cq.get(), &done, 1, nullptr, kPatienceMs), "the write to its peer");
  // All writes are complete when all ranks are here: the bytes of the peer have arrived.
  check_job(uet_job_barrier(job.get()), "uet_job_barrier");
  for (std::size_t i = 0; i < kBytes; ++i) {
    if (rank.memory[i] != pattern(peer, i)) example::fail("wrong byte " + std::to_string(i));
  }
  std::printf("rank %u of %u in job %u: %zu bytes from rank %u over %s, all right\n", number, size,
              uet_job_id(job.get()), kBytes, peer, rail.c_str());
  // No rank closes its endpoint while a peer may still wait for an answer.
  check_job(uet_job_barrier(job.get()), "uet_job_barrier");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') {
    std::fprintf(stderr, "use: uet_run -n RANKS [--hosts FILE] %s INTERFACE...\n", argv[0]);
    return 2;
  }
  try {
    run(std::span(argv + 1, static_cast<std::size_t>(argc) - 1));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "four_ranks: %s\n", error.what());
    return 1;
  }
}
