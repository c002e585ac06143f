// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The operations "uet_tss_ops" of fi_open_ops (fi_ext_uet.h): an agent inside the program manages
// the keys of a domain.
#pragma once

#include "uet/fi_ext_uet.h"

namespace uet::prov {

// The table, for open_domain_ops. It belongs to the provider.
fi_uet_tss_ops& tss_ops();

}  // namespace uet::prov
