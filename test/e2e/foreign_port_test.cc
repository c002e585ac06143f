// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A peer of another implementation that listens at a UDP port of its own choice and sends from
// others: packet by packet over two sockets. And our own processes at other ports than 4793.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "objects.h"
#include "uet/fi_ext_uet.h"
#include "uet/wire/ses.h"
#include "wire/parse.h"

namespace uet::e2e {
namespace {

constexpr std::uint16_t kListens = 49150;  // the constant of the consortium's provider
constexpr std::uint16_t kSends = 0x4242;   // its entropy value
constexpr const char* kHost = "127.0.0.2";
constexpr const char* kName = "fi_addr_uet://127.0.0.2:49150?pid=0&ri=15&n=1&init=16&caps=1";

class Socket {
 public:
  explicit Socket(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const sockaddr_in at = address(kHost, port);
    require(::bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0, "bind");
  }
  ~Socket() { ::close(fd_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void send(std::span<const std::byte> bytes, const sockaddr_in& to) const {
    const auto* any = reinterpret_cast<const sockaddr*>(&to);
    require(::sendto(fd_, bytes.data(), bytes.size(), 0, any, sizeof to) > 0, "sendto");
  }
  std::optional<std::vector<std::byte>> receive(int milliseconds) const {
    pollfd ready{.fd = fd_, .events = POLLIN, .revents = 0};
    if (::poll(&ready, 1, milliseconds) <= 0) return {};
    std::vector<std::byte> bytes(10'000);
    const ssize_t length = ::recv(fd_, bytes.data(), bytes.size(), 0);
    require(length >= 0, "recv");
    bytes.resize(static_cast<std::size_t>(length));
    return bytes;
  }
  static sockaddr_in address(const char* host, std::uint16_t port) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    inet_pton(AF_INET, host, &at.sin_addr);
    return at;
  }

 private:
  int fd_;
};

class ForeignPort : public testing::Test {
 protected:
  static SideOptions options() {
    return {.capabilities = FI_MSG | FI_SOURCE,
            .hints = [](fi_info& hints) { hints.addr_format = FI_ADDR_STR; }};
  }

  fi_addr_t insert() {
    fi_addr_t address = FI_ADDR_UNSPEC;
    require(fi_av_insert(side_.av.get(), kName, 1, &address, 0, nullptr) == 1, "fi_av_insert");
    return address;
  }
  // Where our endpoint listens, which FI_ADDR_STR gives as text.
  sockaddr_in us() const {
    const auto name = Side::name_of(*ep_);
    const std::string text(reinterpret_cast<const char*>(name.data()));
    const std::size_t colon = text.rfind(':', text.find('?'));
    return Socket::address("127.0.0.1",
                           static_cast<std::uint16_t>(std::stoi(text.substr(colon + 1))));
  }
  // Opens the PDC `id` with a message of 4 bytes to our endpoint.
  std::vector<std::byte> opening(std::uint16_t id) const {
    wire::RequestHeader pds;
    pds.next_hdr = wire::NextHdr::RequestStd;
    pds.ar = pds.syn = true;
    pds.clear_psn_offset = -1;
    pds.psn = Psn{0x0005'1000};
    pds.spdcid = PdcId{id};
    wire::SesRequest ses;
    ses.opcode = wire::SesOpcode::Send;
    ses.rel = true;
    ses.message_id = MsgId{id};
    ses.job_id = JobId{1};
    ses.resource_index = ResourceIndex{1};
    ses.initiator = InitiatorId{16};
    ses.request_length = 4;
    std::vector<std::byte> bytes(200);
    std::size_t length = pds.encode(bytes.data());
    length += ses.encode(bytes.data() + length);
    std::memcpy(bytes.data() + length, "abc", 4);
    bytes.resize(length + 4);
    return bytes;
  }
  // The next packet at the port of the peer, while we make progress; nothing if none comes in 2 s.
  std::optional<std::vector<std::byte>> hear(const Socket& socket) {
    for (int tries = 0; tries < 200; ++tries) {
      if (!event_) event_ = Side::poll(*side_.cq, &source_);
      if (auto bytes = socket.receive(10)) return bytes;
    }
    return {};
  }
  Event completion() {
    for (int tries = 0; tries < 200 && !event_; ++tries) {
      event_ = Side::poll(*side_.cq, &source_);
      ::usleep(1000);
    }
    require(event_.has_value(), "no completion came");
    const Event event = *event_;
    event_.reset();
    return event;
  }

  Side side_{options()};
  Owned<fid_ep> ep_ = side_.open_endpoint(0);
  Socket listener_{kListens};
  Socket sender_{kSends};
  std::optional<Event> event_;
  fi_addr_t source_ = FI_ADDR_UNSPEC;
};

TEST_F(ForeignPort, Wire11_SendToForeignPort_ReplyFromAnother) {
  const fi_addr_t peer = insert();
  char context = 0;
  ASSERT_EQ(fi_send(ep_.get(), "abc", 4, nullptr, peer, &context), 0);
  const auto packet = hear(listener_);
  ASSERT_TRUE(packet.has_value()) << "nothing came to port 49150";
  wire::RequestHeader request;
  ASSERT_TRUE(wire::RequestHeader::decode(*packet, request));
  wire::AckHeader ack;
  ack.next_hdr = wire::NextHdr::Response;
  ack.cack_psn = request.psn;
  ack.spdcid = PdcId{0x0D01};
  ack.dpdcid = request.spdcid;
  wire::SesResponseHeader response;
  response.opcode = wire::ResponseOpcode::DefaultResponse;
  response.return_code = wire::ReturnCode::Ok;
  response.job_id = JobId{1};
  response.modified_length = 4;
  wire::SesRequest asked;
  ASSERT_TRUE(wire::SesRequest::decode(
      request.next_hdr, std::span(*packet).subspan(wire::pds_header_bytes(request.type)), asked));
  response.message_id = asked.message_id;
  std::vector<std::byte> bytes(100);
  std::size_t length = ack.encode(bytes.data());
  length += response.encode(bytes.data() + length);
  bytes.resize(length);
  sender_.send(bytes, us());
  const Event done = completion();
  EXPECT_EQ(done.context, &context);
  EXPECT_EQ(done.error, 0);
}

TEST_F(ForeignPort, Wire11_AnswerGoesToThePortInTheAddressVector) {
  const fi_addr_t peer = insert();
  char room[4] = "";
  ASSERT_EQ(fi_recv(ep_.get(), room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0);
  sender_.send(opening(0x0C41), us());
  const auto packet = hear(listener_);
  ASSERT_TRUE(packet.has_value()) << "no ACK came to port 49150";
  wire::AckHeader ack;
  ASSERT_TRUE(wire::AckHeader::decode(*packet, ack));
  EXPECT_EQ(ack.dpdcid, PdcId{0x0C41});
  EXPECT_EQ(completion().context, room);
  EXPECT_STREQ(room, "abc");
  EXPECT_EQ(source_, peer) << "FI_SOURCE names it";
}

TEST_F(ForeignPort, Wire11_AnswerToAStrangerGoesTo4793) {
  const Socket standard(4793);
  fi_addr_t peer = insert();
  ASSERT_EQ(fi_av_remove(side_.av.get(), &peer, 1, 0), 0);
  char room[4] = "";
  ASSERT_EQ(fi_recv(ep_.get(), room, sizeof room, nullptr, FI_ADDR_UNSPEC, room), 0);
  sender_.send(opening(0x0C42), us());
  EXPECT_TRUE(hear(standard).has_value());
  EXPECT_FALSE(listener_.receive(0).has_value());
}

// ---- our own port -------------------------------------------------------------------------------

TEST(OwnPort, OtherBasePort_ServesUnrelatedProcesses) {
  ChannelPair channels;
  const Environment environment{{"FI_UET_UDP_PORT", "20000"}};
  char text[8] = "";
  Process server("server", environment, [&] {
    Node node({.capabilities = FI_MSG});
    require(udp_port(node.name()) == 20'000, "it is at the port asked for");
    check(fi_recv(node.ep.get(), text, sizeof text, nullptr, FI_ADDR_UNSPEC, text), "fi_recv");
    channels.left.send_bytes(node.name());
    node.next("a message of a stranger");
    require(std::strcmp(text, "abc") == 0, "the message arrives");
    channels.left.meet(&node);
  });
  Process client("client", environment, [&] {
    const auto name = channels.right.receive_bytes();
    Node node({.capabilities = FI_MSG});
    require(udp_port(node.name()) == 20'001, "the second process has the next port");
    const fi_addr_t peer = node.insert(name);
    node.post("fi_send", [&] { return fi_send(node.ep.get(), "abc", 4, nullptr, peer, text); });
    node.next("the end of a send");
    channels.right.meet(&node);
  });
  EXPECT_EQ(wait_for_all({&server, &client}), "");
}

TEST(OwnPort, PortNamesCountFromTheBase) {
  const Environment environment{{"FI_UET_UDP_PORT", "20000"}};
  Process process("process", environment, [&] {
    Node node({.service = "20003", .capabilities = FI_MSG});
    require(udp_port(node.name()) == 20'003, "a service of the range is that port");
  });
  EXPECT_EQ(process.wait(), "");
}

}  // namespace
}  // namespace uet::e2e
