/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* As much of the PDS headers (WIRE 2) as kernel programs look at. */
#pragma once

/* WIRE 2.1 */
enum {
  RUD_REQ = 2,
  ROD_REQ = 3,
  RUDI_REQ = 4,
  RUDI_RESP = 5,
  UUD_REQ = 6,
  ACK = 7,
  ACK_CC = 8,
  ACK_CCX = 9,
  NACK = 10,
  CP = 11,
  NACK_CCX = 12,
  RUD_CC_REQ = 13,
  ROD_CC_REQ = 14,
};
#define SYN 0x04     /* of requests and control packets */
#define NACK_NT 0x08 /* it refuses a RUDI request */
#define DPDCID_AT 10
#define SYN_PSN_OFFSET 0x0FFF /* with SYN, where the PDC id is otherwise */
