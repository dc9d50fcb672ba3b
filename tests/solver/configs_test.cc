// The trainings of configs/, without their data: that a change of a layer or a field does not break them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "crema/files.h"
#include "crema/net.h"
#include "crema/solver.h"
#include "report/assumed_inputs.h"
#include "source_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

// What their data layers deliver in training, with small batches.
const std::map<std::string, BlobShapes> kData = {
    {"char_lstm", {{"text", Shape{50, 3, 32, 1}}}},
    {"char_transformer", {{"text", Shape{64, 3, 2, 1}}}},
    {"embeddings", {{"data", Shape{4, 1, 28, 28}}, {"label", Shape{4}}}},
    {"fashion_mnist", {{"data", Shape{2, 1, 28, 28}}, {"label", Shape{2}}}},
    {"sequence_reading", {{"data", Shape{10, 1, 28, 28}}, {"label", Shape{10}}}},
    {"vision_transformer", {{"data", Shape{2, 1, 28, 28}}, {"label", Shape{2}}}},
};

TEST(Configs, Train) {
  for (const auto& entry : fs::directory_iterator(fs::path(SourceFolder()) / "configs")) {
    const fs::path solver = entry.path() / "solver.prototxt", net_path = entry.path() / "train_val.prototxt";
    const std::string name = entry.path().filename().string();
    SCOPED_TRACE(name);
    NetOptions options;
    if (fs::exists(solver)) {
      const SolverFile file = ReadSolverFile(solver.string());
      for (const Diagnostic& d : CheckSolver(file)) {
        EXPECT_NE(d.severity, Diagnostic::Severity::kError) << d.message;
      }
      const auto& stages = file.solver.train_state().stage();
      options.stages.assign(stages.begin(), stages.end());
    }
    if (!fs::exists(net_path)) continue;
    ASSERT_EQ(kData.count(name), 1u) << "say what its data layer delivers";
    Net net(AssumeInputs(ReadNetFile(net_path.string()), kData.at(name), false), options);
    for (const NetInput& input : net.inputs()) std::fill_n(input.value.f32(), input.value.count(), 1.0f);
    net.ForwardBackward();
    for (const Parameter& parameter : net.parameters()) {
      if (!parameter.trained) continue;
      double sum = 0;
      for (int64_t i = 0; i < parameter.shape.count(); ++i) sum += std::abs(double{parameter.grad.f32()[i]});
      EXPECT_TRUE(std::isfinite(sum) && sum > 0) << parameter.name();
    }
  }
}

}  // namespace
}  // namespace crema
