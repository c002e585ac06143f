// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "nic/local_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <tuple>
#include <vector>

#include "local_ends_testing.h"

namespace uet::nic {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using What = LocalWatch::What;
using News = std::tuple<What, std::uint16_t, bool>;

struct Watch : ::testing::Test {
  LocalWatch watch{FileDescriptor(::epoll_create1(EPOLL_CLOEXEC))};
  FileDescriptor bell{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

  std::vector<News> look() {
    std::vector<News> news;
    watch.look(
        [&](What what, std::uint16_t id, bool hung_up) { news.emplace_back(what, id, hung_up); });
    return news;
  }
  void ring() const { ::eventfd_write(bell.get(), 1); }
};

TEST_F(Watch, NewsComeWithKindAndConnection) {
  ASSERT_TRUE(watch.add(bell.get(), What::IncomingProcess, 0xFFFE));
  EXPECT_THAT(look(), IsEmpty());
  ring();
  EXPECT_THAT(look(), ElementsAre(News(What::IncomingProcess, 0xFFFE, false)));
  EXPECT_THAT(look(), ElementsAre(News(What::IncomingProcess, 0xFFFE, false))) << "by level";
  watch.remove(bell);
  EXPECT_THAT(look(), IsEmpty());
}

TEST_F(Watch, SharedBellIsReportedOnceForEachRing) {
  ASSERT_TRUE(watch.add(bell.get(), What::SharedBell));
  ring();
  EXPECT_THAT(look(), ElementsAre(News(What::SharedBell, 0, false)));
  EXPECT_THAT(look(), IsEmpty());
  ring();
  EXPECT_THAT(look(), ElementsAre(News(What::SharedBell, 0, false)));
}

TEST_F(Watch, PausedListenerIsSilent) {
  ASSERT_TRUE(watch.add(bell.get(), What::Listener));
  ring();
  watch.pause(bell.get(), What::Listener, true);
  EXPECT_THAT(look(), IsEmpty());
  watch.pause(bell.get(), What::Listener, false);
  EXPECT_THAT(look(), ElementsAre(News(What::Listener, 0, false)));
}

TEST_F(Watch, EndOfAPeerIsReported) {
  auto sockets = connected_sockets();
  ASSERT_TRUE(watch.add(sockets.first.get(), What::Incoming, 3));
  { const FileDescriptor closed = std::move(sockets.second); }
  EXPECT_THAT(look(), ElementsAre(News(What::Incoming, 3, true)));
}

TEST_F(Watch, MissingDescriptorIsNoFailure) { EXPECT_TRUE(watch.add(-1, What::Outgoing, 1)); }

}  // namespace
}  // namespace uet::nic
