// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "uet_exporter/server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace uet::exporter {

namespace {

constexpr unsigned kConnections = 16;
constexpr unsigned kPatienceSeconds = 10;  // with a connection that says nothing

MHD_Result answer(MHD_Connection* connection, unsigned status, const std::string& text,
                  const char* type) {
  // The library copies the text and does not change it.
  MHD_Response* const response = MHD_create_response_from_buffer(
      text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  }
  const MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

MHD_Result handle(void* context, MHD_Connection* connection, const char* url, const char* method,
                  const char*, const char*, std::size_t* upload_bytes, void**) {
  const std::string_view verb(method);
  if (verb != "GET" && verb != "HEAD") {
    *upload_bytes = 0;
    return answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET /metrics\n", "text/plain");
  }
  if (std::string_view(url) != "/metrics") {
    return answer(connection, MHD_HTTP_NOT_FOUND, "see /metrics\n", "text/plain");
  }
  try {
    const std::string text = (*static_cast<std::function<std::string()>*>(context))();
    return answer(connection, MHD_HTTP_OK, text, "text/plain; version=0.0.4; charset=utf-8");
  } catch (const std::exception&) {
    return MHD_NO;  // no memory: the connection is closed
  }
}

}  // namespace

Server::Server(const std::string& address, std::uint16_t port, std::function<std::string()> text)
    : text_(std::move(text)) {
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  v4.sin_family = AF_INET;
  v6.sin6_family = AF_INET6;
  v4.sin_port = v6.sin6_port = htons(port);
  const bool is_v6 = ::inet_pton(AF_INET6, address.c_str(), &v6.sin6_addr) == 1;
  if (!is_v6 && ::inet_pton(AF_INET, address.c_str(), &v4.sin_addr) != 1) {
    throw std::runtime_error(address + " is no IP address");
  }
  const void* const where = is_v6 ? static_cast<const void*>(&v6) : &v4;
  errno = 0;
  const unsigned family = is_v6 ? unsigned{MHD_USE_IPv6} : 0U;
  daemon_ = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO | family, port, nullptr,
                             nullptr, handle, &text_, MHD_OPTION_SOCK_ADDR, where,
                             MHD_OPTION_CONNECTION_LIMIT, kConnections,
                             MHD_OPTION_CONNECTION_TIMEOUT, kPatienceSeconds, MHD_OPTION_END);
  if (daemon_ == nullptr) {
    throw std::runtime_error("cannot listen at " + address + " port " + std::to_string(port) +
                             ": " + std::strerror(errno));
  }
}

Server::~Server() { MHD_stop_daemon(daemon_); }

std::uint16_t Server::port() const {
  const MHD_DaemonInfo* const info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_BIND_PORT);
  return info != nullptr ? info->port : 0;
}

}  // namespace uet::exporter
