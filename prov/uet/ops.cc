// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Whole tables of what is not served.
#include "ops.h"

namespace uet::prov {

fi_ops_msg no_msg = transmit_only(receive_only(fi_ops_msg{.size = sizeof(fi_ops_msg)}));
fi_ops_tagged no_tagged = transmit_only(receive_only(fi_ops_tagged{.size = sizeof(fi_ops_tagged)}));

fi_ops_rma no_rma = {
    .size = sizeof(fi_ops_rma),
    .read = not_supported<&fi_ops_rma::read>,
    .readv = not_supported<&fi_ops_rma::readv>,
    .readmsg = not_supported<&fi_ops_rma::readmsg>,
    .write = not_supported<&fi_ops_rma::write>,
    .writev = not_supported<&fi_ops_rma::writev>,
    .writemsg = not_supported<&fi_ops_rma::writemsg>,
    .inject = not_supported<&fi_ops_rma::inject>,
    .writedata = not_supported<&fi_ops_rma::writedata>,
    .injectdata = not_supported<&fi_ops_rma::injectdata>,
};

fi_ops_atomic no_atomics = {
    .size = sizeof(fi_ops_atomic),
    .write = not_supported<&fi_ops_atomic::write>,
    .writev = not_supported<&fi_ops_atomic::writev>,
    .writemsg = not_supported<&fi_ops_atomic::writemsg>,
    .inject = not_supported<&fi_ops_atomic::inject>,
    .readwrite = not_supported<&fi_ops_atomic::readwrite>,
    .readwritev = not_supported<&fi_ops_atomic::readwritev>,
    .readwritemsg = not_supported<&fi_ops_atomic::readwritemsg>,
    .compwrite = not_supported<&fi_ops_atomic::compwrite>,
    .compwritev = not_supported<&fi_ops_atomic::compwritev>,
    .compwritemsg = not_supported<&fi_ops_atomic::compwritemsg>,
    .writevalid = not_supported<&fi_ops_atomic::writevalid>,
    .readwritevalid = not_supported<&fi_ops_atomic::readwritevalid>,
    .compwritevalid = not_supported<&fi_ops_atomic::compwritevalid>,
};

fi_ops_collective no_collectives = {
    .size = sizeof(fi_ops_collective),
    .barrier = not_supported<&fi_ops_collective::barrier>,
    .broadcast = not_supported<&fi_ops_collective::broadcast>,
    .alltoall = not_supported<&fi_ops_collective::alltoall>,
    .allreduce = not_supported<&fi_ops_collective::allreduce>,
    .allgather = not_supported<&fi_ops_collective::allgather>,
    .reduce_scatter = not_supported<&fi_ops_collective::reduce_scatter>,
    .reduce = not_supported<&fi_ops_collective::reduce>,
    .scatter = not_supported<&fi_ops_collective::scatter>,
    .gather = not_supported<&fi_ops_collective::gather>,
    .msg = not_supported<&fi_ops_collective::msg>,
    .barrier2 = not_supported<&fi_ops_collective::barrier2>,
};

}  // namespace uet::prov
