// Nets of NVIDIA's fork of Caffe as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "corpus_files.h"
#include "device/device.h"
#include "report/assumed_inputs.h"

namespace crema {
namespace {

// But those with layers in Python, DetectNet's, and one that only holds the name of a TensorRT engine.
std::vector<std::string> Nets() {
  std::vector<std::string> paths = CorpusFiles("forks/NVIDIA+caffe");
  std::erase_if(paths, [](const std::string& path) {
    const std::string text = BytesOf(path);
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

}  // namespace
}  // namespace crema
