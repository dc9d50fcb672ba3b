// Nets of Faster R-CNN as their authors and others wrote them, with layers in Python.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "corpus_files.h"
#include "device/device.h"
#include "files.h"
#include "report/assumed_inputs.h"

namespace crema {
namespace {

std::vector<std::string> NetsThatProposeRegions() {
  std::vector<std::string> paths = CorpusFiles("forks", {".prototxt", ".pt"});
  std::erase_if(paths, [](const std::string& path) { return ReadFile(path).find("'rpn.") == std::string::npos; });
  return paths;
}

Shape ShapeOf(const CompiledNet& net, const std::string& blob) {
  for (const Value& value : net.graph.values) {
    if (value.name == blob) return value.spec.shape;
  }
  return {};
}

TEST(CorpusRegions, NetsCompile) {
  const std::vector<std::string> paths = NetsThatProposeRegions();
  if (paths.empty()) GTEST_SKIP() << "there is no corpus at " << CorpusFolder();
  int trained = 0, tested = 0;
  for (const std::string& path : paths) {
    SCOPED_TRACE(path);
    const bool trains = path.find("train", path.rfind('/')) != std::string::npos;
    NetOptions options;
    options.phase = trains ? TRAIN : TEST;
    options.context.device = &CpuDevice();
    const BlobShapes shapes = {{"data", Shape{1, 3, 600, 800}}, {"im_info", Shape{1, 3}}, {"gt_boxes", Shape{1, 7, 5}}};
    options.shapes = shapes;
    if (!trains) options.shapes.pop_back();
    const auto net = Compile(AssumeInputs(ReadNetFile(path), shapes, true), options);
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
