// Nets of NVIDIA's fork of Caffe as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "corpus_files.h"
#include "device/device.h"
#include "files.h"
#include "report/assumed_inputs.h"

namespace crema {
namespace {

// But DetectNet's, which are compiled below, and one that only holds the name of a TensorRT engine.
std::vector<std::string> Nets() {
  std::vector<std::string> paths = CorpusFiles("forks/NVIDIA+caffe");
  std::erase_if(paths, [](const std::string& path) {
    const std::string text = ReadFile(path);
    const auto has = [&](const char* part) { return text.find(part) != std::string::npos; };
    return !has("layer {") || has("DetectNet") || has("\"TRT\"");
  });
  return paths;
}

TEST(CorpusOfNvidia, NetsCompile) {
  const std::vector<std::string> paths = Nets();
  if (paths.empty()) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  int nets = 0, phases = 0, scaling = 0, warned = 0;
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const NetFile file = ReadNetFile(path);
    int side = 224;
    bool boxes = false;
    for (const LayerParameter& layer : file.net.layer()) {
      boxes |= layer.type() == "AnnotatedData";
      const TransformationParameter& transform = layer.transform_param();
      if (transform.crop_size() > 0) side = static_cast<int>(transform.crop_size());
      if (transform.has_resize_param()) side = static_cast<int>(transform.resize_param().height());
      if (layer.data_param().source().find("cifar") != std::string::npos && side == 224) side = 32;
    }
    for (const Phase phase : {TRAIN, TEST}) {
      NetOptions options;
      options.phase = phase;
      options.context.device = &CpuDevice();
      const BlobShapes shapes = {{"data", Shape{2, 3, side, side}}, {"label", boxes ? Shape{1, 1, 8, 8} : Shape{2}}};
      std::unique_ptr<CompiledNet> net;
      try {
        net = Compile(AssumeInputs(file, shapes, false), options);
      } catch (const UserError& error) {
        // Some files are of one phase.
        const std::string why = error.what();
        const bool other_phase = why.find("leave it out of this phase") != std::string::npos;
        EXPECT_TRUE(other_phase) << why;
        continue;
      }
      ++phases;
      warned += std::any_of(net->warnings.begin(), net->warnings.end(), [](const Diagnostic& warning) {
        return warning.message.find("FLOAT16 does not choose") != std::string::npos;
      });
      for (const Node& node : net->graph.nodes) scaling += node.type->name == "BatchNorm" && node.params.size() == 5;
    }
    ++nets;
  }
  EXPECT_GE(nets, 28);
  EXPECT_GE(phases, nets);
  EXPECT_GT(scaling, 600);
  EXPECT_GT(warned, 10);
  std::cout << nets << " nets compile in " << phases << " phases, with " << scaling
            << " BatchNorm layers that scale by themselves\n";
}

// As they are used: to train, to test with the stage of the solver's test_state, and as a deploy net.
TEST(CorpusOfNvidia, DetectNetCompiles) {
  int nets = 0;
  for (const std::string& path : CorpusFiles("forks/NVIDIA+caffe")) {
    if (path.find("detectnet_network") == std::string::npos) continue;
    SCOPED_TRACE(path);
    const bool two_classes = path.find("2classes") != std::string::npos;
    const NetFile file = ReadNetFile(path);
    struct Use {
      Phase phase;
      std::vector<std::string> stages;
      size_t outputs;
    };
    for (const Use& use :
         {Use{TRAIN, {}, 2}, Use{TEST, {"val"}, two_classes ? 8u : 5u}, Use{TEST, {}, two_classes ? 2u : 1u}}) {
      NetOptions options;
      options.phase = use.phase;
      options.stages = use.stages;
      options.backward = use.phase == TRAIN;
      options.context.device = &CpuDevice();
      const bool is_deployed = use.phase == TEST && use.stages.empty();
      if (!is_deployed) options.shapes = {{"data", Shape{2, 3, 384, 1248}}, {"label", Shape{2, 1, 30, 16}}};
      const std::unique_ptr<CompiledNet> net = Compile(file, options);
      EXPECT_EQ(net->graph.outputs.size(), use.outputs);
      for (const Diagnostic& warning : net->warnings) ADD_FAILURE() << warning.message;
    }
    ++nets;
  }
  if (nets == 0) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  EXPECT_EQ(nets, 2);
}

}  // namespace
}  // namespace crema
