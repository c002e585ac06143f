/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * What an application may want to know about the libfabric provider "uet" beyond libfabric's own
 * headers. Plain C. libfabric itself has no numbers for Ultra Ethernet Transport; these are private
 * to this provider and stay the same.
 */
#ifndef FI_EXT_UET_H
#define FI_EXT_UET_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * fi_info.addr_format of an endpoint address: FI_ADDR_UET_SIZE bytes, all numbers big-endian.
 *
 *   offset  size  member
 *        0     1  version in the upper four bits, 0
 *        1     1  flags: 0x01 capabilities, 0x02 fabric address, 0x04 PIDonFEP, 0x08 resource
 *                 index, 0x10 initiator id are valid; 0x20 absolute addressing; 0x40 IPv6;
 *                 0x80 messages of at most one MTU
 *        2     1  capabilities: 0x01 AI base, 0x02 AI full, 0x04 HPC, 0x40 reordering,
 *                 0x80 optimized non-matching header
 *        3     1  0
 *        4    16  fabric address: IPv6, or IPv4 and 12 zero bytes
 *       20     2  PIDonFEP, 12 bits
 *       22     2  first resource index, 12 bits
 *       24     2  number of resource indices
 *       26     2  UDP port, 0 = 4793
 *       28     4  initiator id
 *
 * fi_av_straddr shows it as "fi_addr_uet://10.0.0.1:4793?pid=0&ri=1&n=1&init=5" (IPv6 in brackets);
 * fi_getinfo and fi_av_insertsvc accept that text as node.
 */
#define FI_ADDR_UET (0x80554554U)
#define FI_ADDR_UET_SIZE 32

/*
 * fi_ep_attr.protocol, protocol_version 1: UET 1.0 over UDP. Some applications read the number as
 * an int, so that it has no sign bit; hints may also give the number of earlier versions.
 */
#define FI_PROTO_UET (0x00554554U)
#define FI_PROTO_UET_OLD (0x80554554U)
#define FI_PROTO_UET_VERSION 1

/* A JobID as auth_key: 3 bytes, most significant first (or 4 bytes, the first one 0). */
#define FI_UET_AUTH_KEY_SIZE 3

/*
 * Flag of fi_ep_bind and fi_domain_bind for an EQ: events of the fabric are written to it. With
 * fi_domain_bind also together with FI_REG_MR.
 *
 * An error entry (fi_eq_readerr) whose fid is the bound object and whose err is
 *   FI_ETIMEDOUT   a peer does not answer and is given up: all operations to it have failed
 *   FI_ECONNRESET  the process of a peer has ended: known on this host through rings
 *                  (FI_UET_LOCAL); on any host, with keep_alive_ms of FI_UET_TUNING, from an
 *                  ICMP message over kernel UDP that says that no process has the port
 *   FI_ENETDOWN    the interface of the domain is down
 * For a peer, err_data is its address in the endpoint's format. If the EQ is bound to an endpoint
 * and the endpoint's AV knows the peer, data is its fi_addr_t, and there is an entry for each
 * address of the AV that leads to it; otherwise data is FI_ADDR_NOTAVAIL.
 *
 * The event FI_UET_LINK_UP (struct fi_eq_entry): the interface is up again.
 */
#define FI_UET_FABRIC_EVENTS (1ULL << 60)
#define FI_UET_LINK_UP (0x00554501U)

/*
 * The long form of auth_key, for transport security (FI_UET_TSS): JobID, SDI and SSI, 4 bytes each,
 * most significant first; the first byte of JobID and SDI is 0. The SDI chooses a secure domain of
 * the key file, the SSI names this process in it; 0 leaves the SSI of the key file. The auth_key of
 * a domain chooses; that of an endpoint or a region must have the SDI and SSI of its domain: open a
 * domain for each SDI. Never a key.
 */
#define FI_UET_TSS_AUTH_KEY_SIZE 12

/*
 * The counters of a domain:
 *
 *   struct fi_uet_stats_ops *stats;
 *   fi_open_ops(&domain->fid, FI_UET_STATS_OPS, 0, (void **) &stats, NULL);
 *
 * Names, meanings and order are the same for all domains of a process. A counter keeps its name in
 * later versions, but others may come before it: find it by name. Counters only grow, from 0 when
 * the domain is opened, and wrap at 2^64. All of them: fi_uet(7), COUNTERS.
 */
#define FI_UET_STATS_OPS "uet_stats"

struct fi_uet_counter {
  const char* name;    /* "pds_rto_retransmissions"; valid as long as the provider is loaded */
  const char* meaning; /* a few words, for people; likewise */
};

/*
 * Later versions may add members at the end: a member is there if "size" says that it lies inside.
 * The table itself belongs to the provider and is never freed.
 */
struct fi_uet_stats_ops {
  size_t size; /* of this structure */
  /* How many counters there are. */
  size_t (*count)(struct fid_domain* domain);
  /* Tells of counter "index", from 0. -FI_EINVAL: there is none. */
  int (*describe)(struct fid_domain* domain, size_t index, struct fi_uet_counter* counter);
  /*
   * Writes the first "count" counters to "values", as they are now; more than there are is no
   * error. Returns how many, or -FI_EOPNOTSUPP in a forked child. Calls for one domain follow
   * its threading model.
   */
  ssize_t (*read)(struct fid_domain* domain, uint64_t* values, size_t count);
};

/*
 * The event trace of a domain:
 *
 *   struct fi_uet_trace_ops *trace;
 *   fi_open_ops(&domain->fid, FI_UET_TRACE_OPS, 0, (void **) &trace, NULL);
 */
#define FI_UET_TRACE_OPS "uet_trace"

/* As fi_uet_stats_ops: a member is there if "size" says that it lies inside. */
struct fi_uet_trace_ops {
  size_t size;
  /*
   * Appends the newest 8,192 events and all that waits to "file", as text that uet_trace(1) reads;
   * NULL: to standard error. %p in the name becomes the process id. 0, -FI_EOPNOTSUPP in a forked
   * child, or the error of opening or writing the file. Follows the threading model of the domain.
   */
  int (*dump)(struct fid_domain* domain, const char* file);
};

/*
 * The keys of a domain that FI_UET_TSS has secured, for an agent inside the program:
 *
 *   struct fi_uet_tss_ops *tss;
 *   fi_open_ops(&domain->fid, FI_UET_TSS_OPS, 0, (void **) &tss, NULL);
 *
 * A rotation has two steps: install the next key for the AN (association number, 0 or 1) that does
 * not seal, at all members; then activate it. The old key opens packets for the guard time of the
 * key file. When the key file changes it replaces what these calls have done: use one of both.
 *
 * All calls give 0 or: -FI_EOPNOTSUPP: the domain is in clear, or in a forked child; -FI_ENOENT: it
 * does not have the secure domain, or no key for the AN; -FI_EINVAL: an argument is not allowed.
 * They follow the threading model of the domain.
 */
#define FI_UET_TSS_OPS "uet_tss_ops"

enum fi_uet_tss_history {
  FI_UET_TSS_FRESH,  /* this identity has sealed nothing with the key */
  FI_UET_TSS_KNOWN,  /* next_tsc is above all that was used in the epoch */
  FI_UET_TSS_UNKNOWN /* a newer epoch must be set before anything is sealed */
};

struct fi_uet_tss_key {
  uint32_t sdi;
  int an;      /* 0 or 1 */
  int history; /* enum fi_uet_tss_history */
  uint16_t epoch;
  uint64_t next_tsc;
  const uint8_t* key; /* copied; zero it afterwards */
  size_t key_size;    /* 32; of a client 44: its derived key and its IV mask */
};

/* Later versions may add members at the end. */
struct fi_uet_tss_counters {
  uint64_t out_auth;
  uint64_t out_errored;
  uint64_t out_invoke_fail;
  uint64_t in_auth;
  uint64_t in_auth_fail;
  uint64_t in_late;
  uint64_t in_invalid;
  uint64_t in_invalid_sa;
  uint64_t in_binding_failure;
  uint64_t in_errored;
  uint64_t in_rx_encryption_bypass;
  uint64_t in_trimmed;
};

/*
 * A key slot. Equal keys have equal fingerprints ("uet_keys show" prints them); the key does not
 * follow from the fingerprint.
 */
struct fi_uet_tss_slot {
  uint8_t has_key;
  uint8_t active; /* packets are sealed with this key */
  uint16_t epoch; /* of the packets sealed here */
  uint8_t fingerprint[6];
};

/* Later versions may add members at the end. */
struct fi_uet_tss_state {
  uint32_t sdi;                   /* of the domain's own secure domain */
  struct fi_uet_tss_slot slot[2]; /* by AN */
};

/* As fi_uet_stats_ops: a member is there if "size" says that it lies inside. */
struct fi_uet_tss_ops {
  size_t size;
  /*
   * Packets sealed with the key can be opened from now on. -FI_EBUSY: the slot has another key;
   * -FI_ENOKEY: this domain has used the key, and the history says fresh.
   */
  int (*install)(struct fid_domain* domain, const struct fi_uet_tss_key* key);
  /* Packets are sealed with this key from now on. -FI_ENOKEY: as above, or no TSC is left. */
  int (*activate)(struct fid_domain* domain, uint32_t sdi, int an);
  /* A newer epoch of the key; -FI_EINVAL if it is not newer. */
  int (*set_epoch)(struct fid_domain* domain, uint32_t sdi, int an, uint16_t epoch);
  /* Zeroes the key; -FI_EBUSY: packets are sealed with it. */
  int (*remove)(struct fid_domain* domain, uint32_t sdi, int an);
  /* Writes `size` bytes of the counters; what this version does not know is 0. */
  int (*count)(struct fid_domain* domain, uint32_t sdi, struct fi_uet_tss_counters* counters,
               size_t size);
  /* Writes `size` bytes of the state; what this version does not know is 0. */
  int (*describe)(struct fid_domain* domain, struct fi_uet_tss_state* state, size_t size);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_UET_H */
