/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libuet-job: what a parallel job needs before its first libfabric message, for programs that
 * uet_run(1) starts. Ranks tell each other blobs, addresses and memory regions over a TCP
 * connection of each rank to uet_run. Plain C; works with every provider of libfabric.
 *
 * Functions that return int return 0, or a negative error number of libfabric (fi_errno(3));
 * uet_job_error() then says the reason. All ranks make the same calls in the same order. A job is
 * used by one thread at a time. The calls below wait for the other ranks; they end with an error if
 * a rank has left or uet_run has ended, and have no other time limit.
 */
#ifndef UET_JOB_H
#define UET_JOB_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define UET_JOB_API __attribute__((visibility("default")))
#else
#define UET_JOB_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes that one rank gives to uet_job_all_gather. All ranks together: 256 MiB. */
#define UET_JOB_MAX_BLOB (1U << 20)

struct uet_job;

/* One memory region of one rank, in host byte order. */
struct uet_job_region {
  uint32_t job_id; /* 24 bits */
  uint32_t rank;
  uint32_t resource_index; /* of the rank's endpoint; 0 if its address is not of FI_ADDR_UET */
  uint32_t reserved;       /* 0 */
  uint64_t rkey;
  uint64_t base;   /* what peers give as address of its first byte */
  uint64_t length; /* bytes */
  uint64_t rights; /* FI_REMOTE_READ | FI_REMOTE_WRITE, as registered */
};

/*
 * Joins the job that the environment names (UET_RANK, UET_SIZE, UET_JOB_ID, UET_MASTER,
 * UET_JOB_TOKEN) and waits at most 60 s for uet_run. Without UET_RANK the process is rank 0 of a
 * job of 1. -FI_EINVAL: a variable is missing or broken; -FI_ECONNREFUSED, -FI_ETIMEDOUT: uet_run
 * cannot be reached; -FI_EACCES: uet_run refuses the token or the rank. uet_job_leave ends the job.
 */
UET_JOB_API int uet_job_join(struct uet_job** job);

/* Closes the connection and frees the job; NULL is allowed. Other objects stay. */
UET_JOB_API void uet_job_leave(struct uet_job* job);

UET_JOB_API uint32_t uet_job_rank(const struct uet_job* job); /* 0 to size - 1 */
UET_JOB_API uint32_t uet_job_size(const struct uet_job* job); /* ranks */
/* The JobID of endpoints without auth_key: FI_UET_JOB_ID, else that of uet_run, else 1. */
UET_JOB_API uint32_t uet_job_id(const struct uet_job* job);

/* Why the last call of this thread failed; valid until its next call. Never NULL. */
UET_JOB_API const char* uet_job_error(void);

/*
 * Every rank gives `bytes` bytes at `blob` and gets those of all, in rank order, at `all`, which
 * has room for size * bytes. -FI_EMSGSIZE: more than UET_JOB_MAX_BLOB, or ranks whose `bytes`
 * differ. -FI_ECONNABORTED: a rank has left, or uet_run has ended; every later call fails likewise.
 */
UET_JOB_API int uet_job_all_gather(struct uet_job* job, const void* blob, size_t bytes, void* all);

/* Returns when all ranks have called it. Errors as uet_job_all_gather. */
UET_JOB_API int uet_job_barrier(struct uet_job* job);

/*
 * Inserts the addresses of the enabled endpoints `ep` of all ranks into `av`, in rank order, so
 * that an empty AV of type FI_AV_TABLE gives rank r the fi_addr_t r. `addresses`: room for size of
 * them. The application makes progress itself where inserting needs it. Errors also of fi_getname
 * and fi_av_insert; -FI_EADDRNOTAVAIL: `av` does not take an address.
 */
UET_JOB_API int uet_job_fill_av(struct uet_job* job, struct fid_ep* ep, struct fid_av* av,
                                fi_addr_t* addresses);

/*
 * Tells all ranks of the region `mr` of `length` bytes at `buffer`, registered with `access` in a
 * domain of `info` and reached through the enabled endpoint `ep`; every rank publishes one region.
 * `mr` may be NULL: a region of length 0. `table`: room for size regions, which come in rank order.
 */
UET_JOB_API int uet_job_publish(struct uet_job* job, const struct fi_info* info, struct fid_ep* ep,
                                struct fid_mr* mr, const void* buffer, size_t length,
                                uint64_t access, struct uet_job_region* table);

#ifdef __cplusplus
}
#endif

#endif
