// Values that are exchanged while they are being made: the exchange, and both sides of the protocol, spoken to by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "distributed/coordinator_fixture.h"
#include "distributed/exchange_math.h"
#include "distributed/worker.h"

namespace crema {
namespace {

// Whose bytes come from the last one on; what is not there yet is no number.
class InTheMaking {
 public:
  explicit InTheMaking(Payload whole)
      : whole_(std::move(whole)),
        bytes_(std::make_shared<Bytes>(whole_->size(), std::byte{0xFF})),
        there_from_(whole_->size()) {}

  void MakeFrom(uint64_t byte) {
    there_from_ = std::min(there_from_, byte);
    std::copy(whole_->begin() + static_cast<std::ptrdiff_t>(there_from_), whole_->end(),
              bytes_->begin() + static_cast<std::ptrdiff_t>(there_from_));
  }
  Payload bytes() const { return bytes_; }
  uint64_t there_from() const { return there_from_; }

 private:
  Payload whole_;
  std::shared_ptr<Bytes> bytes_;
  uint64_t there_from_;
};

struct Letter {
  int from = 0;
  Exchange::Message message;
};

TEST(ExchangeInBuckets, GivesTheSameBitsWhateverIsThereFirst) {
  for (const int n : {1, 2, 3, 5}) {
    for (const size_t count : {0u, 1u, 7u, 1000u}) {
      for (const int buckets : {1, 2, 7}) {
        for (const auto cutting : {FloatMath::Cutting::kEven, FloatMath::Cutting::kSkewed}) {
          SCOPED_TRACE(testing::Message() << n << " workers, " << count << " values, " << buckets << " buckets");
          FloatMath math(count * sizeof(float), cutting);
          math.set_buckets(buckets);
          ExchangePlan plan = PlanOf(DistributedParameter::SHARDED, n);
          const std::vector<Payload> values = ValuesOf(plan, count);
          const Payload mean = FloatMath().Combine(plan, 0, count * sizeof(float), values);
          std::vector<InTheMaking> making(values.begin(), values.end());
          std::vector<std::unique_ptr<Exchange>> exchanges;
          for (plan.rank = 0; plan.rank < n; ++plan.rank) {
            const InTheMaking& own = making[static_cast<size_t>(plan.rank)];
            exchanges.push_back(MakeExchange(plan, own.bytes(), math, own.there_from()));
          }
          const RandomStream random(static_cast<uint64_t>(n * buckets), count);
          uint64_t drawn = 0;
          std::vector<Letter> way;
          const auto done = [&] {
            return std::all_of(exchanges.begin(), exchanges.end(), [](const auto& one) { return one->result(); });
          };
          for (int turn = 0; !done(); ++turn) {
            ASSERT_LT(turn, 10'000);
            const auto r = static_cast<size_t>(random.Below(drawn++, static_cast<uint64_t>(n)));
            if (random.Below(drawn++, 3) == 0) {
              const uint64_t less = random.Below(drawn++, 2 + count * sizeof(float) / 3);
              making[r].MakeFrom(making[r].there_from() - std::min(making[r].there_from(), less));
              exchanges[r]->OnValues(making[r].there_from());
            } else if (!way.empty()) {
              const size_t i = random.Below(drawn++, way.size());
              const Letter letter = way[i];
              way.erase(way.begin() + static_cast<std::ptrdiff_t>(i));
              exchanges[static_cast<size_t>(letter.message.to)]->OnMessage(letter.from, letter.message.stage,
                                                                           letter.message.payload);
            }
            for (int from = 0; from < n; ++from) {
              for (Exchange::Message& message : exchanges[static_cast<size_t>(from)]->TakeMessages()) {
                way.push_back({from, std::move(message)});
              }
            }
          }
          for (const auto& one : exchanges) EXPECT_EQ(*one->result(), *mean);
        }
      }
    }
  }
}

TEST(ExchangeInBuckets, SendsWhatIsThereAndGivesBackWhatCameOfIt) {
  FloatMath math;
  math.set_buckets(4);
  ExchangePlan plan = PlanOf(DistributedParameter::SHARDED, 2);
  const std::vector<Payload> values = ValuesOf(plan, 800);
  InTheMaking own(values[0]);
  const auto exchange = MakeExchange(plan, own.bytes(), math, own.there_from());
  EXPECT_TRUE(exchange->TakeMessages().empty());
  own.MakeFrom(2401);
  exchange->OnValues(2401);
  EXPECT_TRUE(exchange->TakeMessages().empty()) << "a byte of the last bucket is missing";
  own.MakeFrom(2000);
  exchange->OnValues(2000);
  std::vector<Exchange::Message> sent = exchange->TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].stage, 6u);
  EXPECT_EQ(*sent[0].payload, Bytes(values[0]->begin() + 2800, values[0]->end()));
  // The other one's piece of the same bucket.
  exchange->OnMessage(1, 6, std::make_shared<Bytes>(values[1]->begin() + 2400, values[1]->begin() + 2800));
  sent = exchange->TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].stage, 7u);
  EXPECT_FALSE(exchange->result());
  EXPECT_FALSE(exchange->failed());
}

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
    const ExchangePlan plan{.rank = 1, .examples = {32, 32}, .iteration = 4, .from = state_};
    other_.reset();
    if (other_speaks) other_ = std::make_unique<PeerTransfers>(plan, Gradients(9), math_of_other_, transfer_, now_);
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

class CoordinatorOfPromises : public CoordinatorTest {
 protected:
  CoordinatorOfPromises() {
    options_.topology = DistributedParameter::SHARDED;
    options_.expected_workers = 2;
    options_.local_steps = 1;
  }

  // What a heartbeat brings.
  Work Beats(Peer& peer, uint64_t attempt = 0, uint64_t digest = 0) {
    ClusterMessage message = Beat();
    message.mutable_heartbeat()->mutable_address()->set_endpoint(peer.route);
    message.mutable_heartbeat()->set_attempt(attempt);
    if (digest != 0) message.mutable_heartbeat()->set_exchanged_digest(digest);
    Work work;
    for (const Outgoing& outgoing : Say(peer, message)) {
      if (outgoing.route == peer.route && outgoing.message.has_work()) work = outgoing.message.work();
    }
    return work;
  }

  static ClusterMessage PromiseOf(const Work& work, uint64_t id, bool promised, const std::string& failure = {}) {
    ClusterMessage message = PushOf(work, id, ParametersOf({}, kWords));
    message.mutable_push()->clear_digest();
    message.mutable_push()->set_kept(true);
    message.mutable_push()->set_promised(promised);
    message.mutable_push()->set_failure(failure);
    return message;
  }

  // Both have promised, and know of an exchange.
  void Begin() {
    Start();
    a_ = Join("a", 11);
    b_ = Join("b", 12);
    Beats(a_);
    Beats(b_);
    of_a_ = Beats(a_);
    of_b_ = Beats(b_);
    ASSERT_TRUE(of_a_.keep_values());
    Say(a_, PromiseOf(of_a_, 1, true));
    EXPECT_FALSE(Beats(a_).has_exchange()) << "the other one may have nothing to promise";
    Say(b_, PromiseOf(of_b_, 1, true));
    const Work order = Beats(a_);
    ASSERT_TRUE(order.has_exchange());
    EXPECT_EQ(order.exchange().peer_size(), 2);
    EXPECT_EQ(order.exchange().peer(1).examples(), 1u);
    attempt_ = order.exchange().attempt();
  }

  std::vector<std::string> Warnings() {
    std::vector<std::string> warnings;
    for (const ClusterEvent& event : coordinator_->TakeEvents()) {
      if (event.kind == ClusterEvent::Kind::kWarning) warnings.push_back(event.text);
    }
    return warnings;
  }

  Peer a_, b_;
  Work of_a_, of_b_;
  uint64_t attempt_ = 0;
};

TEST_F(CoordinatorOfPromises, CommitsWhenAllIsThereAndAllAgree) {
  Begin();
  Say(a_, PromiseOf(of_a_, 1, false));
  Beats(a_, attempt_, 99);
  Beats(b_, attempt_, 99);
  EXPECT_EQ(journal_.commits(), 0u) << "b has not said what its loss was";
  // Again what it said before: messages are repeated.
  Say(b_, PromiseOf(of_b_, 1, true));
  EXPECT_EQ(journal_.commits(), 0u);
  Say(b_, PromiseOf(of_b_, 1, false));
  EXPECT_EQ(journal_.commits(), 1u);
  EXPECT_EQ(coordinator_->version(), 1u);
}

TEST_F(CoordinatorOfPromises, GoesOnWithoutOneWhoseValuesDoNotCome) {
  Begin();
  Say(a_, PromiseOf(of_a_, 1, true));
  Say(b_, PromiseOf(of_b_, 1, false, "the loss is nan"));
  const Work order = Beats(a_, attempt_);
  ASSERT_TRUE(order.has_exchange());
  EXPECT_GT(order.exchange().attempt(), attempt_);
  EXPECT_EQ(order.exchange().peer_size(), 1);
  EXPECT_FALSE(Beats(b_, attempt_).has_exchange());
  EXPECT_EQ(Warnings(), (std::vector<std::string>{"worker b: the loss is nan"}));
  Beats(a_, order.exchange().attempt(), 99);
  EXPECT_EQ(journal_.commits(), 0u);
  Say(a_, PromiseOf(of_a_, 1, false));
  EXPECT_EQ(journal_.commits(), 1u);
}

TEST_F(CoordinatorOfPromises, ARecordThatCannotBeUsedEndsTraining) {
  Begin();
  ClusterMessage push = PromiseOf(of_b_, 1, false, "label 7 of 4 classes");
  push.mutable_push()->set_fatal(true);
  Say(b_, push);
  EXPECT_EQ(coordinator_->failure(), "worker b: label 7 of 4 classes");
}

TEST_F(CoordinatorOfPromises, IsPatientAsLongAsValuesAreBeingMade) {
  Begin();
  Say(a_, PromiseOf(of_a_, 1, false));
  const Milliseconds long_since = now_ + 3 * options_.dead;
  for (; now_ < long_since; now_ += options_.heartbeat) {
    Beats(a_, attempt_);
    Beats(b_, attempt_);
    coordinator_->OnTick(now_);
  }
  EXPECT_TRUE(Warnings().empty());
  Say(b_, PromiseOf(of_b_, 1, false));
  const Milliseconds made = now_;
  while (Beats(a_, attempt_).exchange().attempt() == attempt_ && now_ < made + 10 * options_.dead) {
    now_ += options_.heartbeat;
    Beats(b_, attempt_);
    coordinator_->OnTick(now_);
  }
  EXPECT_GE(now_, made + options_.dead) << "an exchange takes its time";
  EXPECT_LT(now_, made + 2 * options_.dead) << "one that does not move is given up";
}

TEST_F(CoordinatorOfPromises, OneThatHangsInTheMakingIsOut) {
  Begin();
  Say(a_, PromiseOf(of_a_, 1, false));
  const Milliseconds begin = now_;
  while (now_ < begin + 2 * options_.stall && Beats(b_, attempt_).has_lease()) {
    now_ += options_.heartbeat;
    Beats(a_, attempt_);
    coordinator_->OnTick(now_);
  }
  EXPECT_GE(now_, begin + options_.stall);
  EXPECT_EQ(Beats(a_, attempt_).exchange().peer_size(), 1);
}

}  // namespace
}  // namespace crema
