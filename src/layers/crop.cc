// Crop: the part of bottom 0 that has the extents of bottom 1 from `axis` on, beginning at the offsets. Bottom 1 only
// gives its shape. AutoCrop, and Crop with auto, get their offsets from the compiler (compiler/align_crop.cc).
#include "crema/layer.h"
#include "layers/memory_axes.h"
#include "ops/operations.h"

namespace crema {

namespace {

class CropLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const CropParameter& param = setup.param().crop_param();
    const Shape &whole = setup.bottom_shape(0), &wanted = setup.bottom_shape(1);
    if (param.auto_() && param.offset_size() > 0) {
      setup.Fail("crop_param.auto", "auto: true finds the offset, but offset is given, too; remove one of them");
    }
    if (param.offset_size() == 0 && (param.auto_() || setup.param().type() == "AutoCrop")) {
      setup.Fail("type",
                 "takes its offset from the layers between its bottoms and what both are made of, which are "
                 "known in a net alone; give offset");
    }
    const int axis = setup.CanonicalAxis("crop_param.axis", param.axis()), cut = whole.axes() - axis;
    if (wanted.axes() < whole.axes()) {
      setup.Fail("bottom", "cuts " + setup.DescribeBottom(0) + " to the extents of " + setup.DescribeBottom(1) +
                               ", which has fewer axes; give bottoms of equally many");
    }
    if (param.offset_size() > 1 && param.offset_size() != cut) {
      setup.Fail("crop_param.offset", "offset is given " + std::to_string(param.offset_size()) + " times, but " +
                                          std::to_string(cut) + " axes are cut (from axis " + std::to_string(axis) +
                                          " on); give it once for all of them, or once for each");
    }
    offset_.assign(whole.axes(), 0);
    Shape top = whole;
    for (int i = axis; i < whole.axes(); ++i) {
      if (param.offset_size() > 0) offset_[i] = param.offset(param.offset_size() == 1 ? 0 : i - axis);
      top.set(i, wanted[i]);
      if (offset_[i] + top[i] > whole[i]) {
        setup.Fail(param.offset_size() > 0 ? "crop_param.offset" : "bottom",
                   "axis " + std::to_string(i) + ": offset " + std::to_string(offset_[i]) + " and the " +
                       std::to_string(top[i]) + " elements of " + setup.DescribeBottom(1) + " exceed the " +
                       std::to_string(whole[i]) + " of " + setup.DescribeBottom(0) +
                       "; lower offset, or set axis to the first axis that is to be cut");
      }
    }
    setup.SetTop(0, std::move(top));
    std::vector<LayerSetup::AxisMap> map;
    for (int i = 2; i < whole.axes(); ++i) map.push_back({1, -static_cast<double>(offset_[i])});
    setup.SetCoordinateMap(std::move(map));
    setup.AllowSplitBatch();
    setup.NoGradient(1);
    setup.MoveElements();
    setup.AllowChannelsLast();
  }

  void Plan(LayerPlan& plan) override {
    box_ =
        Box(InMemoryOrder(plan.bottom(0)), InMemoryOrder(plan.top(0)), InMemoryOrder(plan.bottom(0).layout, offset_));
  }

  void Forward(const LayerRun& run) override { run.ops->CopyOut(box_, run.bottoms[0].f32(), run.tops[0].f32()); }

  void Backward(const LayerRun& run) override {
    const Tensor& gradient = run.bottom_grads[0];
    run.ops->Fill(0, gradient);
    run.ops->CopyIn(box_, run.top_grads[0].f32(), gradient.f32());
  }

 private:
  std::vector<int64_t> offset_;  // one for each axis of bottom 0
  Box box_;
};

}  // namespace

REGISTER_LAYER(Crop, CropLayer, "crop_param");
REGISTER_LAYER(AutoCrop, CropLayer, "crop_param");

}  // namespace crema
