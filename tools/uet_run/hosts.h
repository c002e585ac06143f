// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Where the ranks of a job go, and the command that starts an agent there. Pure functions of texts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace uet::run {

struct Host {
  std::string name;  // as ssh takes it
  std::uint32_t slots = 1;
  bool operator==(const Host&) const = default;
};

// A host file: "NAME [slots=N]" in each line, '#' begins a comment; also "NAME:N". Throws
// std::runtime_error with the number of the line.
std::vector<Host> parse_hosts(std::string_view text);

// The host of each rank: slots are filled in the order of hosts, and again from the first host when
// all are full.
std::vector<std::string> place_ranks(const std::vector<Host>& hosts, std::uint32_t ranks);

// A word for a shell.
std::string quoted(std::string_view word);

// The words of a template such as "ssh -o BatchMode=yes {host} {command}": {host} becomes `host`,
// {command} becomes `agent`, which a shell on the other side splits. Without {host} or {command}
// they are appended in this order, so that "ssh" stands for "ssh {host} {command}".
std::vector<std::string> fill_launcher(std::string_view pattern, std::string_view host,
                                       std::string_view agent);

}  // namespace uet::run
