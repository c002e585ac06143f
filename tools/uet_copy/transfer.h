// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The two programs in one: the server of a directory, and a client that copies one path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "failure.h"

namespace uet::copy {

struct Common {
  std::string provider = "uet";
  std::string port;
  bool direct = true;  // past the page cache where the file system can
  bool json = false;
};

struct ServeOptions : Common {
  std::string directory;
  std::string listen;  // address; empty: any interface
  bool read_only = false;
};

struct CopyOptions : Common {
  std::string from;
  std::string to;
  bool tree = false;
  bool sync = false;
  bool verify = false;
  bool quiet = false;      // no progress line
  std::optional<int> gpu;  // CUDA device whose memory the file goes through
  unsigned streams = 1;
  unsigned slot_mib = 1;
  unsigned slots = 8;
};

// Serves until SIGINT or SIGTERM. Throws Failure.
void serve(const ServeOptions& options);
// Copies and prints the report; its exit status.
Status copy(const CopyOptions& options);

// "HOST:PATH", "[IPV6]:PATH"; host empty: a path of this host.
struct Place {
  std::string host;
  std::string path;
};
Place parse_place(const std::string& text);

}  // namespace uet::copy
