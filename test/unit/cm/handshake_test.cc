// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Initiators, a listener and an acceptor over a wire that loses, doubles and reorders messages.
// Whatever it does, an initiator and the acceptor agree in the end: each connection exists at both
// ends or at none, no request is announced twice, and nothing is left when all have shut down.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "base/rng.h"
#include "cm_testing.h"

namespace uet::cm {
namespace {

class Wire {
 public:
  explicit Wire(std::uint64_t seed) : rng_(seed) {
    Timing timing;
    timing.probe_period = seconds(30);
    for (std::uint8_t i = 0; i < kInitiators; ++i) {
      initiators_.push_back(
          std::make_unique<Connections>(name(static_cast<std::uint8_t>(10 + i), 100), i, timing));
    }
    acceptor_ = std::make_unique<Connections>(name(1, 200, 4794), seed + 99, timing);
    listener_.listen(64);
  }

  // Connections that were established at both ends.
  std::size_t run() {
    for (auto& initiator : initiators_) {
      for (int i = 0; i < 4; ++i) {
        initiator->connect(name(10, 5), JobId{}, name(1, 1), bytes("x"), now_);
      }
    }
    for (int step = 0; step < 4000; ++step) this->step(step < 500 ? 0.3 : 0);
    check_agreement();
    for (auto& initiator : initiators_) shut_all(*initiator);
    for (int step = 0; step < 2000; ++step) this->step(step < 1000 ? 0.3 : 0);
    for (auto& initiator : initiators_) EXPECT_EQ(initiator->size(), 0U);
    EXPECT_EQ(acceptor_->size(), 0U);
    EXPECT_EQ(listener_.waiting(), 0U);
    return established_;
  }

 private:
  static constexpr int kInitiators = 3;
  struct Flying {
    Outgoing message;
    Machine* sender;
  };

  void step(double loss) {
    now_ += milliseconds(50);
    listener_.progress(now_);
    acceptor_->progress(now_);
    for (auto& initiator : initiators_) initiator->progress(now_);
    collect(listener_);
    collect(*acceptor_);
    for (auto& initiator : initiators_) collect(*initiator);
    const std::size_t deliveries = rng_.below(6);
    for (std::size_t i = 0; i < deliveries && !flying_.empty(); ++i) fly(loss);
    announce();
    events(*acceptor_);
    for (auto& initiator : initiators_) events(*initiator);
  }

  void collect(Machine& machine) {
    while (const Outgoing* out = machine.next_message()) {
      flying_.push_back({*out, &machine});
      machine.pop_message();
    }
  }

  Machine* receiver(const av::UetAddress& to) {
    if (to == name(1, 1)) return &listener_;
    if (to == name(1, 200, 4794)) return acceptor_.get();
    for (std::uint8_t i = 0; i < kInitiators; ++i) {
      if (to == name(static_cast<std::uint8_t>(10 + i), 100)) return initiators_[i].get();
    }
    return nullptr;
  }

  // Any of the messages under way arrives, is lost, or arrives and flies on as a copy. A lost
  // one may have arrived.
  void fly(double loss) {
    const std::size_t which = rng_.below(flying_.size());
    const Flying one = flying_[which];
    const bool copy = loss > 0 && rng_.chance(0.15);
    if (!copy) flying_.erase(flying_.begin() + static_cast<std::ptrdiff_t>(which));
    const bool lost = rng_.chance(loss);
    Machine* const to = receiver(one.message.to);
    ASSERT_NE(to, nullptr);
    if (!lost || rng_.chance(0.3)) to->on_message(received(one.message), now_);
    if (one.message.about != 0 && !copy) {
      one.sender->sent(one.message.about, one.message.message.type,
                       lost ? Outcome::Lost : Outcome::Delivered, now_);
    }
  }

  void announce() {
    while (const auto key = listener_.next_request()) {
      listener_.pop_request();
      EXPECT_TRUE(announced_.insert(key->id).second) << "announced twice";
      if (rng_.chance(0.2)) {
        listener_.reject(*key, bytes("no"), now_);
      } else if (const auto request = listener_.take(*key, now_)) {
        peer_of_[acceptor_->accept(*request, name(1, 6, 4794), JobId{}, {}, now_)] = request->id;
      }
    }
  }

  void events(Connections& end) {
    while (const ConnectionEvent* event = end.next_event()) {
      if (event->kind == ConnectionEvent::Kind::Connected) {
        EXPECT_TRUE(live_.insert(event->id).second);
        EXPECT_FALSE(ended_.contains(event->id));
      } else {
        live_.erase(event->id);
        EXPECT_TRUE(ended_.insert(event->id).second) << "ended twice";
      }
      end.pop_event();
    }
  }

  void check_agreement() {
    for (const auto& [acceptors, initiators] : peer_of_) {
      EXPECT_EQ(live_.contains(acceptors), live_.contains(initiators));
    }
    established_ = live_.size() / 2;
    std::size_t open = acceptor_->size();
    for (auto& initiator : initiators_) open += initiator->size();
    EXPECT_EQ(open, live_.size()) << "a connection is neither established nor over";
  }

  void shut_all(Connections& end) {
    for (const auto& [acceptors, initiators] : peer_of_) {
      for (const ConnectionId id : {acceptors, initiators}) {
        if (live_.contains(id) && rng_.chance(0.7)) acceptor_->shutdown(id, now_);
        end.shutdown(id, now_);
      }
    }
  }

  Time now_ = time_from_ns(1'000'000'000);
  Rng rng_;
  Listener listener_{name(1, 1), 7};
  std::unique_ptr<Connections> acceptor_;
  std::vector<std::unique_ptr<Connections>> initiators_;
  std::vector<Flying> flying_;
  std::set<ConnectionId> announced_;
  std::set<ConnectionId> live_;
  std::set<ConnectionId> ended_;
  std::size_t established_ = 0;
  std::map<ConnectionId, ConnectionId> peer_of_;  // the acceptor's id -> the initiator's
};

TEST(CmHandshake, Cm24_EndsAgreeWhateverTheWireDoes) {
  std::size_t established = 0;
  for (std::uint64_t seed = 1; seed <= 200 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    established += Wire(seed).run();
  }
  EXPECT_GT(established, 200U);  // of 12 a run
}

}  // namespace
}  // namespace uet::cm
