// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The HTTP side: /metrics and nothing else, on the address that was named.
#include "uet_exporter/server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace uet::exporter {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// The whole answer to a request.
std::string ask(std::uint16_t port, const std::string& request) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) {
    EXPECT_EQ(::send(fd, request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    char block[4096];
    for (ssize_t got; (got = ::recv(fd, block, sizeof block, 0)) > 0;) {
      answer.append(block, static_cast<std::size_t>(got));
    }
  }
  ::close(fd);
  return answer;
}

std::string request(const std::string& verb, const std::string& path) {
  return verb + " " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
}

class ServerTest : public testing::Test {
 protected:
  Server server_{"127.0.0.1", 0, [] { return std::string("uet_apples 3\n"); }};
};

TEST_F(ServerTest, AnswersWithTheText) {
  const std::string answer = ask(server_.port(), request("GET", "/metrics"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answer, HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\nuet_apples 3\n"));
  EXPECT_THAT(ask(server_.port(), request("HEAD", "/metrics")), Not(HasSubstr("apples")));
}

TEST_F(ServerTest, RefusesAllElse) {
  EXPECT_THAT(ask(server_.port(), request("GET", "/")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(server_.port(), request("GET", "/../etc/passwd")), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(server_.port(), request("DELETE", "/metrics")), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask(server_.port(), "apples\r\n\r\n"), Not(HasSubstr(" 200 ")));
}

TEST_F(ServerTest, SaysWhyItCannotListen) {
  EXPECT_THROW(Server("127.0.0.1", server_.port(), [] { return std::string(); }),
               std::runtime_error);
  EXPECT_THROW(Server("apples", 0, [] { return std::string(); }), std::runtime_error);
}

}  // namespace
}  // namespace uet::exporter
