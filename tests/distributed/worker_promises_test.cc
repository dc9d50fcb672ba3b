// A worker that exchanges values while it makes them, spoken to by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "distributed/coordinator_fixture.h"
#include "distributed/in_the_making.h"
#include "distributed/protocol/worker.h"

namespace crema {
namespace {

// A worker in an exchange with another one, by a coordinator whose words are written here.
class PromisingWorker : public testing::Test {
 protected:
  static constexpr size_t kMany = 12;  // words

  PromisingWorker() {
    Drain(true);
    ClusterMessage welcome;
    welcome.mutable_welcome()->set_incarnation(hello_);
    Hear(welcome);
    worker_.TakeWelcome();
    worker_.OnBuilt(1000, {}, transfer_, DistributedParameter::SHARDED, Address("me"), now_);
  }

  static PeerAddress Address(const std::string& name) {
    PeerAddress address;
    address.set_endpoint(name);
    address.set_public_key("key of " + name);
    return address;
  }
  static Payload Gradients(uint64_t step) {
    Tally tally;
    tally.Add({step, 1});
    return ParametersOf(tally, kMany);
  }

  void Hear(ClusterMessage message, std::span<const std::byte> bytes = {}) {
    message.set_job(7);
    message.set_epoch(3);
    message.set_member(5);
    message.set_sequence(++sequence_);
    worker_.OnMessage(message, bytes, now_);
    Drain();
  }

  // Keeps what was said last, and lets the other worker answer.
  void Drain(bool tick = false) {
    if (tick) {
      now_ += 1100;
      worker_.OnTick(now_);
    }
    for (bool some = true; some;) {
      some = false;
      for (Outgoing& outgoing : worker_.TakeOutgoing()) {
        some = true;
        const ClusterMessage& said = outgoing.message;
        if (said.has_hello()) hello_ = said.hello().incarnation();
        if (said.has_push()) push_ = said.push();
        if (said.has_heartbeat()) beat_ = said.heartbeat();
        if (outgoing.lane != Lane::kPeer || !other_) continue;
        const std::span<const std::byte> bytes =
            outgoing.slice.payload ? outgoing.slice.bytes() : std::span<const std::byte>();
        if (said.has_chunk()) other_->OnChunk(0, said.chunk(), bytes, now_);
        if (said.has_chunk_received()) other_->OnChunkReceived(0, said.chunk_received(), now_);
      }
      if (!other_) continue;
      for (PeerTransfers::Outgoing& out : other_->TakeOutgoing()) {
        some = true;
        ClusterMessage& message = out.message;
        (message.has_chunk() ? message.mutable_chunk()->set_attempt(attempt_)
                             : message.mutable_chunk_received()->set_attempt(attempt_));
        message.set_job(7);
        message.set_epoch(3);
        message.set_member(6);
        worker_.OnPeerMessage("key of other", message,
                              out.slice.payload ? out.slice.bytes() : std::span<const std::byte>(), now_);
      }
    }
  }

  ClusterMessage Open(bool keep_values = true) const {
    ClusterMessage message;
    Work& work = *message.mutable_work();
    work.set_state(10);
    work.set_form(Work::WHOLE);
    work.set_digest(DigestOf(*state_));
    work.set_iteration(4);
    work.mutable_lease()->set_serial(1);
    work.mutable_lease()->mutable_steps()->set_first(8);
    work.mutable_lease()->mutable_steps()->set_count(1);
    work.set_keep_values(keep_values);
    return message;
  }

  // With the state and a task.
  void Begin(bool keep_values = true) {
    Hear(Open(keep_values));
    TransferSender sender({.chunk_bytes = 1000});
    sender.Start(10, SimulatedRoundMath(state_, kMany).Whole(state_), now_);
    sender.Poll(now_, [&](Chunk chunk, Slice slice) {
      ClusterMessage message;
      *message.mutable_chunk() = chunk;
      Hear(message, slice.bytes());
    });
    const auto task = worker_.TakeTask();
    ASSERT_TRUE(task);
    Make(8 * kMany);
  }

  void Make(uint64_t from) {
    making_.MakeFrom(from);
    worker_.OnMaking(1, making_.bytes(), 32, from, now_);
    EXPECT_LE(worker_.deadline(), now_);
    worker_.OnTick(now_);
    Drain();
  }

  // The other worker has its values at once, but for those of an attempt in which it says nothing.
  void Order(uint64_t attempt, bool other_speaks = true) {
    attempt_ = attempt;
    other_.reset();
    if (other_speaks) BeginOther();
    HearOrder(attempt);
  }

  void BeginOther() {
    const ExchangePlan plan{.rank = 1, .examples = {32, 32}, .iteration = 4, .from = state_};
    other_ = std::make_unique<PeerTransfers>(plan, Gradients(9), math_of_other_, transfer_, now_);
  }

  void HearOrder(uint64_t attempt) {
    ClusterMessage message = Open();
    ExchangeOrder& order = *message.mutable_work()->mutable_exchange();
    order.set_attempt(attempt);
    order.set_rank(0);
    for (const uint64_t member : {5, 6}) {
      ExchangeOrder::Peer& peer = *order.add_peer();
      peer.set_member(member);
      *peer.mutable_address() = Address(member == 5 ? "me" : "other");
      peer.set_examples(32);
    }
    Hear(message);
    EXPECT_EQ(beat_.attempt(), attempt);
  }

  void End(Payload values, const std::string& failure = {}) {
    TrainResult result;
    result.lease = 1;
    result.values = std::move(values);
    result.examples = 32;
    result.failure = failure;
    worker_.OnTrained(std::move(result), now_);
    Drain(true);
  }

  uint64_t ExpectedDigest() const {
    Tally tally = TallyOf(state_);
    tally.Add({8, 2});
    tally.Update(4);
    return DigestOf(*ParametersOf(tally, kMany));
  }

  const TransferOptions transfer_{.chunk_bytes = 16};
  SimulatedWorkerMath math_{kMany, Simulated::kGradients, 3};
  const SimulatedExchangeMath math_of_other_{3};
  Milliseconds now_ = 1000;
  Worker worker_{{.process = 9, .name = "me"}, math_, now_};
  std::unique_ptr<PeerTransfers> other_;
  uint64_t sequence_ = 0, hello_ = 0, attempt_ = 0;
  Push push_;
  Heartbeat beat_;
  const Payload state_ = ParametersOf({}, kMany);
  InTheMaking making_{Gradients(8)};
};

TEST_F(PromisingWorker, ExchangesWhatIsThereAndSaysWhenAllIs) {
  Begin();
  EXPECT_TRUE(push_.promised());
  EXPECT_TRUE(push_.kept());
  EXPECT_EQ(push_.examples(), 32u);
  EXPECT_EQ(push_.lease().serial(), 1u);
  const Push promise = push_;
  Order(1);
  EXPECT_EQ(worker_.peer_bytes_sent(), 0u);
  Make(8 * 7);
  const uint64_t some = worker_.peer_bytes_sent();
  EXPECT_GT(some, 0u) << "the last bucket is there";
  Drain(true);
  EXPECT_TRUE(push_.promised());
  EXPECT_EQ(push_.id(), promise.id());
  Make(0);
  EXPECT_GT(worker_.peer_bytes_sent(), some);
  EXPECT_EQ(beat_.exchanged_digest(), ExpectedDigest());
  EXPECT_TRUE(push_.promised()) << "the coordinator has not heard how the round went here";
  End(making_.bytes());
  EXPECT_FALSE(push_.promised());
  EXPECT_EQ(push_.id(), promise.id());
  EXPECT_EQ(push_.failure(), "");
  EXPECT_EQ(beat_.exchanged_digest(), ExpectedDigest());
  ASSERT_TRUE(other_->result());
}

TEST_F(PromisingWorker, TheExchangeMayBeginWhenAllIsThere) {
  Begin();
  Make(8 * 3);
  End(making_.bytes());  // the last of it came with the result
  EXPECT_FALSE(push_.promised());
  making_.MakeFrom(0);
  Order(1);
  Drain(true);
  EXPECT_EQ(beat_.exchanged_digest(), ExpectedDigest());
}

TEST_F(PromisingWorker, AnotherAttemptHasAllThatIsThere) {
  Begin();
  Order(1, false);
  Make(8 * 2);
  Order(2);
  EXPECT_FALSE(beat_.has_exchanged_digest());
  making_.MakeFrom(0);
  End(making_.bytes());
  EXPECT_EQ(beat_.exchanged_digest(), ExpectedDigest());
}

TEST_F(PromisingWorker, WhatIsNotFiniteDoesNotLeaveAndIsToldOnlyOfTheResult) {
  making_ = InTheMaking(NotFinite(kMany));
  Begin();
  const uint64_t promise = push_.id();
  Order(1);
  for (const uint64_t word : {8, 4, 0}) Make(8 * word);
  Drain(true);
  EXPECT_EQ(worker_.peer_bytes_sent(), 0u);
  EXPECT_EQ(beat_.exchange_failure(), "") << "nothing is wrong with others, who go on without this one";
  EXPECT_TRUE(push_.promised());
  End(making_.bytes());
  EXPECT_EQ(push_.id(), promise);
  EXPECT_EQ(push_.failure(), "its values are not all finite");
  EXPECT_EQ(beat_.attempt(), 0u);
}

TEST_F(PromisingWorker, TakesItBackWhenTheStepFails) {
  Begin();
  const uint64_t promise = push_.id();
  Order(1);
  End(nullptr, "the loss is nan");
  EXPECT_EQ(push_.id(), promise);
  EXPECT_FALSE(push_.promised());
  EXPECT_EQ(push_.failure(), "the loss is nan");
  EXPECT_EQ(beat_.attempt(), 0u);
}

TEST_F(PromisingWorker, PromisesNothingInARoundThroughTheCoordinator) {
  Begin(false);
  EXPECT_FALSE(push_.has_id());
  making_.MakeFrom(0);
  End(making_.bytes());
  EXPECT_TRUE(push_.has_id());
  EXPECT_FALSE(push_.kept());
  EXPECT_TRUE(push_.has_digest());
}

// The coordinator may have committed it and said nothing of it yet when it stood still.
TEST_F(PromisingWorker, KeepsWhatItMadeUntilItHearsWhetherItCounts) {
  Begin();
  making_.MakeFrom(0);
  End(making_.bytes());
  Order(1);
  Drain(true);
  ASSERT_EQ(beat_.exchanged_digest(), ExpectedDigest());
  const uint64_t before = hello_;
  for (int i = 0; i < 40 && hello_ == before; ++i) Drain(true);
  ASSERT_NE(hello_, before) << "it heard nothing for long";
  beat_ = {};
  ClusterMessage welcome;
  welcome.mutable_welcome()->set_incarnation(hello_);
  Hear(welcome);
  EXPECT_EQ(beat_.exchanged_digest(), ExpectedDigest());
  EXPECT_EQ(beat_.version(), 0u);
  ClusterMessage message;
  message.mutable_work()->set_version(1);
  message.mutable_work()->set_digest(ExpectedDigest());
  Hear(message);
  EXPECT_EQ(worker_.version(), 1u) << "without a transfer";
  EXPECT_EQ(worker_.digest(), ExpectedDigest());
}

// Whoever speaks for workers that there are not, or says more than there is to say, does not fill the memory.
TEST_F(PromisingWorker, RemembersSoManyWhoAreEarly) {
  Begin();
  making_.MakeFrom(0);
  End(making_.bytes());
  ClusterMessage message;
  message.set_job(7);
  message.set_epoch(3);
  for (const uint64_t attempt : {1, 9}) {
    message.mutable_chunk_received()->set_attempt(attempt);
    message.set_member(6);
    for (size_t i = 0; i < 2 * Worker::kMostEarly; ++i) worker_.OnPeerMessage("key of other", message, {}, now_);
    EXPECT_EQ(worker_.early_dropped(), 0u) << "once is enough";
  }
  message.mutable_chunk_received()->set_transfer(1);
  for (uint64_t member = 100; member < 200; ++member) {
    message.set_member(member);
    worker_.OnPeerMessage("key of other", message, {}, now_);
  }
  EXPECT_EQ(worker_.early_dropped(), 0u) << "nobody can have got anything, and this is not kept";
  message.mutable_chunk_received()->clear_transfer();
  for (uint64_t member = 100; member < 100 + Worker::kMostEarly + 5; ++member) {
    message.set_member(member);
    worker_.OnPeerMessage("key of other", message, {}, now_);
  }
  EXPECT_EQ(worker_.early_dropped(), 6u);
}

TEST_F(PromisingWorker, WhoWasEarlyAndIsForgottenAsksAgain) {
  Begin();
  making_.MakeFrom(0);
  End(making_.bytes());
  ClusterMessage message;
  message.set_job(7);
  message.set_epoch(3);
  message.mutable_chunk_received()->set_attempt(1000);
  for (uint64_t member = 100; member < 100 + Worker::kMostEarly; ++member) {
    message.set_member(member);
    worker_.OnPeerMessage("key of another", message, {}, now_);
  }
  // The other one knows of the exchange before this one does.
  attempt_ = 1;
  BeginOther();
  Drain();
  EXPECT_GE(worker_.early_dropped(), 1u);
  HearOrder(1);
  for (int i = 0; i < 10 && !beat_.has_exchanged_digest(); ++i) {
    now_ += transfer_.patience;
    other_->Poll(now_);
    Drain(true);
  }
  EXPECT_EQ(beat_.exchanged_digest(), ExpectedDigest());
}

// The round goes through the coordinator after all: what is promised is sent there when it is made.
TEST_F(PromisingWorker, SendsWhatItPromisedToTheCoordinatorWhereThatWantsIt) {
  Begin();
  const uint64_t promise = push_.id();
  Order(1);
  Hear(Open(false));
  making_.MakeFrom(0);
  End(making_.bytes());
  EXPECT_GT(push_.id(), promise);
  EXPECT_FALSE(push_.kept());
}

}  // namespace
}  // namespace crema
