// Tests of the net while it trains: what test nets say over several batches.
#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "graph/program.h"
#include "solver/likely_mistakes.h"
#include "solver/prefix_files.h"
#include "solver/snapshot.h"
#include "solver/solver_impl.h"
#include "solver/test_outputs.h"

namespace crema {

bool Solver::Impl::Test(bool to_the_end) {
  Settle();
  return AsTheFirst(rank > 0 || TestHere(to_the_end));
}

bool Solver::Impl::TestHere(bool to_the_end) {
  positions_before_test.clear();
  for (const auto& test_net : test_nets) positions_before_test.push_back(PositionOf(*test_net));
  if (best) best_before_test = best->state();
  tested_iteration = iteration;
  bool stopped = false;
  const ShownParameters shown(average ? &*average : nullptr, ShownParameters::Show::kAverage);
  const bool moves = TestsMoveStatistics();
  if (moves) {
    if (!statistics_before_test) statistics_before_test.emplace(net.get(), device);
    statistics_before_test->Keep();
  }
  // Averages are of training alone.
  const ShownMovingState untested(moves && average ? &*statistics_before_test : nullptr);
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
        } else if (last_snapshot != StatePath(prefix, iteration, param.snapshot_format())) {
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
  bool written = false;
  unwritten_best.reset();
  if (best->IsBetter(value)) {
    try {
      WriteBest();
      written = true;
    } catch (const NotFinite&) {
      throw;
    } catch (const EnvironmentError& error) {
      ++failed_snapshots;
      unwritten_best = UnwrittenBest{iteration, value};
      write_failure = error.what();
      Tell(&Observer::OnSnapshotFailed, SnapshotFailed{iteration, error.what()});
    }
  }
  best->Add(iteration, value, written);
  if (written) Tell(&Observer::OnBest, *FoundBest());
}

void Solver::Impl::BestAtEnd() {
  if (!unwritten_best || unwritten_best->iteration != iteration) return;
  const ShownParameters shown(average ? &*average : nullptr, ShownParameters::Show::kAverage);
  if (!WriteWhenThereIsRoom("the parameters of the last test, the best so far, could not be written: their file is",
                            [this] { WriteBest(); })) {
    return;
  }
  --failed_snapshots;
  best->AddWritten(iteration, unwritten_best->value);
  Tell(&Observer::OnBest, *FoundBest());
}

void Solver::Impl::WriteBest() {
  const std::string path = BestModelPath(prefix, param.snapshot_format());
  RefuseNan();
  if (!best_file_is_own) {
    earlier_best = SetBestAside(prefix, param.snapshot_format());
    best_file_is_own = true;
    if (!earlier_best.empty()) {
      Warn({}, "the best parameters of an earlier run, \"" + path + "\", are now \"" + earlier_best +
                   "\": this run begins anew and writes its own");
    }
  }
  WriteModel(path, ModelToWrite());
}

void Solver::Impl::RemoveUntrainedBest() {
  const std::optional<BestFound> found = FoundBest();
  if (!best_file_is_own || saved_iteration >= 0 || (found && found->iteration > 0)) return;
  const std::string path = BestModelPath(prefix, param.snapshot_format());
  std::error_code error;
  if (found) {
    std::filesystem::remove(path, error);
    best->Restore(best_before_test);
  }
  best_file_is_own = false;  // should training go on after all, it sets the earlier one aside again
  const std::string earlier = std::exchange(earlier_best, "");
  if (earlier.empty()) return;
  std::filesystem::rename(earlier, path, error);
  if (error) return;
  Warn({}, "this run learnt nothing, so the best parameters of the earlier one are \"" + path + "\" again");
}

std::optional<BestFound> Solver::Impl::FoundBest() const {
  if (!best || !best->has_value()) return std::nullopt;
  return BestFound{best->state().iteration(), best->output(), best->state().value(),
                   BestModelPath(prefix, param.snapshot_format())};
}

}  // namespace crema
