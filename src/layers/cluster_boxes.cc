// ClusterDetections and ClusterGroundtruth: the objects that DetectNet's grid tells of and those that it should tell
// of, for each class a top. As the layers in Python of NVIDIA's fork.
#include <algorithm>
#include <string>

#include "crema/layer.h"
#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

namespace {

std::string ClusterField(const std::string& name) { return "detectnet_cluster_param." + name; }

class ClusterLayer : public Layer {
 protected:
  // What both types read.
  void SetupGrid(LayerSetup& setup) {
    setup.ExpectBottoms(2);
    setup.MakeNonDifferentiable();
    const DetectNetClusterParameter& param = setup.param().detectnet_cluster_param();
    const int64_t classes = param.num_classes();
    if (classes < 1 || classes != setup.tops()) {
      setup.Fail(param.has_num_classes() ? ClusterField("num_classes") : "top",
                 "num_classes is " + std::to_string(classes) + ", but there are " + std::to_string(setup.tops()) +
                     " tops; give a top for each class");
    }
    const Shape &coverage = setup.bottom_shape(0), &boxes = setup.bottom_shape(1);
    if (coverage.axes() != 4 || coverage[1] != classes || coverage.count() == 0) {
      setup.Fail("bottom", setup.DescribeBottom(0) + " must be the coverage of cells, N x " + std::to_string(classes) +
                               " x rows x columns: a channel for each of num_classes");
    }
    if (boxes.axes() != 4 || boxes[0] != coverage[0] || boxes[1] != 4 || boxes[2] != coverage[2] ||
        boxes[3] != coverage[3]) {
      setup.Fail("bottom", setup.DescribeBottom(1) + " must be the sides of cells' boxes, N x 4 x rows x columns, of " +
                               "the same grid as " + setup.DescribeBottom(0));
    }
    grid_ = {};
    grid_.images = coverage[0];
    grid_.classes = classes;
    grid_.height = coverage[2];
    grid_.width = coverage[3];
    const int64_t stride = ReadPixels(setup, "stride", param.has_stride(), param.stride());
    grid_.stride = static_cast<float>(stride);
    grid_.columns = Cells(setup, "image_size_x", param.has_image_size_x(), param.image_size_x(), stride, grid_.width);
    grid_.rows = Cells(setup, "image_size_y", param.has_image_size_y(), param.image_size_y(), stride, grid_.height);
  }

  void Plan(LayerPlan& plan) override {
    plan.Workspace(OperationsOf(*plan.context().device).DetectNetGroupWorkspace(grid_), 0);
  }

  void SetTops(LayerSetup& setup, int64_t objects) {
    grid_.objects = objects;
    for (int i = 0; i < setup.tops(); ++i) setup.SetTop(i, {grid_.images, objects, DetectNetGrid::kNumbers});
  }

  DetectNetGrid GridOf(int top) const {
    DetectNetGrid grid = grid_;
    grid.which = top;
    return grid;
  }

  static void Require(const LayerSetup& setup, const std::string& field, bool given) {
    if (given) return;
    setup.Fail("detectnet_cluster_param", field + " is missing; detectnet_cluster_param must say it");
  }

  DetectNetGrid grid_;

 private:
  static int64_t ReadPixels(const LayerSetup& setup, const std::string& field, bool given, uint32_t value) {
    Require(setup, field, given);
    return ReadInRange(setup, ClusterField(field), value, {1, 32768}, "it is in pixels");
  }

  // Those that are looked at along a side.
  static int64_t Cells(const LayerSetup& setup, const std::string& field, bool given, uint32_t value, int64_t stride,
                       int64_t there) {
    const int64_t cells = ReadPixels(setup, field, given, value) / stride;
    if (cells < 1) {
      setup.Fail(ClusterField(field),
                 field + " " + std::to_string(value) + " has no room for a cell of stride " + std::to_string(stride));
    }
    return std::min(cells, there);
  }
};

class ClusterDetectionsLayer : public ClusterLayer {
 public:
  void Setup(LayerSetup& setup) override {
    constexpr int64_t kObjects = 50;  // of an image, as in the fork
    SetupGrid(setup);
    SetTops(setup, kObjects);
    const DetectNetClusterParameter& param = setup.param().detectnet_cluster_param();
    Require(setup, "coverage_threshold", param.has_coverage_threshold());
    Require(setup, "group_threshold", param.has_group_threshold());
    Require(setup, "group_eps", param.has_group_eps());
    Require(setup, "min_height", param.has_min_height());
    grouping_.coverage = ReadInRange(setup, ClusterField("coverage_threshold"), param.coverage_threshold(),
                                     kNotNegative, "coverage is from 0 to 1");
    grouping_.least = param.group_threshold();
    grouping_.similarity =
        ReadInRange(setup, ClusterField("group_eps"), param.group_eps(), {0, 10}, "it is a share of boxes' sides");
    grouping_.height = param.min_height();
  }

  void Forward(const LayerRun& run) override {
    for (size_t i = 0; i < run.tops.size(); ++i) {
      run.ops->GroupDetectNetBoxes(GridOf(static_cast<int>(i)), grouping_, run.bottoms[0].f32(), run.bottoms[1].f32(),
                                   run.tops[i].f32(), run.workspace);
    }
  }

 private:
  DetectNetGrouping grouping_;
};

class ClusterGroundtruthLayer : public ClusterLayer {
 public:
  void Setup(LayerSetup& setup) override {
    SetupGrid(setup);
    SetTops(setup, grid_.cells());
    const DetectNetClusterParameter& param = setup.param().detectnet_cluster_param();
    const std::pair<const char*, bool> others[] = {{"coverage_threshold", param.has_coverage_threshold()},
                                                   {"group_threshold", param.has_group_threshold()},
                                                   {"group_eps", param.has_group_eps()},
                                                   {"min_height", param.has_min_height()}};
    for (const auto& [field, given] : others) {
      if (given) setup.Warn(ClusterField(field), std::string(field) + " has no effect: true objects are not grouped");
    }
  }

  void Forward(const LayerRun& run) override {
    for (size_t i = 0; i < run.tops.size(); ++i) {
      run.ops->ListDetectNetBoxes(GridOf(static_cast<int>(i)), run.bottoms[0].f32(), run.bottoms[1].f32(),
                                  run.tops[i].f32(), run.workspace);
    }
  }
};

}  // namespace

REGISTER_LAYER(ClusterDetections, ClusterDetectionsLayer, "detectnet_cluster_param");
REGISTER_LAYER(ClusterGroundtruth, ClusterGroundtruthLayer, "detectnet_cluster_param");

}  // namespace crema
