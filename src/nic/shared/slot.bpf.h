/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The slot that a packet names: the one that begins the PDCID or the id of the RUDI request that
 * it answers or goes on with, or that the PIDonFEP in the SES header is modulo the number of
 * slots. For programs whose packets bpf_skb_load_bytes reads. */
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "nic/guard/pds_packet.bpf.h"
#include "nic/shared_steer.h"

#define NO_SLOT UET_SLOTS

#define LAST_SES_REQUEST 3
#define PKT_ID_AT 4
#define PID_ON_FEP_AT 8 /* in each of the SES requests (WIRE 3.2 to 3.4) */

/* The first bits of what is at `at`. */
static __always_inline __u32 slot_at(void* packet, __u32 at) {
  __u8 byte;
  if (bpf_skb_load_bytes(packet, at, &byte, 1) != 0) return NO_SLOT;
  return byte >> (8 - UET_SLOT_BITS);
}

static __always_inline __u32 slot_by_process(void* packet, __u8 next_hdr, __u32 ses_at) {
  __u8 pid[2];
  if (next_hdr == 0 || next_hdr > LAST_SES_REQUEST) return NO_SLOT;
  if (bpf_skb_load_bytes(packet, ses_at + PID_ON_FEP_AT, pid, 2) != 0) return NO_SLOT;
  return pid[1] % UET_SLOTS;
}

/* Of the packet that begins at `begin`. NO_SLOT: it names none. */
static __always_inline __u32 slot_of(void* packet, __u32 begin) {
  __u8 prologue[2];
  if (bpf_skb_load_bytes(packet, begin, prologue, 2) != 0) return NO_SLOT;
  const __u8 type = prologue[0] >> 3;
  const __u8 next_hdr = (prologue[0] & 7) << 1 | prologue[1] >> 7;
  switch (type) {
    case RUD_REQ:
    case ROD_REQ:
      if (prologue[1] & SYN) return slot_by_process(packet, next_hdr, begin + 12);
      return slot_at(packet, begin + DPDCID_AT);
    case RUD_CC_REQ:
    case ROD_CC_REQ:
      if (prologue[1] & SYN) return slot_by_process(packet, next_hdr, begin + 16);
      return slot_at(packet, begin + DPDCID_AT);
    case CP: /* one that opens a PDC does not say at whom */
      return prologue[1] & SYN ? NO_SLOT : slot_at(packet, begin + DPDCID_AT);
    case ACK:
    case ACK_CC:
    case ACK_CCX:
      return slot_at(packet, begin + DPDCID_AT);
    case NACK:
    case NACK_CCX:
      return slot_at(packet, begin + (prologue[1] & NACK_NT ? PKT_ID_AT : DPDCID_AT));
    case RUDI_REQ:
      return slot_by_process(packet, next_hdr, begin + 8);
    case RUDI_RESP:
      return slot_at(packet, begin + PKT_ID_AT);
    case UUD_REQ:
      return slot_by_process(packet, next_hdr, begin + 4);
    default:
      return NO_SLOT;
  }
}
