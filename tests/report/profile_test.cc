// What steps cost, the table of their times, and profiles as traces.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "crema/solver.h"
#include "files.h"
#include "report/json_reader.h"
#include "report/profile_observer.h"
#include "report/step_info.h"
#include "report/timing_table.h"
#include "solver/writable_folder.h"

namespace crema {
namespace {

using testing_json::Json;
using testing_json::ParseJson;

// Its program has layers that are fused, a sum (ip1 has two readers), fills (the losses') and reorders (of images).
constexpr char kLayers[] = R"(
layer { name: "in" type: "DummyData" top: "data" top: "label" dummy_data_param {
  shape { dim: 8 dim: 3 dim: 12 dim: 12 } shape { dim: 8 }
  data_filler { type: "gaussian" } data_filler { type: "uniform" min: 2 max: 2 } } }
layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
  convolution_param { num_output: 16 kernel_size: 3 weight_filler { type: "xavier" } } }
layer { name: "relu" type: "ReLU" bottom: "conv" top: "conv" }
layer { name: "ip1" type: "InnerProduct" bottom: "conv" top: "ip1"
  inner_product_param { num_output: 20 weight_filler { type: "xavier" } } }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "ip3" type: "InnerProduct" bottom: "ip1" top: "ip3"
  inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
layer { name: "loss2" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss2" }
layer { name: "loss3" type: "SoftmaxWithLoss" bottom: "ip3" bottom: "label" top: "loss3" }
)";

std::unique_ptr<Net> SmallNet() {
  return std::make_unique<Net>(ParseNet(std::string("name: 'small'") + kLayers, "small.prototxt"), NetOptions());
}

int StepOf(const std::vector<StepInfo>& infos, const std::string& name, const std::string& category) {
  for (size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name == name && infos[i].category == category) return static_cast<int>(i);
  }
  ADD_FAILURE() << "no step " << name << ", " << category;
  return 0;
}

TEST(StepInfo, CountsOperationsAndBytes) {
  const auto net = SmallNet();
  const std::vector<StepInfo> infos = DescribeSteps(net->compiled());
  ASSERT_EQ(infos.size(), static_cast<size_t>(net->compiled().program.steps()));
  for (const StepInfo& info : infos) {
    EXPECT_NE(info.name, "");
    EXPECT_NE(info.category, "");
  }
  // 8 x 20 by 20 x 10, and ten biases a row.
  const StepInfo& forward = infos[StepOf(infos, "ip2", "forward")];
  const double flops = forward.flops;
  EXPECT_GE(flops, 2.0 * 8 * 20 * 10);
  EXPECT_LE(flops, 2.0 * 8 * 20 * 10 + 2 * 8 * 10);
  EXPECT_EQ(forward.bytes, 4u * (8 * 20 + 20 * 10 + 10 + 8 * 10));
  EXPECT_EQ(forward.shape, (Shape{8, 10}));
  EXPECT_EQ(forward.type, "InnerProduct");
  EXPECT_NE(forward.kernel, "");
  // The gradients of weights and bottom; reads the bottom, the weights and the top's gradient.
  const StepInfo& backward = infos[StepOf(infos, "ip2", "backward")];
  EXPECT_EQ(backward.flops, 2 * flops);
  EXPECT_GE(backward.bytes, 4u * (8 * 10 + 2 * 8 * 20 + 2 * 20 * 10 + 10));
  // Nothing wants a gradient of the data: only the weights' is computed. Fused members count together.
  const StepInfo& conv = infos[StepOf(infos, "conv+relu", "backward")];
  EXPECT_GE(infos[StepOf(infos, "conv+relu", "forward")].flops, 2.0 * 8 * 16 * 100 * 27);
  EXPECT_LT(conv.flops, 1.1 * infos[StepOf(infos, "conv+relu", "forward")].flops);
  EXPECT_EQ(infos[StepOf(infos, "in", "data wait")].bytes, 4u * (8 * 3 * 144 + 8));
  const StepInfo& sum = infos[StepOf(infos, "sum grad ip1", "sum")];
  EXPECT_EQ(sum.bytes, 4u * 3 * 8 * 20);
  double all = 0;
  for (const StepInfo& info : infos) all += info.flops;
  EXPECT_EQ(PassFlops(net->compiled()), all);
}

std::vector<StepEvent> Passes(const CompiledNet& net, const std::vector<double>& milliseconds) {
  std::vector<StepEvent> events;
  StepRecorder::Clock::time_point now;
  for (double each : milliseconds) {
    for (int step = 0; step < net.program.steps(); ++step) {
      const auto end = now + std::chrono::nanoseconds(static_cast<int64_t>(each * 1e6));
      events.push_back({step, now, end});
      now = end;
    }
  }
  return events;
}

TEST(Timing, MediansRatesAndShares) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);

  const auto net = SmallNet();
  const CompiledNet& compiled = net->compiled();
  const std::string text = TimingTable(compiled, Passes(compiled, {3, 1, 2}), 64);
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  EXPECT_TRUE(lines[0].starts_with("layer ")) << text;
  const auto row = [&](const std::string& start) {
    for (size_t i = 0; i < lines.size(); ++i) {
      if (lines[i].starts_with(start)) return i;
    }
    ADD_FAILURE() << "no row " << start << "\n" << text;
    return size_t{0};
  };
  for (const StepInfo& info : DescribeSteps(compiled)) row(info.name);
  // A sum of gradients stands behind the layer whose backward step reads it.
  EXPECT_EQ(row("sum grad ip1"), row("ip1") + 1) << text;
  const std::string conv = lines[row("conv+relu")];
  EXPECT_NE(conv.find("Convolution+ReLU"), std::string::npos) << text;
  char rate[32];
  const double flops = DescribeSteps(compiled)[StepOf(DescribeSteps(compiled), "conv+relu", "forward")].flops;
  std::snprintf(rate, sizeof rate, "2.00 ms     %.2f", flops / 2e-3 / 1e9);
  EXPECT_NE(conv.find(rate), std::string::npos) << rate << "\n" << text;
  EXPECT_NE(lines[row("total")].find("100.0%"), std::string::npos) << text;
  const size_t forward = compiled.program.forward.size();
  std::ostringstream expected;
  expected << "forward   " << 2 * forward << ".0 ms  (";
  EXPECT_NE(text.find(expected.str()), std::string::npos) << expected.str() << "\n" << text;
  EXPECT_NE(text.find("items     "), std::string::npos) << text;
}

// The complete events of a track in the file's order.
std::vector<const Json*> EventsOf(const Json& trace, int track) {
  std::vector<const Json*> events;
  for (const Json& event : trace["traceEvents"].items) {
    if (event["ph"].string == "X" && event["tid"].number == track) events.push_back(&event);
  }
  return events;
}

// Of one track: events lie beside or within each other, and come in the order of their begins.
void ExpectNested(const std::vector<const Json*>& events) {
  std::vector<double> open;  // ends
  double last = 0;
  for (const Json* event : events) {
    const double begin = (*event)["ts"].number, end = begin + (*event)["dur"].number;
    EXPECT_GE(begin, last);
    EXPECT_GE((*event)["dur"].number, 0);
    last = begin;
    while (!open.empty() && open.back() <= begin + 1e-4) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(end, open.back() + 1e-4) << (*event)["name"].string;
    }
    open.push_back(end);
  }
}

TEST(Trace, HoldsEveryStep) {
  const auto net = SmallNet();
  StepRecording recording;
  net->set_recorder(&recording);
  for (int pass = 0; pass < 2; ++pass) {
    net->Forward();
    net->Backward();
  }
  Trace trace(net->compiled());
  trace.AddSteps(recording.events());
  const Json json = ParseJson(trace.ToJson());
  const std::vector<StepInfo> infos = DescribeSteps(net->compiled());
  const auto steps = EventsOf(json, 2);
  ASSERT_EQ(steps.size(), 2 * infos.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    const Json& event = *steps[i];
    const StepInfo& info = infos[i % infos.size()];
    EXPECT_EQ(event["name"].string, info.name);
    EXPECT_EQ(event["cat"].string, info.category);
    EXPECT_EQ(event["args"]["kernel"].string, info.kernel);
    EXPECT_EQ(event["args"]["shape"].string, info.shape.ToString());
    EXPECT_NEAR(event["args"]["gflop"].number, info.flops / 1e9, 1e-8 * info.flops / 1e9);
    EXPECT_EQ(event["args"]["bytes"].number, static_cast<double>(info.bytes));
  }
  EXPECT_EQ((*steps[0])["ts"].number, 0);
  ExpectNested(steps);
  const auto phases = EventsOf(json, 1);
  ASSERT_EQ(phases.size(), 4u);
  const char* const expected[] = {"forward", "backward", "forward", "backward"};
  for (int i = 0; i < 4; ++i) EXPECT_EQ((*phases[i])["name"].string, expected[i]);
  ExpectNested(phases);
}

class Profile : public ::testing::Test {
 protected:
  std::unique_ptr<Solver> MakeSolver(const std::string& more, Observer* observer) const {
    SolverOptions options;
    options.path = "solver.prototxt";
    options.observers = {observer};
    return std::make_unique<Solver>(
        ParseSolver("base_lr: 0.01 lr_policy: 'fixed' random_seed: 1 display: 1 snapshot_after_train: false "
                    "snapshot_prefix: '" +
                        folder_ + "/profiled' test_iter: 2 test_interval: 2 " + more + " net_param { " + kLayers + "}",
                    "solver.prototxt"),
        options);
  }
  static int Count(const std::vector<const Json*>& events, const std::string& category) {
    int count = 0;
    for (const Json* event : events) count += (*event)["cat"].string == category;
    return count;
  }

  const WritableFolder temporary_;
  const std::string folder_ = temporary_.path();
  const std::string path_ = folder_ + "/trace.json";
};

TEST_F(Profile, OfATrainingRunHasItsPhases) {
  ProfileObserver profile(path_, 20);
  const auto solver = MakeSolver("max_iter: 4 snapshot: 2 iter_size: 2", &profile);
  profile.Follow(solver->net());
  solver->Train();
  EXPECT_EQ(profile.error(), "");
  const Json json = ParseJson(ReadFile(path_));
  const auto phases = EventsOf(json, 1), steps = EventsOf(json, 2);
  ExpectNested(phases);
  ExpectNested(steps);
  EXPECT_EQ(Count(phases, "iteration"), 4);
  EXPECT_EQ(Count(phases, "update"), 4);
  EXPECT_EQ(Count(phases, "snapshot"), 2);
  EXPECT_EQ(Count(phases, "test"), 3);
  EXPECT_EQ(Count(phases, "display"), 5);
  // Two passes each, and a last one forward to display its loss.
  EXPECT_EQ(Count(phases, "forward"), 9);
  EXPECT_EQ(Count(phases, "backward"), 8);
  const Program& program = solver->net().compiled().program;
  EXPECT_EQ(steps.size(), 9 * program.forward.size() + 8 * program.backward.size());
  // Every pass but the last lies within an iteration.
  for (const Json* phase : phases) {
    const double begin = (*phase)["ts"].number;
    if ((*phase)["cat"].string != "backward") continue;
    int around = 0;
    for (const Json* other : phases) {
      const double from = (*other)["ts"].number;
      around += (*other)["cat"].string == "iteration" && from <= begin && begin < from + (*other)["dur"].number;
    }
    EXPECT_EQ(around, 1);
  }
}

TEST_F(Profile, EndsAfterItsIterations) {
  ProfileObserver profile(path_, 2);
  const auto solver = MakeSolver("max_iter: 100", &profile);
  profile.Follow(solver->net());
  solver->Step(1);
  EXPECT_FALSE(std::filesystem::exists(path_));
  solver->Step(1);
  const std::string text = ReadFile(path_);
  EXPECT_EQ(Count(EventsOf(ParseJson(text), 1), "iteration"), 2);
  solver->Step(2);
  profile.Finish();
  EXPECT_EQ(ReadFile(path_), text);
}

TEST_F(Profile, IsWrittenWhereTrainingEndsEarly) {
  ProfileObserver profile(path_, 20);
  const auto solver = MakeSolver("max_iter: 100", &profile);
  profile.Follow(solver->net());
  solver->Step(3);
  profile.Finish();  // as programs do where Train throws
  EXPECT_EQ(Count(EventsOf(ParseJson(ReadFile(path_)), 1), "iteration"), 3);
}

TEST_F(Profile, SaysWhatHindersIt) {
  EXPECT_THROW(ProfileObserver(folder_ + "/no/such/folder/trace.json", 20), EnvironmentError);
  const std::string inner = folder_ + "/inner";
  std::filesystem::create_directories(inner);
  ProfileObserver profile(inner + "/trace.json", 1);
  const auto solver = MakeSolver("max_iter: 100", &profile);
  profile.Follow(solver->net());
  std::filesystem::remove_all(inner);
  EXPECT_TRUE(solver->Step(2));  // training goes on
  EXPECT_NE(profile.error().find("trace.json"), std::string::npos) << profile.error();
}

}  // namespace
}  // namespace crema
