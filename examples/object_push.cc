// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Object storage that pushes: several server processes write the stripes of an object straight into
// the memory of a client. The client does not call libfabric meanwhile; it sleeps until one message
// says that the object is complete, or that it is lost. Over uet the writes are RUDI (a key with
// bit 63 promises that repeating them is harmless), so that they leave no state at the client.
//
//   object_push --client                     on one machine: takes objects and checks their bytes
//   object_push --serve ADDRESS              on another: the servers, one process for each
//   --servers N (8)  --objects N (1)  --bytes N (67108864, of an object)
//   --lose N (server: in object N one server ends half-way; its object is lost, the next is not)
//   --provider NAME (uet)  --port PORT (7473, TCP, for the introduction)
//
// The exit status is 0 if every object that was not to be lost came with the right bytes.
#include <rdma/fi_rma.h>
#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "common.h"
#include "uet/fi_ext_uet.h"

namespace {

using example::Endpoint;
using example::Introduction;
using example::Progress;
using example::Socket;

constexpr std::uint64_t kStripe = 1 << 20;
constexpr std::uint64_t kWindow = 8;                           // writes in flight of one server
constexpr std::uint64_t kRepeatable = std::uint64_t{1} << 63;  // of a key: writes may be repeated
constexpr std::chrono::seconds kClientPatience{60};            // for one object

struct Options {
  bool client = false;
  std::string serve;
  std::string provider = "uet";
  std::string port = "7473";
  std::uint64_t servers = 8;
  std::uint64_t objects = 1;
  std::uint64_t bytes = 64 * kStripe;
  std::uint64_t lose = 0;
};

// The one message of an object.
struct Verdict {
  std::uint64_t object = 0;
  std::uint64_t complete = 0;
};

// Word `index` of object `object`: bytes of another object or place never look right.
std::uint64_t word(std::uint64_t object, std::uint64_t index) {
  return (index + 1) * 0x9e3779b97f4a7c15 ^ object;
}

// ---- client ------------------------------------------------------------------------------------

// PDCs that the domain has opened or accepted; 0 over another provider.
std::uint64_t count_pdcs(fid_domain* domain) {
  fi_uet_stats_ops* stats = nullptr;
  if (fi_open_ops(&domain->fid, FI_UET_STATS_OPS, 0, reinterpret_cast<void**>(&stats), nullptr) !=
      0) {
    return 0;
  }
  const std::size_t count = stats->count(domain);
  std::vector<std::uint64_t> values(count);
  if (stats->read(domain, values.data(), count) < 0) return 0;
  std::uint64_t pdcs = 0;
  for (std::size_t i = 0; i < count; ++i) {
    fi_uet_counter counter{};
    if (stats->describe(domain, i, &counter) != 0) continue;
    const std::string_view name(counter.name);
    if (name == "pds_pdcs_accepted") pdcs += values[i];
  }
  return pdcs;
}

bool is_right(const std::vector<std::uint64_t>& memory, std::uint64_t object) {
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (memory[i] == word(object, i)) continue;
    std::fprintf(stderr, "object %llu is wrong at byte %zu\n",
                 static_cast<unsigned long long>(object), i * sizeof memory[i]);
    return false;
  }
  return true;
}

int run_client(const Options& options) {
  Socket socket = Socket::accept_one(options.port);
  std::vector<std::uint64_t> memory(options.bytes / sizeof(std::uint64_t));
  Verdict verdict;
  Endpoint endpoint(options.provider, FI_MSG | FI_RMA, socket.local_host(),
                    {Progress::Automatic, false});
  const auto post_receive = [&] {
    endpoint.post("posting the receive", [&] {
      return fi_recv(endpoint.ep(), &verdict, sizeof verdict, nullptr, FI_ADDR_UNSPEC, nullptr);
    });
  };
  post_receive();
  socket.send(endpoint.introduce(memory.data(), options.bytes, kRepeatable | 1));
  bool all_right = true;
  for (std::uint64_t object = 1; object <= options.objects; ++object) {
    const std::uint64_t messages = endpoint.received();
    while (endpoint.received() == messages) {
      if (!endpoint.sleep(kClientPatience)) example::fail("no word about the object");
      endpoint.poll();
    }
    if (verdict.object != object) example::fail("a word about another object");
    const bool complete = verdict.complete != 0;
    const bool right = complete && is_right(memory, object);
    std::printf("object %llu: %s\n", static_cast<unsigned long long>(object),
                right      ? "right"
                : complete ? "WRONG"
                           : "lost");
    all_right = all_right && (right || !complete);
    if (object < options.objects) post_receive();
    socket.send(std::uint8_t{1});  // the memory may be written again
  }
  // Of the writes none; one for each message, because each object has new server processes.
  std::printf("PDCs at the client: %llu\n",
              static_cast<unsigned long long>(count_pdcs(endpoint.domain())));
  return all_right ? 0 : 1;
}

// ---- servers -----------------------------------------------------------------------------------

// Server `index` of an object: writes every stripe whose number modulo the servers is its own.
void push_stripes(const Options& options, const std::string& local_host, const Introduction& client,
                  std::uint64_t object, std::uint64_t index) {
  std::vector<std::uint64_t> slots(kWindow * kStripe / sizeof(std::uint64_t));
  Endpoint endpoint(options.provider, FI_MSG | FI_RMA, local_host);
  endpoint.introduce(slots.data(), kWindow * kStripe);
  endpoint.meet(client);
  std::uint64_t posted = 0;
  for (std::uint64_t at = index * kStripe; at < options.bytes; at += options.servers * kStripe) {
    if (object == options.lose && index == 0 && at >= options.bytes / 2) std::_Exit(1);
    // Writes complete in any order: a slot is free for certain when all before it are.
    if (posted % kWindow == 0) {
      example::wait_until(endpoint, "writes", [&] { return endpoint.sent() == posted; });
    }
    std::uint64_t* const slot = slots.data() + posted % kWindow * (kStripe / sizeof(std::uint64_t));
    const std::uint64_t bytes = std::min(kStripe, options.bytes - at);
    for (std::uint64_t i = 0; i < bytes / sizeof *slot; ++i) {
      slot[i] = word(object, at / sizeof *slot + i);
    }
    endpoint.post("fi_write", [&] {
      return fi_write(endpoint.ep(), slot, bytes, endpoint.descriptor(), endpoint.peer(),
                      client.memory_address + at, client.memory_key, nullptr);
    });
    ++posted;
  }
  example::wait_until(endpoint, "writes", [&] { return endpoint.sent() == posted; });
}

// True: all servers have ended well.
bool push_object(const Options& options, const std::string& local_host, const Introduction& client,
                 std::uint64_t object) {
  std::vector<pid_t> servers;
  for (std::uint64_t i = 0; i < options.servers; ++i) {
    const pid_t child = ::fork();
    if (child < 0) example::fail("fork");
    if (child == 0) {
      try {
        push_stripes(options, local_host, client, object, i);
        std::_Exit(0);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "server %llu: %s\n", static_cast<unsigned long long>(i), error.what());
        std::_Exit(1);
      }
    }
    servers.push_back(child);
  }
  bool complete = true;
  for (const pid_t server : servers) {
    int status = 0;
    if (::waitpid(server, &status, 0) != server || status != 0) complete = false;
  }
  return complete;
}

// Its own process, so that this one never holds a domain when it forks.
bool say(const Options& options, const std::string& local_host, const Introduction& client,
         Verdict verdict) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      Endpoint endpoint(options.provider, FI_MSG | FI_RMA, local_host);
      endpoint.meet(client);
      endpoint.post("fi_send", [&] {
        return fi_send(endpoint.ep(), &verdict, sizeof verdict, nullptr, endpoint.peer(), nullptr);
      });
      example::wait_until(endpoint, "the message", [&] { return endpoint.sent() == 1; });
      std::_Exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "the last word: %s\n", error.what());
      std::_Exit(1);
    }
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

int run_servers(const Options& options) {
  Socket socket = Socket::connect_to(options.serve, options.port);
  const auto client = socket.receive<Introduction>();
  const std::string local_host = socket.local_host();
  bool as_wanted = true;
  for (std::uint64_t object = 1; object <= options.objects; ++object) {
    const auto start = std::chrono::steady_clock::now();
    const bool complete = push_object(options, local_host, client, object);
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
    std::printf("object %llu: %s, %.1f MB/s\n", static_cast<unsigned long long>(object),
                complete ? "written" : "lost",
                static_cast<double>(options.bytes) / 1e6 / time.count());
    std::fflush(stdout);
    if (!say(options, local_host, client, {object, complete ? 1U : 0U})) return 1;
    socket.receive<std::uint8_t>();
    as_wanted = as_wanted && complete == (object != options.lose);
  }
  return as_wanted ? 0 : 1;
}

// ---- the command line --------------------------------------------------------------------------

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--client") {
      options.client = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string_view value = argv[i];
    std::uint64_t* number = nullptr;
    if (name == "--serve")
      options.serve = value;
    else if (name == "--provider")
      options.provider = value;
    else if (name == "--port")
      options.port = value;
    else if (name == "--servers")
      number = &options.servers;
    else if (name == "--objects")
      number = &options.objects;
    else if (name == "--bytes")
      number = &options.bytes;
    else if (name == "--lose")
      number = &options.lose;
    else
      return false;
    if (number == nullptr) continue;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), *number);
    if (error != std::errc{} || end != value.data() + value.size()) return false;
  }
  return options.client == options.serve.empty() && options.servers > 0 && options.servers <= 64 &&
         options.objects > 0 && options.bytes > 0 && options.bytes % sizeof(std::uint64_t) == 0;
}

// RUDI is asked for by a parameter of uet; other providers do not read it.
void ask_for_rudi() {
  const char* given = std::getenv("FI_UET_TUNING");
  std::string tuning = given == nullptr ? "" : given;
  if (tuning.find("rudi=") != std::string::npos) return;
  tuning += tuning.empty() ? "rudi=yes" : ",rudi=yes";
  ::setenv("FI_UET_TUNING", tuning.c_str(), 1);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "usage: object_push --client | --serve ADDRESS [options]; see the source\n");
    return 2;
  }
  ask_for_rudi();
  try {
    return options.client ? run_client(options) : run_servers(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "object_push: %s\n", error.what());
    return 1;
  }
}
