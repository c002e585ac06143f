// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// uet_copy --serve beside clients that break its protocol: each gets the reason and the status, no
// file comes into being, and the next client is served. The calls are those of tools/uet_copy.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "harness.h"
#include "uet_copy/connection.h"
#include "uet_copy/transfer.h"

namespace uet::e2e {
namespace {

namespace fs = std::filesystem;
using copy::Kind;
using copy::Message;
using copy::Status;

constexpr const char* kHost = "127.0.0.1";
constexpr const char* kPort = "5799";
constexpr std::uint64_t kPieceBytes = copy::kLeastSlotBytes - copy::kPage;

// A client by hand.
class Rogue {
 public:
  Rogue() : info_(copy::find_info(kHost, kPort, 0, provider())) {
    fid_fabric* fabric = nullptr;
    check(fi_fabric(info_->fabric_attr, &fabric, nullptr), "fi_fabric");
    fabric_.reset(fabric);
    connection_.emplace(*fabric_, *info_, copy::kLeastSlotBytes, 2);
  }
  void connect(bool sends, std::uint32_t version = copy::kVersion) {
    copy::Hello hello;
    hello.version = version;
    hello.client_sends = sends ? 1 : 0;
    hello.verify = 1;
    const auto pid = ::getpid();
    std::memcpy(hello.session.data(), &pid, sizeof pid);
    hello.slots = connection_->own_slots();
    connection_->set_peer_slots(connection_->connect(info_->dest_addr, hello, "server").slots);
  }
  void ask(const std::string& path, bool tree) {
    connection_->send({.kind = Kind::Request, .mode = tree ? 1U : 0U, .path = path, .name = "n"});
  }
  void send(const Message& message) { connection_->send(message); }
  // Puts a piece into slot 0.
  void write_piece(const copy::SlotHead& head) {
    std::memcpy(connection_->slot(0).data(), &head, sizeof head);
    connection_->write_slot(0, copy::kPage + 64);
  }
  void write_entry(const std::string& path, std::uint32_t sum = 0) {
    copy::Packer packer(connection_->slot(0));
    copy::Entry entry;
    entry.path = path;
    entry.mode = 0600;
    entry.sum = sum;
    packer.add(entry);
    connection_->write_slot(0, packer.close());
  }
  // The next message of the server.
  Message answer() {
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
      copy::News news;
      if (said_.empty()) connection_->poll(news);
      for (Message& message : news.messages) said_.push_back(std::move(message));
      if (!said_.empty()) {
        const Message next = said_.front();
        said_.pop_front();
        return next;
      }
      connection_->wait(-1);
    }
    fail("the server says nothing");
  }
  void expect(Status status) {
    Message message = answer();
    while (message.kind == Kind::Opened || message.kind == Kind::Free) message = answer();
    require(message.kind == Kind::Fail, "the server accepts it");
    require(message.status == status, "another status: " + message.path);
  }

 private:
  copy::Info info_;
  copy::Owned<fid_fabric> fabric_;
  std::optional<copy::Connection> connection_;
  std::deque<Message> said_;
};

class Copy : public ::testing::Test {
 protected:
  Copy() : directory_(fs::path(::testing::TempDir()) / ("uet_copy_" + std::to_string(::getpid()))) {
    fs::create_directory(directory_);
    std::ofstream(directory_ / "file") << "some bytes";
  }
  ~Copy() override { fs::remove_all(directory_); }

  // Each attack in a process of its own, and behind them a client that behaves.
  std::string attack(const std::vector<std::function<void()>>& attacks) {
    copy::ServeOptions options;
    options.provider = provider();
    options.directory = directory_.string();
    options.listen = kHost;
    options.port = kPort;
    const Environment environment{{"tune.keep_alive_ms", "1000"}};
    Process server("server", environment, [&] { copy::serve(options); });
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    for (std::size_t i = 0; i < attacks.size(); ++i) {
      Process attacker("attack " + std::to_string(i), environment, attacks[i]);
      const std::string outcome = attacker.wait();
      if (!outcome.empty()) return outcome;
    }
    Process client("client", environment, [&] {
      copy::CopyOptions wanted;
      wanted.provider = provider();
      wanted.port = kPort;
      wanted.from = std::string(kHost) + ":file";
      wanted.to = (directory_ / "back").string();
      require(copy::copy(wanted) == Status::Done, "a client that behaves is not served");
    });
    return client.wait();
  }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(directory_), fs::directory_iterator()));
  }

  fs::path directory_;
};

// An attack that begins with a request.
std::function<void()> with(bool sends, const std::string& path, bool tree, Status expected,
                           const std::function<void(Rogue&)>& body) {
  return [=] {
    Rogue rogue;
    rogue.connect(sends);
    rogue.ask(path, tree);
    body(rogue);
    rogue.expect(expected);
  };
}

Message open(std::uint64_t size, const std::string& path = "") {
  return {.kind = Kind::Open, .id = 1, .mode = 0600, .size = size, .path = path};
}

TEST_F(Copy, OtherVersion_IsToldSo) {
  const auto other = [] {
    Rogue rogue;
    try {
      rogue.connect(true, copy::kVersion + 1);
    } catch (const copy::Failure& failure) {
      require(failure.status == Status::OtherVersion, failure.what());
      return;
    }
    fail("the server accepts another version");
  };
  EXPECT_EQ(attack({other}), "");
}

TEST_F(Copy, PathsThatLeave_AreRefused) {
  fs::create_directory_symlink("/", directory_ / "root");
  const auto entry = [](const std::string& path) {
    return with(true, "", true, Status::Outside, [=](Rogue& rogue) { rogue.write_entry(path); });
  };
  const auto nothing = [](Rogue&) {};
  EXPECT_EQ(attack({entry("../new"), entry("/tmp/new"), entry("a/../../new"), entry("root/tmp/new"),
                    with(false, "../x", false, Status::Outside, nothing),
                    with(false, "root/etc/passwd", false, Status::Outside, nothing),
                    with(true, "", true, Status::Outside,
                         [](Rogue& rogue) { rogue.send(open(kPieceBytes, "root/tmp/new")); })}),
            "");
  EXPECT_EQ(files(), 3U);  // file, back, root
}

TEST_F(Copy, ImpossibleSlots_AreRefused) {
  const auto piece = [](const copy::SlotHead& head) {
    return with(true, "new", false, Status::BadPeer, [=](Rogue& rogue) {
      rogue.send(open(2 * kPieceBytes));
      require(rogue.answer().kind == Kind::Opened, "not opened");
      rogue.write_piece(head);
    });
  };
  EXPECT_EQ(attack({piece({.magic = 1}), piece({.id = 2, .length = kPieceBytes}),
                    piece({.id = 1, .length = kPieceBytes + 1}), piece({.id = 1, .length = 1}),
                    piece({.id = 1, .offset = 4096, .length = kPieceBytes}),
                    piece({.id = 1, .offset = 3 * kPieceBytes, .length = kPieceBytes}),
                    piece({.entries = 9, .length = 16}),
                    with(true, "new", false, Status::BadPeer,
                         [](Rogue& rogue) { rogue.write_entry("other"); })}),
            "");
  EXPECT_FALSE(fs::exists(directory_ / "new"));
}

TEST_F(Copy, ImpossibleMessages_AreRefused) {
  const auto says = [](bool sends, const Message& message) {
    return with(sends, sends ? "new" : "file", false, Status::BadPeer,
                [=](Rogue& rogue) { rogue.send(message); });
  };
  EXPECT_EQ(attack({says(true, {.kind = Kind::Have, .id = 5, .size = 1}),
                    says(true, {.kind = Kind::Free}), says(true, open(0)),
                    says(false, {.kind = Kind::Bye}), says(false, {.kind = Kind::Free, .id = 77}),
                    says(false, {.kind = Kind::Opened, .id = 9}),
                    with(true, "new", false, Status::BadPeer,
                         [](Rogue& rogue) {
                           rogue.send(open(2 * kPieceBytes));
                           rogue.send({.kind = Kind::Done});  // without the bytes
                         })}),
            "");
  EXPECT_FALSE(fs::exists(directory_ / "new"));
}

TEST_F(Copy, WrongSum_IsAMismatch) {
  EXPECT_EQ(attack({with(true, "", true, Status::Mismatch,
                         [](Rogue& rogue) { rogue.write_entry("new", 1); }),
                    with(true, "long", false, Status::Mismatch,
                         [](Rogue& rogue) {
                           rogue.send(open(kPieceBytes));
                           require(rogue.answer().kind == Kind::Opened, "not opened");
                           rogue.write_piece({.id = 1, .sum = 1, .length = kPieceBytes});
                         })}),
            "");
  EXPECT_EQ(files(), 2U);  // file, back
}

}  // namespace
}  // namespace uet::e2e
