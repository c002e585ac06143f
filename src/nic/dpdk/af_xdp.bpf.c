// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The XDP program as net_af_xdp of DPDK wants it: the map of its sockets has another name, one
// process has the program, and lists its endpoints when the driver has loaded it.
#include "nic/xdp_redirect.h"

#undef UET_XDP_PROGRAM
#define UET_XDP_PROGRAM uet_dpdk
#undef UET_XDP_SOCKETS
#define UET_XDP_SOCKETS xsks_map
#define UET_XDP_HAS_LIST 1
#include "../xdp/redirect.bpf.c"
