// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The functions of uet_job.h: libfabric's objects on one side, Client on the other.
#include "uet/uet_job.h"

#include <rdma/fi_cm.h>
#include <rdma/fi_errno.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "uet/fi_ext_uet.h"
#include "uet_job/client.h"

struct uet_job {
  uet::job::Client client;
};

namespace {

constexpr int kJoinPatienceMs = 60'000;
constexpr std::size_t kMostNameBytes = 512;
constexpr int kMrBasic = 1 << 0;      // FI_MR_BASIC, whose name libfabric 2 deprecates
constexpr std::size_t kIndexAt = 22;  // of the first resource index in an FI_ADDR_UET

// An endpoint's address with its length, for an all-gather of equal blobs.
struct Name {
  std::uint32_t length = 0;
  std::array<char, kMostNameBytes> bytes{};
};

thread_local std::string last_problem;

int fail(int error, const std::string& problem) {
  last_problem = problem;
  return error;
}

int fail_of(const uet_job& job, int error) { return fail(error, job.client.problem()); }

int fail_of_libfabric(const char* call, int error) {
  return fail(error, std::string(call) + ": " + fi_strerror(-error));
}

int name_of(fid_ep* ep, Name& name) {
  std::size_t length = name.bytes.size();
  const int result = fi_getname(&ep->fid, name.bytes.data(), &length);
  if (result != 0) return fail_of_libfabric("fi_getname", result);
  name.length = static_cast<std::uint32_t>(length);
  return 0;
}

template <class T>
int gather(uet_job& job, const T& own, std::vector<T>& all) {
  all.resize(job.client.place().size);
  const int result = job.client.all_gather({reinterpret_cast<const char*>(&own), sizeof own},
                                           reinterpret_cast<char*>(all.data()));
  return result == 0 ? 0 : fail_of(job, result);
}

std::uint32_t job_id_of(const uet_job& job, const fi_info& info) {
  const auto read = [](const std::uint8_t* key, std::size_t size) {
    std::uint32_t id = 0;
    for (std::size_t i = 0; i < size && i < 4; ++i) id = id << 8 | key[i];
    return id;
  };
  for (const auto& [key, size] :
       {std::pair{info.ep_attr ? info.ep_attr->auth_key : nullptr,
                  info.ep_attr ? info.ep_attr->auth_key_size : 0},
        std::pair{info.domain_attr ? info.domain_attr->auth_key : nullptr,
                  info.domain_attr ? info.domain_attr->auth_key_size : 0}}) {
    if (key != nullptr && size >= FI_UET_AUTH_KEY_SIZE) return read(key, size);
  }
  return job.client.place().job_id;
}

// Nothing may leave a C function.
template <class Call>
int guarded(Call&& call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return -FI_ENOMEM;
  }
}

}  // namespace

int uet_job_join(uet_job** job) {
  return guarded([&] {
    *job = nullptr;
    last_problem.clear();
    uet::job::Place place;
    std::string problem;
    const auto get = [](const char* name) -> const char* { return std::getenv(name); };
    if (const int result = read_place(get, place, problem); result != 0) {
      return fail(result, problem);
    }
    auto made = std::make_unique<uet_job>();
    if (const int result = made->client.join(place, kJoinPatienceMs); result != 0) {
      return fail_of(*made, result);
    }
    *job = made.release();
    return 0;
  });
}

void uet_job_leave(uet_job* job) { delete job; }

std::uint32_t uet_job_rank(const uet_job* job) { return job->client.place().rank; }
std::uint32_t uet_job_size(const uet_job* job) { return job->client.place().size; }
std::uint32_t uet_job_id(const uet_job* job) { return job->client.place().job_id; }

const char* uet_job_error(void) { return last_problem.c_str(); }

int uet_job_all_gather(uet_job* job, const void* blob, std::size_t bytes, void* all) {
  return guarded([&] {
    const int result =
        job->client.all_gather({static_cast<const char*>(blob), bytes}, static_cast<char*>(all));
    return result == 0 ? 0 : fail_of(*job, result);
  });
}

int uet_job_barrier(uet_job* job) { return uet_job_all_gather(job, nullptr, 0, nullptr); }

int uet_job_fill_av(uet_job* job, fid_ep* ep, fid_av* av, fi_addr_t* addresses) {
  return guarded([&] {
    Name own;
    if (const int result = name_of(ep, own); result != 0) return result;
    std::vector<Name> all;
    if (const int result = gather(*job, own, all); result != 0) return result;
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      const int result = fi_av_insert(av, all[rank].bytes.data(), 1, &addresses[rank], 0, nullptr);
      if (result < 0) return fail_of_libfabric("fi_av_insert", result);
      if (result != 1) {
        return fail(-FI_EADDRNOTAVAIL, "fi_av_insert: the AV does not take the address of rank " +
                                           std::to_string(rank));
      }
    }
    return 0;
  });
}

int uet_job_publish(uet_job* job, const fi_info* info, fid_ep* ep, fid_mr* mr, const void* buffer,
                    std::size_t length, std::uint64_t access, uet_job_region* table) {
  return guarded([&] {
    uet_job_region own{};
    own.rank = job->client.place().rank;
    own.job_id = job_id_of(*job, *info);
    Name name;
    if (const int result = name_of(ep, name); result != 0) return result;
    if (info->addr_format == FI_ADDR_UET && name.length == FI_ADDR_UET_SIZE) {
      const auto at = [&](std::size_t i) { return static_cast<unsigned char>(name.bytes[i]); };
      own.resource_index = static_cast<std::uint32_t>(at(kIndexAt) << 8 | at(kIndexAt + 1));
    }
    if (mr != nullptr) {
      const bool by_address = (info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | kMrBasic)) != 0;
      own.rkey = fi_mr_key(mr);
      own.base = by_address ? reinterpret_cast<std::uintptr_t>(buffer) : 0;
      own.length = length;
      own.rights = access & (FI_REMOTE_READ | FI_REMOTE_WRITE);
    }
    const int result = job->client.all_gather({reinterpret_cast<const char*>(&own), sizeof own},
                                              reinterpret_cast<char*>(table));
    return result == 0 ? 0 : fail_of(*job, result);
  });
}
