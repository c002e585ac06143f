// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Requests of an application to its engine, and the socket that carries them.
#include "process/control.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <string>

namespace uet::prov {
namespace {

struct SocketPair {
  SocketPair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    a = nic::FileDescriptor(ends[0]);
    b = nic::FileDescriptor(ends[1]);
  }
  nic::FileDescriptor a;
  nic::FileDescriptor b;
};

TEST(Control, ResultsTravelAsNumbers) {
  EXPECT_TRUE(result_of(code_of({})).ok());
  for (const Error error : {Error::Again, Error::NoMemory, Error::KeyInUse, Error::Io}) {
    EXPECT_EQ(result_of(code_of(error)).error(), error);
  }
  EXPECT_EQ(result_of(-5).error(), Error::Io);
}

TEST(Control, RegionsComeBackWithoutObserverAndDevice) {
  ri::MemoryRegion region;
  region.base = reinterpret_cast<std::byte*>(0x1000);
  region.length = 77;
  region.virtual_base = 0x1000;
  region.access = ri::kRemoteRead;
  region.job = JobId{9};
  region.ri = ResourceIndex{3};
  region.ri_count = 2;
  region.enabled = false;
  const ri::MemoryRegion back = region_of(share(region, 5));
  EXPECT_EQ(back.base, region.base);
  EXPECT_EQ(back.length, region.length);
  EXPECT_EQ(back.virtual_base, region.virtual_base);
  EXPECT_EQ(back.access, region.access);
  EXPECT_EQ(back.job, region.job);
  EXPECT_EQ(back.ri, region.ri);
  EXPECT_EQ(back.pid, std::nullopt);
  EXPECT_EQ(back.ri_count, region.ri_count);
  EXPECT_FALSE(back.enabled);
  EXPECT_EQ(back.observer, nullptr);
  EXPECT_EQ(back.device, nullptr);
}

TEST(Control, AMessageBringsItsDescriptors) {
  const SocketPair pair;
  const std::array<int, 2> sent{pair.a.get(), pair.b.get()};
  const ControlRequest request = request_of(Request::Open);
  ASSERT_TRUE(send_message(pair.a.get(), &request, sizeof request, sent));
  ControlRequest received;
  std::vector<nic::FileDescriptor> descriptors;
  ASSERT_TRUE(receive_message(pair.b.get(), &received, sizeof received, &descriptors));
  EXPECT_EQ(received.version, control_version());
  EXPECT_EQ(received.request, static_cast<std::uint8_t>(Request::Open));
  EXPECT_EQ(descriptors.size(), 2u);
}

TEST(Control, AMessageOfAnotherLengthIsNone) {
  const SocketPair pair;
  const ControlRequest request = request_of(Request::Learn);
  ControlRequest received;
  ASSERT_TRUE(send_message(pair.a.get(), &request, sizeof request - 1));
  EXPECT_FALSE(receive_message(pair.b.get(), &received, sizeof received));
  std::array<std::byte, sizeof request + 1> longer{};
  ASSERT_TRUE(send_message(pair.a.get(), longer.data(), longer.size()));
  EXPECT_FALSE(receive_message(pair.b.get(), &received, sizeof received));
  ::shutdown(pair.a.get(), SHUT_WR);
  EXPECT_FALSE(receive_message(pair.b.get(), &received, sizeof received));
}

TEST(Control, ASocketOfALivingEngineIsNotTaken) {
  std::string pattern = "/tmp/uet_control_XXXXXX";
  const std::string path = std::string(::mkdtemp(pattern.data())) + "/socket";
  std::string why;
  {
    const nic::FileDescriptor listener = listen_at(path, false, why);
    ASSERT_TRUE(listener.valid()) << why;
    EXPECT_TRUE(connect_to_engine({"/nonexistent", path}, why).valid());
    EXPECT_FALSE(listen_at(path, false, why).valid());
    EXPECT_NE(why.find("another engine listens there"), std::string::npos) << why;
  }
  EXPECT_TRUE(listen_at(path, false, why).valid()) << "one is left of an engine that has ended";
  ::unlink(path.c_str());
  ::rmdir(path.substr(0, path.rfind('/')).c_str());
}

TEST(Control, ANamedSocketIsTheOnlyOne) {
  EXPECT_EQ(engine_sockets("/a/b"), std::vector<std::string>{"/a/b"});
  EXPECT_EQ(engine_sockets("").back(), "/run/uet/engine");
  EXPECT_GT(engine_sockets("").size(), 1u);
}

}  // namespace
}  // namespace uet::prov
