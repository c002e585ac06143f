// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// FramedNic over a fake device, in a network name space of the test: one interface with a known
// neighbour, which does not exist.
#include "nic/framed/framed_nic.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

#include "unit/nic/nic_testing.h"

namespace uet::nic {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::byte>;

constexpr wire::MacAddress kPeerMac{0x02, 0, 0, 0, 0, 2};
const FabricAddress kSelf = ipv4(10, 85, 0, 1);
const FabricAddress kPeer = ipv4(10, 85, 0, 2);
const FabricAddress kUnknown = ipv4(10, 85, 0, 9);

class FakeDevice : public FrameDevice {
 public:
  struct Log {
    std::vector<Bytes> sent;
    std::deque<Bytes> arriving;
    std::size_t send_room = 1000;
    bool packets_wait = false;
    FrameDeviceTraits traits;
    NicCounters counters;
    int wait_fd = -1;
    std::string options;
    FepAddress self;
    std::uint64_t forgotten = 0;
    bool open = false;
  };

  explicit FakeDevice(Log& log) : log_(log) {
    log_.open = true;
    log_.traits.receive_credit_bytes = 12345;
  }
  ~FakeDevice() override { log_.open = false; }

  std::size_t receive(std::span<ArrivedFrame> out) override {
    lent_.clear();
    while (lent_.size() < out.size() && !log_.arriving.empty()) {
      lent_.push_back(std::move(log_.arriving.front()));
      log_.arriving.pop_front();
      out[lent_.size() - 1] = {.bytes = lent_.back()};
    }
    return lent_.size();
  }
  std::size_t send(std::span<const FrameToSend> in) override {
    const std::size_t taken = std::min(in.size(), log_.send_room);
    for (const FrameToSend& frame : in.first(taken)) {
      Bytes bytes(frame.headers.begin(), frame.headers.end());
      for (const Slice& piece : frame.pieces) {
        bytes.insert(bytes.end(), piece.data, piece.data + piece.length);
      }
      EXPECT_EQ(bytes.size(), frame.length);
      log_.sent.push_back(std::move(bytes));
    }
    return taken;
  }
  std::uint64_t register_memory(std::span<const std::byte> memory) override {
    return memory.size();
  }
  void forget_memory(std::uint64_t id) override { log_.forgotten = id; }
  std::uint64_t register_device_memory(const DmabufRange& range) override {
    return static_cast<std::uint64_t>(range.fd);
  }
  int wait_fd() const override { return log_.wait_fd; }
  bool prepare_wait() override { return log_.packets_wait; }
  const FrameDeviceTraits& traits() const override { return log_.traits; }
  NicCounters counters() const override { return log_.counters; }

 private:
  Log& log_;
  std::deque<Bytes> lent_;
};

// The network is made once; other tests of this program have the one they came with.
class FramedNicTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    outside_ = FileDescriptor(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
    made_ = ::unshare(CLONE_NEWNET) == 0 &&
            std::system(
                "ip link set lo up && ip link add eth0 mtu 1500 type veth peer name far && "
                "ip address add 10.85.0.1/24 dev eth0 && ip link set eth0 up && "
                "ip link set far up && ip neigh add 10.85.0.2 lladdr 02:00:00:00:00:02 "
                "dev eth0 nud permanent") == 0;
  }
  static void TearDownTestSuite() { ::setns(outside_.get(), CLONE_NEWNET); }

  void SetUp() override {
    if (!made_) GTEST_SKIP() << "no network name space can be made here: run as root";
  }

  Result<std::unique_ptr<Nic>> open(NicConfig config) {
    config.back_end = "fake";
    if (config.ip.bytes == FabricAddress{}.bytes) config.ip = kSelf;
    return FramedNic::open(
        config,
        [this](const FrameDeviceRequest& request,
               std::string& why) -> Result<std::unique_ptr<FrameDevice>> {
          device_.options = request.options;
          device_.self = request.self;
          mac_ = request.interface.mac;
          if (!refusal_.empty()) {
            why = refusal_;
            return Error::NoMemory;
          }
          return std::unique_ptr<FrameDevice>(new FakeDevice(device_));
        },
        message_);
  }
  bool open_well(const NicConfig& config = {}) {
    auto nic = open(config);
    EXPECT_TRUE(nic) << message_;
    if (nic) nic_ = std::move(nic).value();
    return nic_ != nullptr;
  }

  // Sends one packet, with what `change` sets; returns how many were accepted.
  template <class Change>
  std::size_t send(const FepAddress& to, std::size_t bytes, Change&& change) {
    packets_.add(to, 12, bytes - 12);
    change(packets_.last());
    const std::array<const Packet*, 1> one{&packets_.last()};
    return nic_->tx_burst(one);
  }
  std::size_t send(const FepAddress& to, std::size_t bytes = 200) {
    return send(to, bytes, [](Packet&) {});
  }

  static FabricAddress ipv6(const char* text) {
    FabricAddress address;
    address.is_ipv6 = true;
    EXPECT_EQ(::inet_pton(AF_INET6, text, address.bytes.data()), 1) << text;
    return address;
  }
  static void run(const std::string& command) {
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  static void set_neighbour(const std::string& mac, const std::string& state) {
    run("ip neigh replace 10.85.0.2 lladdr " + mac + " dev eth0 nud " + state);
  }
  static std::string neighbour() {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
        ::popen("ip neigh show 10.85.0.2 dev eth0", "r"), ::pclose);
    std::array<char, 256> text{};
    return pipe && std::fgets(text.data(), text.size(), pipe.get()) ? text.data() : "";
  }

  wire::ParsedFrame parsed(const Bytes& frame, const wire::FrameFormat& format = {}) {
    wire::ParsedFrame out;
    EXPECT_EQ(wire::parse_frame(frame, format, {}, out), wire::FrameVerdict::Ok);
    return out;
  }

  static Bytes frame_of(const wire::FrameFields& fields, const Bytes& packet,
                        const wire::FrameFormat& format = {}) {
    const std::array pieces{Slice{packet.data(), static_cast<std::uint32_t>(packet.size())}};
    Bytes frame(wire::kMaxFrameHeaderBytes);
    frame.resize(wire::write_frame_headers(frame.data(), format, fields, pieces));
    const Bytes headers = frame;
    frame.insert(frame.end(), packet.begin(), packet.end());
    if (format.crc) {
      const auto trailer = wire::frame_trailer(headers, pieces);
      frame.insert(frame.end(), trailer.begin(), trailer.end());
    }
    return frame;
  }
  static wire::FrameFields to_us() {
    wire::FrameFields fields;
    fields.source = kPeer;
    fields.destination = kSelf;
    fields.entropy = 50'000;
    fields.port = kUetUdpPort;
    fields.dscp = 46;
    fields.ecn = Ecn::Ce;
    return fields;
  }
  std::vector<Arrival> receive() {
    std::array<RxPacket, kRxBurst> out;
    const std::size_t count = nic_->rx_burst(out, now_ += std::chrono::milliseconds(10));
    std::vector<Arrival> all;
    for (std::size_t i = 0; i < count; ++i) all.emplace_back(out[i]);
    return all;
  }

  static inline FileDescriptor outside_{-1};
  static inline bool made_ = false;
  FakeDevice::Log device_;
  std::string refusal_;  // why the device does not open
  std::string message_;
  wire::MacAddress mac_{};
  PacketSet packets_;
  Time now_{};
  std::unique_ptr<Nic> nic_;
};

// ---- opening ------------------------------------------------------------------------------------

TEST_F(FramedNicTest, TakesItsOwnOptionAndLeavesTheRestToTheDevice) {
  NicConfig config;
  config.options = "one,native,two=2";
  ASSERT_TRUE(open_well(config));
  EXPECT_EQ(device_.options, "one,two=2");
  EXPECT_EQ(device_.self, (FepAddress{kSelf, kUetUdpPort}));
  EXPECT_EQ(nic_->caps().ip_mtu, 1500U);
  EXPECT_EQ(nic_->caps().receive_credit_bytes, 12345U);
  EXPECT_TRUE(nic_->caps().per_packet_entropy);
}

TEST_F(FramedNicTest, SaysWhetherTheDeviceSendsByTheKernel) {
  for (const bool by_kernel : {true, false}) {
    device_.traits.sends_by_kernel = by_kernel;
    ASSERT_TRUE(open_well());
    EXPECT_EQ(nic_->caps().sends_by_kernel, by_kernel);
  }
}

TEST_F(FramedNicTest, CarriesNoMoreThanTheDeviceDoes) {
  device_.traits.max_frame_bytes = 1014;
  ASSERT_TRUE(open_well());
  EXPECT_EQ(nic_->caps().ip_mtu, 1000U);
}

TEST_F(FramedNicTest, InterfacesWithoutEthernetAreRefused) {
  NicConfig config;
  config.ip = ipv4(127, 0, 0, 1);
  const auto nic = open(config);
  ASSERT_FALSE(nic);
  EXPECT_EQ(nic.error(), Error::NoDevice);
  EXPECT_THAT(message_,
              HasSubstr("FI_UET_NIC=fake sends Ethernet frames, which lo does not carry"));
}

TEST_F(FramedNicTest, AddressesOfOthersAreRefused) {
  NicConfig config;
  config.ip = kPeer;
  const auto nic = open(config);
  ASSERT_FALSE(nic);
  EXPECT_EQ(nic.error(), Error::NoDevice);
  EXPECT_THAT(message_, HasSubstr("10.85.0.2 is not an address of this host"));
}

TEST_F(FramedNicTest, TheNativeFormHasNoPorts) {
  NicConfig config;
  config.options = "native";
  config.port = 4800;
  const auto nic = open(config);
  ASSERT_FALSE(nic);
  EXPECT_EQ(nic.error(), Error::Invalid);
}

TEST_F(FramedNicTest, ADeviceThatDoesNotOpenLeavesNothingBehind) {
  refusal_ = "it is broken";
  const auto nic = open({});
  ASSERT_FALSE(nic);
  EXPECT_EQ(nic.error(), Error::NoMemory);
  EXPECT_EQ(message_, "it is broken");
  refusal_.clear();
  ASSERT_TRUE(open_well());
  EXPECT_EQ(nic_->local_address().port, kUetUdpPort) << "the port was not given back";
  nic_ = nullptr;
  EXPECT_FALSE(device_.open);
}

TEST_F(FramedNicTest, EachHasAPortOfItsOwn) {
  ASSERT_TRUE(open_well());
  const std::unique_ptr<Nic> first = std::move(nic_);
  ASSERT_TRUE(open_well());
  EXPECT_EQ(nic_->local_address().port, kUetUdpPort + 1);
  EXPECT_FALSE(nic_->caps().per_packet_entropy) << "an answer finds us by the source port";
  ASSERT_EQ(send({kPeer, kUetUdpPort}, 200, [](Packet& packet) { packet.entropy = 50'000; }), 1U);
  EXPECT_EQ(parsed(device_.sent.at(0)).fields.entropy, kUetUdpPort + 1);
}

// ---- sending ------------------------------------------------------------------------------------

TEST_F(FramedNicTest, PacketsLeaveInWholeFrames) {
  ASSERT_TRUE(open_well());
  ASSERT_EQ(send({kPeer, 4795}, 300,
                 [](Packet& packet) {
                   packet.entropy = 50'001;
                   packet.dscp = 46;
                   packet.ecn = Ecn::Ect0;
                 }),
            1U);
  ASSERT_EQ(device_.sent.size(), 1U);
  const wire::ParsedFrame frame = parsed(device_.sent[0]);
  EXPECT_EQ(frame.fields.source_mac, mac_);
  EXPECT_EQ(frame.fields.destination_mac, kPeerMac);
  EXPECT_EQ(frame.fields.source, kSelf);
  EXPECT_EQ(frame.fields.destination, kPeer);
  EXPECT_EQ(frame.fields.entropy, 50'001U);
  EXPECT_EQ(frame.fields.port, 4795U);
  EXPECT_EQ(frame.fields.dscp, 46U);
  EXPECT_EQ(frame.fields.ecn, Ecn::Ect0);
  EXPECT_EQ(frame.fields.hop_limit, 64U);
  EXPECT_EQ(Bytes(frame.packet.begin(), frame.packet.end()), packets_.bytes(0));
  const NicCounters counters = nic_->counters();
  EXPECT_EQ(counters.packets_sent, 1U);
  EXPECT_EQ(counters.bytes_sent, 300U);
  EXPECT_EQ(counters.kernel_packets_sent, 0U);
}

// An answer to such a port would go astray.
TEST_F(FramedNicTest, EntropyNeverNamesAProcess) {
  ASSERT_TRUE(open_well());
  for (const std::uint16_t entropy : {0, 4793, 4795, 5816, 5817, 5848}) {
    ASSERT_EQ(send({kPeer}, 200, [&](Packet& packet) { packet.entropy = entropy; }), 1U);
    EXPECT_EQ(parsed(device_.sent.back()).fields.entropy, kUetUdpPort) << entropy;
  }
}

TEST_F(FramedNicTest, PacketsToASlotGoToTheSharedPort) {
  ASSERT_TRUE(open_well());
  ASSERT_EQ(send({kPeer, kFirstSlotPort + 3}), 1U);
  EXPECT_EQ(parsed(device_.sent.at(0)).fields.port, kUetUdpPort);
}

TEST_F(FramedNicTest, AFullDeviceTakesAPrefix) {
  ASSERT_TRUE(open_well());
  device_.send_room = 3;
  for (int i = 0; i < 5; ++i) packets_.add({kPeer}, 12, 100);
  EXPECT_EQ(nic_->tx_burst(packets_.all()), 3U);
  EXPECT_EQ(nic_->counters().sends_refused, 1U);
  EXPECT_EQ(nic_->counters().packets_sent, 3U);
  device_.send_room = 1000;
  EXPECT_EQ(nic_->tx_burst(packets_.all().subspan(3)), 2U);
  for (std::size_t i = 0; i < 5; ++i) {
    const wire::ParsedFrame frame = parsed(device_.sent.at(i));
    EXPECT_EQ(Bytes(frame.packet.begin(), frame.packet.end()), packets_.bytes(i));
  }
}

TEST_F(FramedNicTest, PacketsTooLongForAFrameAreDroppedInTurn) {
  ASSERT_TRUE(open_well());
  packets_.add({kPeer}, 12, 100);
  packets_.add({kPeer}, 12, 1500 - 28 - 12 + 1);
  packets_.add({kPeer}, 12, 1500 - 28 - 12);
  EXPECT_EQ(nic_->tx_burst(packets_.all()), 3U);
  EXPECT_EQ(device_.sent.size(), 2U);
  EXPECT_EQ(nic_->counters().packets_dropped, 1U);
  EXPECT_EQ(nic_->counters().packets_sent, 2U);
}

TEST_F(FramedNicTest, TheKernelCarriesWhatHasNoNextHopYet) {
  ASSERT_TRUE(open_well());
  packets_.add({kPeer}, 12, 100);
  packets_.add({kUnknown}, 12, 100);
  packets_.add({kPeer}, 12, 100);
  EXPECT_EQ(nic_->tx_burst(packets_.all()), 3U);
  EXPECT_EQ(device_.sent.size(), 2U);
  EXPECT_EQ(nic_->counters().kernel_packets_sent, 1U);
  EXPECT_EQ(nic_->counters().packets_sent, 3U);
}

// The CRC covers the source port (WIRE 1.4): it is the entropy value in frames of the device,
// but never in packets that the kernel sends.
TEST_F(FramedNicTest, TheSourcePortIsThatOfTheWayThatAPacketTakes) {
  ASSERT_TRUE(open_well());
  const auto with_entropy = [](Packet& packet) { packet.entropy = 50'000; };
  for (const FabricAddress& to : {kPeer, kUnknown, kSelf, ipv6_loopback()}) {
    packets_.add({to}, 12, 100);
    with_entropy(packets_.last());
    const std::uint16_t expected = to == kPeer ? 50'000 : kUetUdpPort;
    EXPECT_EQ(nic_->source_port_for(packets_.last()), expected) << to_text(to);
  }
  ASSERT_EQ(send({kPeer}, 200, with_entropy), 1U);
  EXPECT_EQ(parsed(device_.sent.at(0)).fields.entropy, 50'000U);
}

// TSS-4, TSS-6: each form has an AAD of its own, and packets to this host are in the UDP form.
TEST_F(FramedNicTest, Tss4_SecurityAboveIsToldTheNativeForm) {
  NicConfig config;
  config.options = "native";
  config.secure = [](std::unique_ptr<Nic> nic, std::string&) { return nic; };
  ASSERT_TRUE(open_well(config));
  for (const FabricAddress& to : {kPeer, kUnknown, kSelf, ipv6_loopback()}) {
    packets_.add({to}, 12, 100);
    const bool native = to == kPeer || to == kUnknown;
    EXPECT_EQ(nic_->source_port_for(packets_.last()), native ? 0 : kUetUdpPort) << to_text(to);
  }
  device_.arriving.push_back(
      frame_of(to_us(), Bytes(100), {.encapsulation = wire::Encapsulation::NativeIp}));
  const std::vector<Arrival> arrived = receive();
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].source, (FepAddress{kPeer, 0}));
  EXPECT_EQ(arrived[0].entropy, 50'000U);
}

// Frames keep the kernel from noticing that it has not heard of a neighbour for long: it is made to
// ask, once, and frames go on meanwhile as the CRC has been told.
TEST_F(FramedNicTest, ADoubtfulNeighbourIsAskedForWhileFramesGoOn) {
  ASSERT_TRUE(open_well());
  ASSERT_EQ(send({kPeer}), 1U);
  set_neighbour("02:00:00:00:00:02", "stale");
  receive();
  packets_.add({kPeer}, 12, 100);
  packets_.last().entropy = 50'000;
  EXPECT_EQ(nic_->source_port_for(packets_.last()), 50'000U);
  EXPECT_EQ(nic_->tx_burst(packets_.all()), 2U);
  EXPECT_EQ(device_.sent.size(), 3U);
  EXPECT_EQ(nic_->counters().kernel_packets_sent, 0U);
  EXPECT_THAT(neighbour(), HasSubstr("DELAY"));
  set_neighbour("02:00:00:00:00:02", "permanent");
}

TEST_F(FramedNicTest, ANeighbourWithAnotherMacGetsFramesThere) {
  ASSERT_TRUE(open_well());
  ASSERT_EQ(send({kPeer}), 1U);
  EXPECT_EQ(parsed(device_.sent.back()).fields.destination_mac, kPeerMac);
  set_neighbour("02:00:00:00:00:03", "reachable");
  receive();
  ASSERT_EQ(send({kPeer}), 1U);
  EXPECT_EQ(parsed(device_.sent.back()).fields.destination_mac,
            (wire::MacAddress{0x02, 0, 0, 0, 0, 3}));
  run("ip neigh del 10.85.0.2 dev eth0");
  receive();
  ASSERT_EQ(send({kPeer}), 1U);
  EXPECT_EQ(nic_->counters().kernel_packets_sent, 1U) << "the kernel has to find it";
  EXPECT_EQ(device_.sent.size(), 2U);
  set_neighbour("02:00:00:00:00:02", "permanent");
  receive();
  ASSERT_EQ(send({kPeer}), 1U);
  EXPECT_EQ(parsed(device_.sent.back()).fields.destination_mac, kPeerMac);
}

TEST_F(FramedNicTest, AChangedRouteLeadsToItsGateway) {
  ASSERT_TRUE(open_well());
  const FabricAddress behind = ipv4(192, 0, 2, 7);
  ASSERT_EQ(send({behind}), 1U);
  EXPECT_TRUE(device_.sent.empty()) << "there is no way";
  run("ip route add 192.0.2.0/24 via 10.85.0.2");
  receive();
  ASSERT_EQ(send({behind}), 1U);
  ASSERT_EQ(device_.sent.size(), 1U);
  EXPECT_EQ(parsed(device_.sent.back()).fields.destination_mac, kPeerMac);
  EXPECT_EQ(parsed(device_.sent.back()).fields.destination, behind);
  run("ip route del 192.0.2.0/24");
  receive();
  ASSERT_EQ(send({behind}), 1U);
  EXPECT_EQ(device_.sent.size(), 1U);
}

TEST_F(FramedNicTest, AnotherFamilyIsDropped) {
  ASSERT_TRUE(open_well());
  FabricAddress ipv6 = ipv6_loopback();
  EXPECT_EQ(send({ipv6}), 1U);
  EXPECT_EQ(nic_->counters().packets_dropped, 1U);
}

TEST_F(FramedNicTest, TheNativeFormHasATrailerOfItsOwn) {
  NicConfig config;
  config.options = "native";
  config.crc = true;
  ASSERT_TRUE(open_well(config));
  EXPECT_TRUE(nic_->caps().crc);
  ASSERT_EQ(send({kPeer}), 1U);
  const wire::FrameFormat format{.encapsulation = wire::Encapsulation::NativeIp, .crc = true};
  const wire::ParsedFrame frame = parsed(device_.sent.at(0), format);
  EXPECT_EQ(Bytes(frame.packet.begin(), frame.packet.end()), packets_.bytes(0));
  Bytes damaged = device_.sent[0];
  damaged.back() ^= std::byte{1};
  wire::ParsedFrame ignored;
  EXPECT_EQ(wire::parse_frame(damaged, format, {}, ignored), wire::FrameVerdict::BadCrc);
}

// ---- receiving ----------------------------------------------------------------------------------

TEST_F(FramedNicTest, FramesToUsAreHandedOut) {
  ASSERT_TRUE(open_well());
  const Bytes packet(100, std::byte{7});
  device_.arriving.push_back(frame_of(to_us(), packet));
  const auto arrived = receive();
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].bytes, packet);
  EXPECT_EQ(arrived[0].source, (FepAddress{kPeer, 50'000}));
  EXPECT_EQ(arrived[0].entropy, 50'000U);
  EXPECT_EQ(arrived[0].dscp, 46U);
  EXPECT_EQ(arrived[0].ecn, Ecn::Ce);
  EXPECT_EQ(nic_->counters().packets_received, 1U);
  EXPECT_EQ(nic_->counters().bytes_received, 100U);
}

TEST_F(FramedNicTest, FramesOfOthersAreThrownAwaySilently) {
  ASSERT_TRUE(open_well());
  const Bytes packet(100, std::byte{7});
  wire::FrameFields other = to_us();
  other.port = kUetUdpPort + 1;
  device_.arriving.push_back(frame_of(other, packet));
  other = to_us();
  other.destination = kPeer;
  device_.arriving.push_back(frame_of(other, packet));
  device_.arriving.push_back(frame_of(to_us(), {}));  // sent to find a next hop
  device_.arriving.push_back(
      frame_of(to_us(), packet, {.encapsulation = wire::Encapsulation::NativeIp}));
  Bytes arp(60);
  arp[12] = std::byte{0x08};
  arp[13] = std::byte{0x06};
  device_.arriving.push_back(arp);
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(nic_->counters().frames_refused, 0U);
}

// The kernel drops packets from such addresses; a back end that owns the frames must drop them
// itself, so that it does not answer to groups.
TEST_F(FramedNicTest, SourcesThatAreNoHostAreRefused) {
  ASSERT_TRUE(open_well());
  const FabricAddress kWrong[] = {
      ipv4(0, 0, 0, 0),         ipv4(127, 0, 0, 1), ipv4(224, 0, 0, 1),
      ipv4(239, 255, 255, 250), ipv4(240, 0, 0, 1), ipv4(255, 255, 255, 255),
      ipv4(10, 85, 0, 255),     ipv4(10, 85, 0, 0), kSelf};
  for (const FabricAddress& source : kWrong) {
    wire::FrameFields fields = to_us();
    fields.source = source;
    device_.arriving.push_back(frame_of(fields, Bytes(100, std::byte{7})));
  }
  EXPECT_TRUE(receive().empty());
  EXPECT_EQ(nic_->counters().frames_refused, std::size(kWrong));
  device_.arriving.push_back(frame_of(to_us(), Bytes(100, std::byte{7})));
  EXPECT_EQ(receive().size(), 1U);
}

TEST_F(FramedNicTest, Ipv6SourcesThatAreNoHostAreRefused) {
  run("ip -6 address add fd00:85::1/64 dev eth0 nodad");
  NicConfig config;
  config.ip = ipv6("fd00:85::1");
  ASSERT_TRUE(open_well(config));
  wire::FrameFields fields = to_us();
  fields.destination = config.ip;
  const char* const kWrong[] = {"::",      "::1",     "::ffff:10.85.0.2",
                                "ff02::1", "ff05::2", "fd00:85::1"};
  for (const char* source : kWrong) {
    fields.source = ipv6(source);
    device_.arriving.push_back(frame_of(fields, Bytes(100, std::byte{7})));
    EXPECT_TRUE(receive().empty()) << source;
  }
  EXPECT_EQ(nic_->counters().frames_refused, std::size(kWrong));
  for (const char* source : {"fd00:85::2", "2001:db8::1"}) {
    fields.source = ipv6(source);
    device_.arriving.push_back(frame_of(fields, Bytes(100, std::byte{7})));
    EXPECT_EQ(receive().size(), 1U) << source;
  }
  run("ip -6 address delete fd00:85::1/64 dev eth0");
}

TEST_F(FramedNicTest, BrokenFramesAreCounted) {
  ASSERT_TRUE(open_well());
  const Bytes good = frame_of(to_us(), Bytes(100, std::byte{7}));
  Bytes checksum = good;  // wrong, which is ignored (WIRE 1.1)
  checksum.back() ^= std::byte{1};
  const Bytes cut(good.begin(), good.end() - 1);
  device_.arriving = {checksum, cut, good};
  EXPECT_EQ(receive().size(), 2U);
  EXPECT_EQ(nic_->counters().frames_refused, 1U);
}

TEST_F(FramedNicTest, AWrongTrailerIsCounted) {
  NicConfig config;
  config.options = "native";
  config.crc = true;
  ASSERT_TRUE(open_well(config));
  const wire::FrameFormat format{.encapsulation = wire::Encapsulation::NativeIp, .crc = true};
  const Bytes good = frame_of(to_us(), Bytes(100, std::byte{7}), format);
  Bytes damaged = good;
  damaged[60] ^= std::byte{1};
  device_.arriving = {damaged, good};
  const auto arrived = receive();
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].source, (FepAddress{kPeer, kUetUdpPort})) << "it has no ports";
  EXPECT_EQ(arrived[0].entropy, 50'000U);
  EXPECT_EQ(nic_->counters().crc_errors, 1U);
}

TEST_F(FramedNicTest, PacketsOfThisHostComeThroughTheKernel) {
  ASSERT_TRUE(open_well());
  std::string message;
  UdpOptions options;
  options.ip = kSelf;
  auto other = UdpNic::open(options, message);
  ASSERT_TRUE(other) << message;
  ASSERT_EQ(send(other.value()->local_address(), 100), 1U);
  EXPECT_TRUE(device_.sent.empty());
  EXPECT_EQ(nic_->counters().kernel_packets_sent, 1U);

  const std::array<const Packet*, 1> answer{&packets_.add(nic_->local_address(), 12, 88)};
  ASSERT_EQ(other.value()->tx_burst(answer), 1U);
  pollfd ready{.fd = nic_->wait_fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
  const auto arrived = receive();
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].bytes, packets_.bytes(1));
  EXPECT_EQ(arrived[0].source, other.value()->local_address());
  EXPECT_EQ(nic_->counters().kernel_packets_received, 1U);
}

// The kernel cannot read it.
TEST_F(FramedNicTest, DeviceMemory_GoesToTheKernelAsACopy) {
  InvertedMemory device;
  ASSERT_TRUE(open_well());
  std::string message;
  UdpOptions options;
  options.ip = kSelf;
  auto other = UdpNic::open(options, message);
  ASSERT_TRUE(other) << message;
  ASSERT_EQ(send(other.value()->local_address(), 100, [&](Packet& p) { p.device = &device; }), 1U);
  pollfd ready{.fd = other.value()->wait_fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ready, 1, 10'000), 1);
  std::array<RxPacket, 1> out;
  ASSERT_EQ(other.value()->rx_burst(out, now_), 1U);
  ASSERT_EQ(out[0].bytes.size(), 100U);
  EXPECT_EQ(out[0].bytes[99], ~packets_.bytes(0)[99]);
}

TEST_F(FramedNicTest, DeviceMemory_WithACrcOfTheCpu_IsRefused) {
  device_.traits.reads_device_memory = true;
  ASSERT_TRUE(open_well());
  EXPECT_TRUE(nic_->reads_device_memory());
  EXPECT_EQ(nic_->register_device_memory({.memory = {}, .fd = 9}), 9U);
  nic_.reset();
  NicConfig config;
  config.options = "native";
  config.crc = true;
  ASSERT_TRUE(open_well(config));
  EXPECT_FALSE(nic_->reads_device_memory());
  EXPECT_EQ(nic_->register_device_memory({.memory = {}, .fd = 9}), 0U);
}

// ---- the rest -----------------------------------------------------------------------------------

TEST_F(FramedNicTest, NoDescriptor_WaitersSleepForShortTimes) {
  ASSERT_TRUE(open_well());
  pollfd ready{.fd = nic_->wait_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  EXPECT_FALSE(nic_->prepare_wait());
  EXPECT_TRUE(receive().empty()) << "another thread's look, which must not keep it asleep";
  EXPECT_EQ(::poll(&ready, 1, 10'000), 1);
}

TEST_F(FramedNicTest, WaitersOfADeviceWithOneAreWokenByIt) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const FileDescriptor reading(ends[0]);
  const FileDescriptor writing(ends[1]);
  device_.wait_fd = reading.get();
  ASSERT_TRUE(open_well());
  device_.packets_wait = true;
  EXPECT_TRUE(nic_->prepare_wait()) << "the device has some already";
  device_.packets_wait = false;
  EXPECT_FALSE(nic_->prepare_wait());
  pollfd ready{.fd = nic_->wait_fd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&ready, 1, 0), 0);
  EXPECT_EQ(::write(writing.get(), "x", 1), 1);
  EXPECT_EQ(::poll(&ready, 1, 0), 1);
}

TEST_F(FramedNicTest, MemoryAndCountersAreTheDevicesToo) {
  ASSERT_TRUE(open_well());
  const Bytes memory(33);
  EXPECT_EQ(nic_->register_memory(memory), 33U);
  nic_->forget_memory(33);
  EXPECT_EQ(device_.forgotten, 33U);
  device_.counters.receive_truncated = 4;
  device_.counters.packets_gathered = 5;
  EXPECT_EQ(nic_->counters().receive_truncated, 4U);
  EXPECT_EQ(nic_->counters().packets_gathered, 5U);
}

}  // namespace
}  // namespace uet::nic
