// Cost of one training step (forward, backward, SGD update) on made-up data: images/s and the process's peak memory.
// Peak memory is that of the whole process so far, so ask for one net at a time when it matters:
//   build/bench/bench_training --benchmark_filter=lenet/2
#include <benchmark/benchmark.h>
#include <omp.h>
#include <sys/resource.h>

#include <string>

#include "crema/files.h"
#include "crema/solver.h"

namespace crema {
namespace {

const char* const kSolver = R"(
base_lr: 0.001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005
max_iter: 1000000000 random_seed: 1 snapshot_after_train: false snapshot_prefix: "/tmp/bench"
net: ")" CREMA_BENCH_NETS "/";

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void TrainingStep(benchmark::State& state, const std::string& net, int threads) {
  omp_set_num_threads(threads);
  SolverOptions options;
  options.path = "bench";
  Solver solver(ParseSolver(kSolver + net + ".prototxt\"", "bench"), options);
  const double batch = static_cast<double>(solver.net().blob("data").shape()[0]);
  solver.Step(5);
  for (auto _ : state) solver.Step(1);
  state.counters["images/s"] = benchmark::Counter(batch, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["peak_MB"] = PeakMegabytes();
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  for (const char* net : {"lenet", "cifar_quick"}) {
    for (int threads : {1, 2}) {
      benchmark::RegisterBenchmark((std::string(net) + "/" + std::to_string(threads)).c_str(),
                                   [=](benchmark::State& state) { crema::TrainingStep(state, net, threads); })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime()
          ->MinTime(2);
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
