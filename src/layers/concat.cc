// Concat: joins its bottoms along an axis.
#include "crema/layer.h"
#include "layers/memory_axes.h"
#include "ops/vector_math.h"

namespace crema {

namespace {

class ConcatLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1, -1);
    setup.ExpectTops(1);
    const ConcatParameter& param = setup.param().concat_param();
    if (param.has_axis() && param.has_concat_dim()) {
      setup.Fail("concat_param.concat_dim", "both axis and concat_dim are set; concat_dim is the old name, drop it");
    }
    const int axis = param.has_concat_dim()
                         ? setup.CanonicalAxis("concat_param.concat_dim", static_cast<int>(param.concat_dim()))
                         : setup.CanonicalAxis("concat_param.axis", param.axis());
    Shape top = setup.bottom_shape(0);
    for (int i = 1; i < setup.bottoms(); ++i) {
      Shape same = setup.bottom_shape(i);
      if (same.axes() == top.axes()) same.set(axis, top[axis]);
      if (same != top) {
        setup.Fail("bottom", "joins along axis " + std::to_string(axis) + ", so all other extents must agree, but \"" +
                                 setup.param().bottom(0) + "\" is " + setup.bottom_shape(0).ToString() + " and \"" +
                                 setup.param().bottom(i) + "\" is " + setup.bottom_shape(i).ToString());
      }
      top.set(axis, top[axis] + setup.bottom_shape(i)[axis]);
    }
    axis_ = axis;
    bottoms_ = setup.bottoms();
    setup.SetTop(0, std::move(top));
    setup.AllowChannelsLast();
    if (bottoms_ == 1) setup.MakeView();
  }

  void Plan(LayerPlan& plan) override {
    top_width_ = Width(plan.top(0));
    rows_ = top_width_ == 0 ? 0 : plan.top(0).shape.count() / top_width_;
    for (int i = 0; i < bottoms_; ++i) widths_.push_back(Width(plan.bottom(i)));
  }

  void Forward(const LayerRun& run) override {
    float* to = run.tops[0].f32();
    for (size_t i = 0; i < widths_.size(); ++i) {
      CopyRows(rows_, widths_[i], run.bottoms[i].f32(), widths_[i], to, top_width_);
      to += widths_[i];
    }
  }

  void Backward(const LayerRun& run) override {
    const float* from = run.top_grads[0].f32();
    for (size_t i = 0; i < widths_.size(); ++i) {
      const Tensor& to = run.bottom_grads[i];
      if (to.defined()) CopyRows(rows_, widths_[i], from, top_width_, to.f32(), widths_[i]);
      from += widths_[i];
    }
  }

 private:
  // Elements from one index before the axis, in the order of memory, to the next.
  int64_t Width(const TensorSpec& spec) const { return InMemoryOrder(spec).count(AxisInMemory(spec, axis_)); }

  int axis_ = 1, bottoms_ = 1;
  // The extents before the axis, in the order of memory, make rows, the others their width.
  int64_t rows_ = 0, top_width_ = 0;
  std::vector<int64_t> widths_;
};

}  // namespace

REGISTER_LAYER(Concat, ConcatLayer, "concat_param");

}  // namespace crema
