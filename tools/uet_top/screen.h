// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Draws a Model on the terminal with ncurses, and reads its keys.
#pragma once

#include <chrono>
#include <functional>

#include "uet_top/model.h"

namespace uet::top {

// Runs until the user ends it with q. `read` gives the domains at each interval. Throws
// std::runtime_error if the standard output is no terminal that ncurses knows.
void run_screen(Model& model, std::chrono::duration<double> interval,
                const std::function<view::Reading()>& read);

}  // namespace uet::top
