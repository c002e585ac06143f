// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// All-gathers of clients in threads through a server: tables in rank order, errors for unequal
// blobs, for ranks that leave, and for connections without the token.
#include "uet_job/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <cerrno>
#include <functional>
#include <thread>

#include "uet_job/client.h"

namespace uet::job {
namespace {

using testing::HasSubstr;

const std::string kToken(32, '5');
constexpr int kPatienceMs = 30'000;

// Runs `rank` for each rank in a thread of its own while this thread serves.
void serve(Server& server, std::uint32_t size, const std::function<void(std::uint32_t)>& rank) {
  std::atomic<std::uint32_t> ended{0};
  std::vector<std::jthread> threads;
  for (std::uint32_t i = 0; i < size; ++i) {
    threads.emplace_back([&, i] {
      rank(i);
      ++ended;
    });
  }
  while (ended < size) {
    pollfd wait{server.fd(), POLLIN, 0};
    poll(&wait, 1, 10);
    server.run();
  }
}

Place place_of(const Server& server, std::uint32_t rank, std::uint32_t size) {
  Place place;
  place.rank = rank;
  place.size = size;
  place.host = "127.0.0.1";
  place.port = std::to_string(server.port());
  place.token = kToken;
  return place;
}

int gather(Client& client, const std::string& blob, std::string& all) {
  all.assign(blob.size() * client.place().size, ' ');
  return client.all_gather({blob.data(), blob.size()}, all.data());
}

TEST(JobServer, GivesAllTheTableInRankOrder) {
  constexpr std::uint32_t kSize = 4;
  Server server(kSize, kToken, true);
  serve(server, kSize, [&](std::uint32_t rank) {
    Client client;
    ASSERT_EQ(client.join(place_of(server, rank, kSize), kPatienceMs), 0) << client.problem();
    std::string all;
    for (int round = 0; round < 20; ++round) {
      ASSERT_EQ(gather(client, std::to_string(rank), all), 0) << client.problem();
      ASSERT_EQ(all, "0123");
    }
    const std::string large(1U << 20, static_cast<char>('a' + rank));
    ASSERT_EQ(gather(client, large, all), 0) << client.problem();
    ASSERT_EQ(all.substr(3U << 20), std::string(1U << 20, 'd'));
    ASSERT_EQ(gather(client, "", all), 0) << client.problem();
  });
}

TEST(JobServer, RefusesUnequalBlobsAndGoesOn) {
  Server server(2, kToken, true);
  serve(server, 2, [&](std::uint32_t rank) {
    Client client;
    ASSERT_EQ(client.join(place_of(server, rank, 2), kPatienceMs), 0) << client.problem();
    std::string all;
    EXPECT_EQ(gather(client, std::string(rank + 1, 'x'), all), -EMSGSIZE);
    EXPECT_EQ(gather(client, "y", all), 0) << client.problem();
    EXPECT_EQ(all, "yy");
  });
}

TEST(JobServer, TellsTheOthersThatARankHasLeft) {
  Server server(3, kToken, true);
  serve(server, 3, [&](std::uint32_t rank) {
    Client client;
    ASSERT_EQ(client.join(place_of(server, rank, 3), kPatienceMs), 0) << client.problem();
    std::string all;
    ASSERT_EQ(gather(client, "x", all), 0) << client.problem();
    if (rank == 1) return;
    EXPECT_EQ(gather(client, "x", all), -ECONNABORTED);
    EXPECT_THAT(client.problem(), HasSubstr("rank 1 has left"));
    EXPECT_EQ(gather(client, "x", all), -ECONNABORTED);
  });
  EXPECT_EQ(server.deserter(), 1U);
}

TEST(JobServer, RefusesStrangers) {
  Server server(2, kToken, true);
  serve(server, 1, [&](std::uint32_t) {
    Client first;
    ASSERT_EQ(first.join(place_of(server, 0, 2), kPatienceMs), 0) << first.problem();
    Place wrong = place_of(server, 1, 2);
    wrong.token.back() = '6';
    Client stranger;
    EXPECT_EQ(stranger.join(wrong, kPatienceMs), -EACCES);
    EXPECT_THAT(stranger.problem(), HasSubstr("token"));
    Client again;
    EXPECT_EQ(again.join(place_of(server, 0, 2), kPatienceMs), -EACCES);
    EXPECT_THAT(again.problem(), HasSubstr("joined already"));
    Client third;
    EXPECT_EQ(third.join(place_of(server, 2, 3), kPatienceMs), -EACCES);
    EXPECT_THAT(third.problem(), HasSubstr("no such rank"));
  });
}

}  // namespace
}  // namespace uet::job
