// Concat: joins its bottoms along an axis.
#include "crema/layer.h"
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
    rows_ = top.count(0, axis);
    for (int i = 0; i < setup.bottoms(); ++i) widths_.push_back(setup.bottom_shape(i).count(axis));
    top_width_ = top.count(axis);
    setup.SetTop(0, std::move(top));
    if (setup.bottoms() == 1) setup.MakeView();
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
  // The extents before the axis make rows, the others their width.
  int64_t rows_ = 1, top_width_ = 0;
  std::vector<int64_t> widths_;
};

}  // namespace

REGISTER_LAYER(Concat, ConcatLayer, "concat_param");

}  // namespace crema
