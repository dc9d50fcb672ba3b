// Nets of NVIDIA's fork of Caffe as they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "device/device.h"
#include "report/assumed_inputs.h"
#include "source_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

// But those with layers in Python, DetectNet's, and one that only holds the name of a TensorRT engine.
std::vector<fs::path> Nets(const fs::path& folder) {
  std::vector<fs::path> nets;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file() || entry.path().extension() != ".prototxt") continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    const bool is_net = text.find("layer {") != std::string::npos;
    const bool has_others = text.find("DetectNet") != std::string::npos || text.find("\"TRT\"") != std::string::npos;
    if (is_net && !has_others) nets.push_back(entry.path());
  }
  std::sort(nets.begin(), nets.end());
  return nets;
}

TEST(CorpusOfNvidia, NetsCompile) {
  const fs::path folder = fs::path(CorpusFolder()) / "forks" / "NVIDIA+caffe";
  if (!fs::exists(folder)) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  int nets = 0, phases = 0, scaling = 0, warned = 0;
  for (const fs::path& path : Nets(folder)) {
    SCOPED_TRACE(path);
    const NetFile file = ReadNetFile(path.string());
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
