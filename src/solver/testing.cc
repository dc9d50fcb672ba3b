// Tests of the net while it trains: means of the test nets' outputs.
#include "solver/solver_impl.h"

namespace crema {

bool Solver::Impl::Test() {
  Settle();
  positions_before_test.clear();
  for (const auto& test_net : test_nets) positions_before_test.push_back(test_net->data_positions());
  testing = true;
  bool stopped = false;
  for (size_t i = 0; i < test_nets.size() && !stopped; ++i) TestOne(static_cast<int>(i), &stopped);
  // A stopped test keeps the positions, so that the snapshot that follows lets it be done again in full.
  testing = stopped;
  return !stopped;
}

void Solver::Impl::TestOne(int index, bool* stopped) {
  Tell(&Observer::OnTestStart, TestStart{iteration, index});
  Stopwatch watch;
  Net& test_net = *test_nets[index];
  TestResult result;
  result.iteration = iteration;
  result.net = index;
  result.batches = param.test_iter(index);
  test_net.set_pass(static_cast<uint64_t>(iteration) * result.batches);
  std::vector<double> sums;
  double loss = 0;
  for (int batch = 0; batch < result.batches; ++batch) {
    switch (RequestedAction()) {
      case SolverAction::kStop:
        *stopped = true;
        return;
      case SolverAction::kSnapshot:
        TrySnapshot();
        break;
      case SolverAction::kNone:
        break;
    }
    loss += test_net.Forward();
    const std::vector<OutputValue> values = OutputValues(test_net);
    if (batch == 0) {
      result.outputs = values;
      sums.assign(values.size(), 0.0);
    }
    for (size_t i = 0; i < sums.size() && i < values.size(); ++i) sums[i] += values[i].value;
  }
  for (size_t i = 0; i < sums.size(); ++i) result.outputs[i].value = static_cast<float>(sums[i] / result.batches);
  if (param.test_compute_loss()) result.loss = static_cast<float>(loss / result.batches);
  result.seconds = watch.Seconds();
  Tell(&Observer::OnTest, result);
}

}  // namespace crema
