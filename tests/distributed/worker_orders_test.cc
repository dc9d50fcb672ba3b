// A worker that is told what cannot be done.
#include <iterator>
#include <limits>
#include <tuple>
#include <vector>

#include "distributed/worker_fixture.h"

namespace crema {
namespace {

class WorkerOrders : public WorkerTest {
 protected:
  WorkerOrders() { Build(); }

  // A lease of so many steps.
  ClusterMessage WorkOf(uint64_t first, uint64_t count, uint64_t iteration) {
    ClusterMessage message = WorkFor(0, StateOf(0), 4);
    message.mutable_work()->set_iteration(iteration);
    message.mutable_work()->mutable_lease()->mutable_steps()->set_first(first);
    message.mutable_work()->mutable_lease()->mutable_steps()->set_count(count);
    return message;
  }
};

constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

TEST_F(WorkerOrders, TrainsWhatCanBeTrained) {
  Hear(WorkOf(30, 10, 20));
  BringState(0, StateOf(0));
  const auto task = worker_.TakeTask();
  ASSERT_TRUE(task);
  EXPECT_EQ(task->steps, (Steps{30, 10}));
}

class WorkerOrdersWithout : public WorkerOrders,
                            public testing::WithParamInterface<std::tuple<uint64_t, uint64_t, uint64_t>> {
 protected:
  // Training would otherwise end everywhere, with what the data says of runs of no batches.
  void ExpectThatItAloneEnds(const ClusterMessage& work) {
    std::vector<Outgoing> said = Hear(work);
    BringState(0, StateOf(0));
    said.insert(said.end(), std::make_move_iterator(sent_.begin()), std::make_move_iterator(sent_.end()));
    EXPECT_FALSE(worker_.TakeTask());
    ASSERT_TRUE(worker_.ended());
    EXPECT_TRUE(worker_.failed());
    EXPECT_NE(worker_.end_reason().find("asks for " + std::to_string(std::get<1>(GetParam())) + " steps from"),
              std::string::npos)
        << worker_.end_reason();
    bool told = false;
    for (const Outgoing& outgoing : said) {
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
