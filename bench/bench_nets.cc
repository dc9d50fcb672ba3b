// What the nets of model_zoo cost on made-up data: training steps, inference, compiling; and the rate of a large matrix
// product, which says how far a net is from what the processor can do.
//
//   bench_nets [--steps=N] [flags of Google Benchmark]
//   bench_nets --benchmark_filter='^training/lenet/f32/2/'
//   bench_nets --nets     prints name, batch (0: T x N as the files have it), classes and whether data are words
//
// Names: training|inference/<net>/<precision>/<threads>, compile/<net>, gemm/1024/<precision>/<threads>. The time of a
// benchmark is the median of its steps: N of them, or as many as take three seconds. peak_MB is that of the process so
// far, so ask for one benchmark at a time where memory matters.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/zoo_nets.h"
#include "crema/error.h"
#include "crema/solver.h"
#include "device/device.h"
#include "ops/arrays/bfloat16.h"
#include "ops/matrices/gemm.h"
#include "report/timing_table.h"
#include "tools/thread_waiting.h"

namespace crema::bench {
namespace {

constexpr int kWarmUp = 3;  // steps that create threads and touch memory for the first time
constexpr double kSeconds = 3;

const char* const kSolver = R"(
base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 weight_decay: 0.0005
max_iter: 1000000000 random_seed: 1 snapshot_after_train: false snapshot_prefix: "/tmp/bench"
)";

// Not getrusage's ru_maxrss, which a program inherits from the one that started it.
double PeakMegabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::strtod(line.c_str() + 6, nullptr) / 1024;
  }
  return 0;
}

// Median seconds of `steps` calls of `step`, or for steps == 0 of as many as take kSeconds.
template <typename Step>
double MedianSeconds(int steps, const Step& step) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  for (int i = 0; i < kWarmUp; ++i) step();
  std::vector<double> seconds;
  const Clock::time_point begin = Clock::now();
  while (static_cast<int>(seconds.size()) < steps || (steps == 0 && since(begin) < kSeconds)) {
    const Clock::time_point start = Clock::now();
    step();
    seconds.push_back(since(start));
  }
  return Median(std::move(seconds));
}

void Report(benchmark::State& state, double seconds) {
  for (auto _ : state) state.SetIterationTime(seconds);
}

void ReportNet(benchmark::State& state, const ZooNet& zoo, const Net& net, double seconds) {
  Report(state, seconds);
  const double items = static_cast<double>(zoo.batch > 0 ? zoo.batch : net.inputs().front().value.count());
  state.counters["items/s"] = items / seconds;
  state.counters["gigaflop"] = Gigaflops(net);
  state.counters["parameters"] = static_cast<double>(LearnableCount(net));
  state.counters["peak_MB"] = PeakMegabytes();
}

void Training(benchmark::State& state, const ZooNet& zoo, Precision precision, int threads, int steps) {
  omp_set_num_threads(threads);
  SolverFile file = ParseSolver(kSolver, "bench");
  if (precision == Precision::kBF16) file.solver.set_precision(SolverParameter::BF16);
  *file.solver.mutable_net_param() = TrainingNet(zoo).net;
  Solver solver(file, SolverOptions{.path = "bench"});
  FillInputs(zoo, solver.net());
  ReportNet(state, zoo, solver.net(), MedianSeconds(steps, [&] { solver.Step(1); }));
}

void Inference(benchmark::State& state, const ZooNet& zoo, Precision precision, int threads, int steps) {
  omp_set_num_threads(threads);
  NetOptions options;
  options.precision = precision;
  options.phase = TEST;
  options.backward = false;
  Net net(InferenceNet(zoo), options);
  // Deploy files have no fillers: without weights every value would be zero.
  for (Parameter& p : net.parameters()) {
    for (int64_t i = 0; i < p.data.count(); ++i) p.data.f32()[i] = 0.01f + 0.003f * static_cast<float>(i % 7);
  }
  FillInputs(zoo, net);
  ReportNet(state, zoo, net, MedianSeconds(steps, [&] { net.Forward(); }));
}

void CompileNet(benchmark::State& state, const ZooNet& zoo, int steps) {
  const NetFile file = TrainingNet(zoo);
  Report(state, MedianSeconds(steps, [&] { Net net(file, NetOptions()); }));
}

void MatrixProduct(benchmark::State& state, int threads, int steps) {
  omp_set_num_threads(threads);
  constexpr int64_t kSide = 1024;
  const std::vector<float> a(kSide * kSide, 1.5f), b(kSide * kSide, 0.5f);
  std::vector<float> c(kSide * kSide);
  const double seconds =
      MedianSeconds(steps, [&] { Gemm(false, false, kSide, kSide, kSide, 1, a.data(), b.data(), 0, c.data()); });
  Report(state, seconds);
  state.counters["gigaflops/s"] = 2e-9 * kSide * kSide * kSide / seconds;
}

// The first line of a message that may list every layer of a net.
std::string FirstLine(const std::string& message) {
  const size_t end = message.find('\n');
  return end == std::string::npos ? message : message.substr(0, end) + " ...";
}

// A net that cannot be built here is reported with the reason, and the others run.
template <typename Body>
void Register(const std::string& name, const Body& body) {
  auto* const registered = benchmark::RegisterBenchmark(name.c_str(), [body](benchmark::State& state) {
    try {
      body(state);
    } catch (const std::exception& error) {
      state.SkipWithError(FirstLine(error.what()).c_str());
    }
  });
  registered->Unit(benchmark::kMillisecond)->Iterations(1)->UseManualTime();
}

void RegisterAll(int steps) {
  using benchmark::State;
  for (const ZooNet& zoo : ZooNets()) {
    for (int threads : {1, 2}) {
      for (Precision precision : {Precision::kF32, Precision::kBF16}) {
        const bool bf16 = precision == Precision::kBF16;
        if (bf16 && !ComputesBFloat16(CpuDevice())) continue;
        const std::string rest = std::string("/") + zoo.name + (bf16 ? "/bf16/" : "/f32/") + std::to_string(threads);
        Register("training" + rest, [=, &zoo](State& state) { Training(state, zoo, precision, threads, steps); });
        Register("inference" + rest, [=, &zoo](State& state) { Inference(state, zoo, precision, threads, steps); });
      }
    }
    Register(std::string("compile/") + zoo.name, [&zoo, steps](State& state) { CompileNet(state, zoo, steps); });
  }
  for (int threads : {1, 2}) {
    Register("gemm/1024/f32/" + std::to_string(threads),
             [threads, steps](State& state) { MatrixProduct(state, threads, steps); });
  }
}

// Takes --steps=N out of the arguments; 0 without it.
int TakeSteps(int* argc, char** argv) {
  constexpr std::string_view kFlag = "--steps=";
  int steps = 0, kept = 1;
  for (int i = 1; i < *argc; ++i) {
    if (std::string_view(argv[i]).starts_with(kFlag)) {
      char* end = nullptr;
      steps = static_cast<int>(std::strtol(argv[i] + kFlag.size(), &end, 10));
      if (steps < 1 || *end != '\0') {
        std::cerr << argv[i] << ": expected a number of steps, at least 1\n";
        std::exit(2);
      }
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  return steps;
}

}  // namespace
}  // namespace crema::bench

int main(int argc, char** argv) {
  crema::tools::SpinBriefly(argv);
  if (argc == 2 && std::string_view(argv[1]) == "--nets") {
    for (const crema::bench::ZooNet& zoo : crema::bench::ZooNets()) {
      std::cout << zoo.name << ' ' << zoo.batch << ' ' << zoo.classes << ' ' << zoo.words << '\n';
    }
    return 0;
  }
  crema::bench::RegisterAll(crema::bench::TakeSteps(&argc, argv));
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
