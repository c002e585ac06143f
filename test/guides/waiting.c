// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Use: waiting SECONDS
// Opens an endpoint, waits for a message that never comes, and prints the CPU time of the wait in
// milliseconds. Waits by the block of docs/guides/processes.md if that defines wait_for_completion
// (BLOCK), else polls.
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#ifdef BLOCK
#include BLOCK
#else
static ssize_t wait_for_completion(struct fid_cq* cq, struct fi_cq_entry* entry) {
  ssize_t result;
  do {
    result = fi_cq_read(cq, entry, 1);
  } while (result == -FI_EAGAIN);
  return result;
}
#endif

static void check(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "%s: %s\n", what, fi_strerror(-result));
  exit(1);
}

static long cpu_us(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec +
         used.ru_stime.tv_usec;
}

static long before;

static void end(int signal) {
  (void)signal;
  printf("%.3f\n", (double)(cpu_us() - before) / 1000);
  fflush(stdout);
  _exit(0);
}

int main(int argc, char** argv) {
  struct fi_info* const hints = fi_allocinfo();
  struct fi_info* info;
  struct fid_fabric* fabric;
  struct fid_domain* domain;
  struct fid_av* av;
  struct fid_cq* cq;
  struct fid_ep* ep;
  struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
  struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .wait_obj = FI_WAIT_UNSPEC};
  struct fi_cq_entry entry;
  char message[64];
  if (argc != 2 || hints == NULL) return 2;
  hints->caps = FI_MSG;
  hints->ep_attr->type = FI_EP_RDM;
  hints->fabric_attr->prov_name = strdup("uet");
  check(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
  check(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
  check(fi_domain(fabric, info, &domain, NULL), "fi_domain");
  check(fi_av_open(domain, &av_attr, &av, NULL), "fi_av_open");
  check(fi_cq_open(domain, &cq_attr, &cq, NULL), "fi_cq_open");
  check(fi_endpoint(domain, info, &ep, NULL), "fi_endpoint");
  check(fi_ep_bind(ep, &av->fid, 0), "fi_ep_bind");
  check(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
  check(fi_enable(ep), "fi_enable");
  check((int)fi_recv(ep, message, sizeof message, NULL, FI_ADDR_UNSPEC, NULL), "fi_recv");
  signal(SIGALRM, end);
  before = cpu_us();
  alarm((unsigned)atoi(argv[1]));
  return wait_for_completion(cq, &entry) == 1 ? 0 : 1;
}
