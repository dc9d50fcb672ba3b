// Nets of Faster R-CNN as their authors and others wrote them, with layers in Python.
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

std::vector<fs::path> NetsThatProposeRegions(const fs::path& folder) {
  std::vector<fs::path> nets;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (text.find("'rpn.") != std::string::npos) nets.push_back(entry.path());
  }
  std::sort(nets.begin(), nets.end());
  return nets;
}

Shape ShapeOf(const CompiledNet& net, const std::string& blob) {
  for (const Value& value : net.graph.values) {
    if (value.name == blob) return value.spec.shape;
  }
  return {};
}

TEST(CorpusRegions, NetsCompile) {
  const fs::path folder = fs::path(CorpusFolder()) / "forks";
  if (!fs::exists(folder)) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  int trained = 0, tested = 0;
  for (const fs::path& path : NetsThatProposeRegions(folder)) {
    SCOPED_TRACE(path);
    const bool trains = path.filename().string().find("train") != std::string::npos;
    NetOptions options;
    options.phase = trains ? TRAIN : TEST;
    options.context.device = &CpuDevice();
    const BlobShapes shapes = {{"data", Shape{1, 3, 600, 800}}, {"im_info", Shape{1, 3}}, {"gt_boxes", Shape{1, 7, 5}}};
    options.shapes = shapes;
    if (!trains) options.shapes.pop_back();
    const auto net = Compile(AssumeInputs(ReadNetFile(path.string()), shapes, true), options);
    const Shape regions = ShapeOf(*net, "rois");
    if (regions.axes() > 0) {
      EXPECT_EQ(regions, (Shape{trains ? 128 : 300, 5}));
    }
    ++(trains ? trained : tested);
  }
  EXPECT_GT(trained, 0);
  EXPECT_GT(tested, 0);
  std::cout << trained << " nets that train and " << tested << " that are tested compile\n";
}

}  // namespace
}  // namespace crema
