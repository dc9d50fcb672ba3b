// A worker that is told what cannot be done.
#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "distributed/digest.h"
#include "distributed/simulated_training.h"
#include "distributed/worker.h"

namespace crema {
namespace {

class WorkerOrders : public testing::Test {
 protected:
  WorkerOrders() {
    worker_.OnTick(now_ += 1000);
    ClusterMessage welcome;
    for (const Outgoing& outgoing : worker_.TakeOutgoing()) {
      if (outgoing.message.has_hello())
        welcome.mutable_welcome()->set_incarnation(outgoing.message.hello().incarnation());
    }
    Hear(welcome);
    worker_.OnBuilt(1000, {}, {.chunk_bytes = 1000}, DistributedParameter::STAR, {}, now_);
    worker_.TakeOutgoing();
  }

  void Hear(ClusterMessage message, std::span<const std::byte> bytes = {}) {
    message.set_job(7);
    message.set_epoch(3);
    message.set_member(5);
    message.set_sequence(++sequence_);
    worker_.OnMessage(message, bytes, now_);
  }

  // Leases of so many steps; with the parameters.
  static ClusterMessage WorkOf(uint64_t first, uint64_t count, uint64_t iteration) {
    ClusterMessage message;
    Work& work = *message.mutable_work();
    work.set_version(1);
    work.set_state(10);
    work.set_form(Work::WHOLE);
    work.set_digest(DigestOf(*ParametersOf({}, kWords)));
    work.set_iteration(iteration);
    work.mutable_lease()->set_serial(4);
    work.mutable_lease()->mutable_steps()->set_first(first);
    work.mutable_lease()->mutable_steps()->set_count(count);
    return message;
  }

  void BringState() {
    const Payload state = ParametersOf({}, kWords);
    TransferSender sender({.chunk_bytes = 1000});
    sender.Start(10, SimulatedRoundMath(state, kWords).Whole(state), now_);
    sender.Poll(now_, [&](Chunk chunk, Slice slice) {
      ClusterMessage message;
      *message.mutable_chunk() = chunk;
      Hear(message, slice.bytes());
    });
  }

  static constexpr size_t kWords = 4;
  SimulatedWorkerMath math_{kWords};
  Milliseconds now_ = 1000;
  uint64_t sequence_ = 0;
  Worker worker_{{.process = 9, .name = "me"}, math_, now_};
};

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

TEST_F(WorkerOrders, TrainsWhatCanBeTrained) {
  Hear(WorkOf(30, 10, 20));
  BringState();
  const auto task = worker_.TakeTask();
  ASSERT_TRUE(task);
  EXPECT_EQ(task->steps, (Steps{30, 10}));
}

class WorkerOrdersWithout : public WorkerOrders,
                            public testing::WithParamInterface<std::tuple<uint64_t, uint64_t, uint64_t>> {
 protected:
  // Training would otherwise end everywhere, with what the data says of runs of no batches.
  void ExpectThatItAloneEnds(const ClusterMessage& work) {
    Hear(work);
    BringState();
    EXPECT_FALSE(worker_.TakeTask());
    ASSERT_TRUE(worker_.ended());
    EXPECT_TRUE(worker_.failed());
    EXPECT_NE(worker_.end_reason().find("asks for " + std::to_string(std::get<1>(GetParam())) + " steps from"),
              std::string::npos)
        << worker_.end_reason();
    bool told = false;
    for (const Outgoing& outgoing : worker_.TakeOutgoing()) {
      told |= outgoing.message.leave().reason() == worker_.end_reason();
      EXPECT_FALSE(outgoing.message.has_push());
    }
    EXPECT_TRUE(told) << "the coordinator's log is to say why it left";
  }
};

TEST_P(WorkerOrdersWithout, SenseEndIt) {
  const auto [first, count, iteration] = GetParam();
  ExpectThatItAloneEnds(WorkOf(first, count, iteration));
}

TEST_P(WorkerOrdersWithout, SenseAheadEndIt) {
  const auto [first, count, iteration] = GetParam();
  ClusterMessage message = WorkOf(first, count, iteration);
  *message.mutable_work()->mutable_ahead() = message.work().lease();
  if (iteration < kMost / 2) {
    message.mutable_work()->mutable_lease()->mutable_steps()->set_first(0);
    message.mutable_work()->mutable_lease()->mutable_steps()->set_count(10);
  }
  ExpectThatItAloneEnds(message);
}

INSTANTIATE_TEST_SUITE_P(Leases, WorkerOrdersWithout,
                         testing::Values(std::tuple(30, 0, 20), std::tuple(0, uint64_t{1} << 40, 20),
                                         std::tuple(kMost - 5, 10, 20), std::tuple(30, 10, kMost - 3)));

}  // namespace
}  // namespace crema
