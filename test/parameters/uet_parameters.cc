// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Prints what the tables of parameters say: uet_parameters manual | markdown.
#include <cstdio>
#include <string_view>

#include "settings/param_page.h"

int main(int argc, char** argv) {
  const std::string_view form = argc == 2 ? argv[1] : "";
  if (form == "manual") {
    std::fputs(uet::prov::tuning_in_manual().c_str(), stdout);
  } else if (form == "markdown") {
    std::fputs(uet::prov::parameters_in_markdown().c_str(), stdout);
  } else {
    std::fputs("usage: uet_parameters manual | markdown\n", stderr);
    return 2;
  }
  return 0;
}
