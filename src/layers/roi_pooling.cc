// ROIPooling: the maximum of each cell of a grid over rectangles of the images, as in Fast R-CNN. Gradients reach every
// element that was a maximum, also of rectangles whose corners were given the wrong way round.
#include <cmath>
#include <string>

#include "base/number_text.h"
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class RoiPoolingLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const ROIPoolingParameter& param = setup.param().roi_pooling_param();
    CheckCells(setup, "pooled_h", param.has_pooled_h(), param.pooled_h());
    CheckCells(setup, "pooled_w", param.has_pooled_w(), param.pooled_w());
    if (!(param.spatial_scale() > 0) || !std::isfinite(param.spatial_scale())) {
      setup.Fail(
          "roi_pooling_param.spatial_scale",
          "spatial_scale is " + FormatNumber(param.spatial_scale()) +
              " but must be above 0 and finite; it is what corners are multiplied by to become pixels of the bottom");
    }
    const Shape &images = setup.bottom_shape(0), &regions = setup.bottom_shape(1);
    images_ = setup.param().bottom(0);
    regions_ = setup.param().bottom(1);
    if (images.axes() != 4) {
      setup.Fail("bottom", "takes num x channels x height x width, but \"" + images_ + "\" is " + images.ToString());
    }
    if (images.count(2) > INT32_MAX) {
      setup.Fail("bottom", "\"" + images_ + "\" (" + images.ToString() + ") has planes of more than 2^31 elements");
    }
    if (regions.axes() < 1 || regions.count() != regions[0] * kRegionNumbers) {
      setup.Fail("bottom", "\"" + regions_ + "\" is " + regions.ToString() +
                               ", but a region is 5 numbers: its image, x1, y1, x2 and y2");
    }
    problem_ = {images[0],  images[1],        images[2],        images[3],
                regions[0], param.pooled_h(), param.pooled_w(), param.spatial_scale()};
    setup.SetTop(0, {problem_.regions, problem_.channels, problem_.pooled_height, problem_.pooled_width});
    setup.NoGradient(1);
  }

  void Plan(LayerPlan& plan) override {
    keeps_ = plan.backward();
    if (!keeps_) return;
    plan.BackwardReadsBottom(1);
    plan.Save({Shape{problem_.outputs()}, DType::kI32});
  }

  void Forward(const LayerRun& run) override {
    const float* regions = run.bottoms[1].f32();
    const int64_t bad = run.ops->FindBadRegion(problem_, regions);
    if (bad >= 0) OnBadValue(bad, regions[bad]);
    run.ops->RoiPoolingForward(problem_, run.bottoms[0].f32(), regions, run.tops[0].f32(),
                               keeps_ ? run.saved[0].i32() : nullptr);
  }

  void OnBadValue(int64_t position, float value) const override {
    static constexpr const char* kNames[kRegionNumbers] = {"image", "x1", "y1", "x2", "y2"};
    const int64_t region = position / kRegionNumbers, number = position % kRegionNumbers;
    const std::string text = FormatNumber(value, "%.9g");
    const std::string which = "region " + std::to_string(region) + " of \"" + regions_ + "\" ";
    if (number > 0) {
      throw BadItem(1, region, which + "has " + kNames[number] + " = " + text + "; give finite numbers");
    }
    throw BadItem(1, region,
                  which + "is of image " + text + ", but \"" + images_ + "\" holds images 0 to " +
                      std::to_string(problem_.images - 1) + "; correct the first of its 5 numbers");
  }

  void Backward(const LayerRun& run) override {
    run.ops->RoiPoolingBackward(problem_, run.bottoms[1].f32(), run.saved[0].i32(), run.top_grads[0].f32(),
                                run.bottom_grads[0].f32());
  }

 private:
  static void CheckCells(const LayerSetup& setup, const std::string& field, bool given, int64_t cells) {
    if (cells >= 1 && cells <= 1 << 16) return;
    setup.Fail(given ? "roi_pooling_param." + field : "roi_pooling_param",
               field + " must be in [1, 65536]; it is how many cells a region is cut into");
  }

  RoiPoolingProblem problem_;
  bool keeps_ = false;            // where the maxima were
  std::string images_, regions_;  // names of the bottoms, for messages
};

}  // namespace

REGISTER_LAYER(ROIPooling, RoiPoolingLayer, "roi_pooling_param");

}  // namespace crema
