// Tests of the net while it trains: what test nets say over several batches.
#include <algorithm>

#include "graph/program.h"
#include "solver/checks/tested_data.h"
#include "solver/snapshots/snapshot.h"
#include "solver/solver_impl.h"
#include "solver/test_outputs.h"

namespace crema {

bool Solver::Impl::Test(bool to_the_end) {
  Settle();
  return AsTheFirst(rank > 0 || TestHere(to_the_end));
}

bool Solver::Impl::TestHere(bool to_the_end) {
  before_test.positions.clear();
  for (const auto& test_net : test_nets) before_test.positions.push_back(PositionOf(*test_net));
  if (best) before_test.best = best->state();
  before_test.iteration = iteration;
  bool stopped = false;
  const ShownParameters shown(average ? &*average : nullptr, ShownParameters::Show::kAverage);
  const bool moves = TestsMoveStatistics();
  if (moves) {
    if (!before_test.statistics) before_test.statistics.emplace(net.get(), device);
    before_test.statistics->Keep();
  }
  // Averages are of training alone.
  const ShownMovingState untested(moves && average ? &*before_test.statistics : nullptr);
  for (size_t i = 0; i < test_nets.size() && (to_the_end || !stopped); ++i) {
    TestOne(static_cast<int>(i), to_the_end, &stopped);
  }
  out_of_patience = !stopped && best && best->exhausted();
  return !stopped && !out_of_patience;
}

bool Solver::Impl::TestsMoveStatistics() const {
  return std::any_of(test_nets.begin(), test_nets.end(), [](const auto& test_net) {
    const auto& nodes = test_net->compiled().graph.nodes;
    return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
      const BatchNormParameter& norm = node.param->batch_norm_param();
      return node.param->type() == "BatchNorm" && norm.has_use_global_stats() && !norm.use_global_stats();
    });
  });
}

void Solver::Impl::TestOne(int index, bool to_the_end, bool* stopped) {
  Tell(&Observer::OnTestStart, TestStart{iteration, index});
  Stopwatch watch;
  Net& test_net = *test_nets[index];
  TestResult result;
  result.iteration = iteration;
  result.net = index;
  result.batches = param.test_iter(index);
  test_net.set_pass(static_cast<uint64_t>(iteration) * result.batches);
  BeginTest(test_net);
  if (options.tests_from_the_first)
    test_net.set_data_positions(std::vector<uint64_t>(test_net.data_positions().size(), 0));
  TestOutputs outputs(test_net, ap_version);
  double loss = 0;
  for (int batch = 0; batch < result.batches; ++batch) {
    switch (RequestedAction()) {
      case SolverAction::kStop:
        *stopped = true;
        if (!to_the_end) return;
        break;
      case SolverAction::kSnapshot:
        if (!read_past_end) {
          TrySnapshot();
        } else if (snapshots->last() != StatePath(snapshots->prefix(), iteration, snapshots->format())) {
          Warn({}, "no snapshot is written during the last test; snapshot_after_train: true writes one before it");
        }
        break;
      case SolverAction::kNone:
        break;
    }
    loss += test_net.Forward();
    outputs.AddBatch();
  }
  result.outputs = outputs.Values(param.show_per_class_result());
  if (param.test_compute_loss()) result.loss = static_cast<float>(loss / result.batches);
  result.seconds = watch.Seconds();
  Tell(&Observer::OnTest, result);
  TellOfPartlyTested(index);
  if (best && index == 0) Judge(result);
}

void Solver::Impl::TellOfPartlyTested(int index) {
  if (options.tests_from_the_first || !lengths_told_of_.insert(index).second) return;
  const std::string name = "test net #" + std::to_string(index);
  Diagnostic note;
  note.severity = Diagnostic::Severity::kNote;
  note.message = PartlyTested(*test_nets[index], name, param.test_iter(index));
  if (!note.message.empty()) Tell(&Observer::OnNotice, note);
}

void Solver::Impl::Judge(const TestResult& result) {
  const float value = best->ValueIn(result);
  const bool better = best->IsBetter(value);
  unwritten_best.reset();
  const bool written = better && snapshots->Try(iteration, [this] { WriteBest(); });
  if (better && !written) unwritten_best = UnwrittenBest{iteration, value};
  best->Add(iteration, value, written);
  if (written) Tell(&Observer::OnBest, *FoundBest());
}

void Solver::Impl::BestAtEnd() {
  if (!unwritten_best || unwritten_best->iteration != iteration) return;
  const ShownParameters shown(average ? &*average : nullptr, ShownParameters::Show::kAverage);
  if (!snapshots->TryWhenThereIsRoom(
          "the parameters of the last test, the best so far, could not be written: their file is",
          [this] { WriteBest(); })) {
    return;
  }
  best->AddWritten(iteration, unwritten_best->value);
  Tell(&Observer::OnBest, *FoundBest());
}

void Solver::Impl::WriteBest() {
  RefuseNan();
  if (const std::string earlier = best_file->MakeOwn(); !earlier.empty()) {
    Warn({}, "the best parameters of an earlier run, \"" + best_file->path() + "\", are now \"" + earlier +
                 "\": this run begins anew and writes its own");
  }
  WriteModel(best_file->path(), ModelToWrite());
}

void Solver::Impl::RemoveUntrainedBest() {
  const std::optional<BestFound> found = FoundBest();
  if (!best_file->is_own() || snapshots->iteration() >= 0 || (found && found->iteration > 0)) return;
  const bool given_back = best_file->GiveBack(found.has_value());
  if (found) best->Restore(before_test.best);
  if (!given_back) return;
  Warn({},
       "this run learnt nothing, so the best parameters of the earlier one are \"" + best_file->path() + "\" again");
}

std::optional<BestFound> Solver::Impl::FoundBest() const {
  if (!best || !best->has_value()) return std::nullopt;
  return BestFound{best->state().iteration(), best->output(), best->state().value(), best_file->path()};
}

}  // namespace crema
