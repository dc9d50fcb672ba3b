// A worker that is spoken to by hand, in the coordinator's place.
#ifndef CREMA_TESTS_DISTRIBUTED_WORKER_FIXTURE_H_
#define CREMA_TESTS_DISTRIBUTED_WORKER_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "distributed/journal/digest.h"
#include "distributed/protocol/worker.h"
#include "distributed/simulated_training.h"

namespace crema {

class WorkerTest : public testing::Test {
 protected:
  static constexpr size_t kWords = 4;

  WorkerTest() : worker_({.process = 9, .name = "node3:1", .transfer = {.chunk_bytes = 1000}}, math_, now_) {}

  std::vector<Outgoing> Hear(ClusterMessage message, std::span<const std::byte> bytes = {}) {
    if (!message.has_job()) message.set_job(7);
    if (!message.has_epoch()) message.set_epoch(epoch_);
    if (!message.has_member()) message.set_member(member_);
    if (!message.has_sequence()) message.set_sequence(++sequence_);
    worker_.OnMessage(message, bytes, now_);
    return worker_.TakeOutgoing();
  }

  // Ticks until then; what was sent.
  std::vector<Outgoing> Wait(Milliseconds until) {
    std::vector<Outgoing> all = worker_.TakeOutgoing();
    for (; now_ < until; now_ += 100) {
      if (worker_.deadline() > now_) continue;
      worker_.OnTick(now_);
      for (Outgoing& outgoing : worker_.TakeOutgoing()) all.push_back(std::move(outgoing));
    }
    return all;
  }

  static std::optional<ClusterMessage> Last(const std::vector<Outgoing>& all, ClusterMessage::BodyCase body) {
    std::optional<ClusterMessage> last;
    for (const Outgoing& outgoing : all) {
      if (outgoing.message.body_case() == body) last = outgoing.message;
    }
    return last;
  }

  Hello NextHello(Milliseconds within = 10'000) {
    const auto message = Last(Wait(now_ + within), ClusterMessage::kHello);
    EXPECT_TRUE(message);
    return message ? message->hello() : Hello();
  }

  std::vector<Outgoing> Welcomed(const Hello& hello, const std::string& solver = "solver") {
    ClusterMessage message;
    message.mutable_welcome()->set_incarnation(hello.incarnation());
    message.mutable_welcome()->set_slot(2);
    message.mutable_welcome()->set_solver(solver);
    return Hear(message);
  }

  void Build() {
    Welcomed(NextHello());
    ASSERT_TRUE(worker_.TakeWelcome());
    worker_.OnBuilt(100, {}, {.chunk_bytes = 1000}, DistributedParameter::STAR, {}, now_);
    worker_.TakeOutgoing();
  }

  ClusterMessage WorkFor(uint64_t version, const Payload& state, uint64_t lease = 0, bool open = true) {
    ClusterMessage message;
    Work& work = *message.mutable_work();
    work.set_version(version);
    work.set_slot(2);
    work.set_state(10 + version);
    work.set_form(Work::WHOLE);
    work.set_digest(DigestOf(*state));
    if (lease == 0) return message;
    if (open) work.set_iteration(10 * version);
    work.mutable_lease()->set_serial(lease);
    work.mutable_lease()->mutable_steps()->set_first(10 * lease);
    work.mutable_lease()->mutable_steps()->set_count(10);
    return message;
  }

  // With a lease for the round behind.
  static ClusterMessage AheadOf(ClusterMessage work, uint64_t serial) {
    work.mutable_work()->mutable_ahead()->set_serial(serial);
    work.mutable_work()->mutable_ahead()->mutable_steps()->set_first(10 * serial);
    work.mutable_work()->mutable_ahead()->mutable_steps()->set_count(10);
    return work;
  }

  void BringState(uint64_t version, const Payload& state) {
    TransferSender sender({.chunk_bytes = 1000});
    sender.Start(10 + version, SimulatedRoundMath(state, kWords).Whole(state), now_);
    sender.Poll(now_, [&](Chunk chunk, Slice slice) {
      ClusterMessage message;
      *message.mutable_chunk() = chunk;
      for (Outgoing& outgoing : Hear(message, slice.bytes())) sent_.push_back(std::move(outgoing));
    });
  }

  static Payload StateOf(uint64_t steps) {
    Tally tally;
    tally.Add({0, steps});
    return ParametersOf(tally, kWords);
  }

  // The result of a task.
  static TrainResult Trained(const TrainTask& task) {
    Tally tally = TallyOf(task.state);
    tally.Add(task.steps);
    TrainResult result;
    result.lease = task.lease;
    result.values = ParametersOf(tally, kWords);
    return result;
  }

  // Goes on with what it made, if it is to.
  struct Math : SimulatedWorkerMath {
    using SimulatedWorkerMath::SimulatedWorkerMath;
    Payload Own(const Payload& values, const Payload&) override { return keeps_own ? values : nullptr; }
    bool keeps_own = false;
  };

  Math math_{6};
  Milliseconds now_ = 1000;
  uint64_t epoch_ = 3, member_ = 5, sequence_ = 0;
  Worker worker_;
  std::vector<Outgoing> sent_;
};

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_WORKER_FIXTURE_H_
