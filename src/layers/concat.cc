// Concat: joins its bottoms along an axis; where each comes from a ReLU, that is done on the way.
#include <cstddef>

#include "crema/layer.h"
#include "layers/memory_axes.h"
#include "ops/rectified_rows.h"
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
    relu_ = setup.members().size() > 1;
    bottoms_ = setup.bottoms();
    setup.SetTop(0, std::move(top));
    setup.AllowChannelsLast();
    setup.AllowBFloat16();
    if (bottoms_ == 1) setup.MakeView();
  }

  void Plan(LayerPlan& plan) override {
    top_width_ = Width(plan.top(0));
    rows_ = top_width_ == 0 ? 0 : static_cast<int64_t>(plan.top(0).bytes()) / top_width_;
    for (int i = 0; i < bottoms_; ++i) widths_.push_back(Width(plan.bottom(i)));
    if (relu_ && plan.backward()) plan.BackwardReadsTop(0);
  }

  void Forward(const LayerRun& run) override {
    if (relu_) {
      return run.tops[0].dtype() == DType::kBF16 ? Rectify<BFloat16>(run) : Rectify<float>(run);
    }
    std::byte* to = static_cast<std::byte*>(run.tops[0].raw());
    for (size_t i = 0; i < widths_.size(); ++i) {
      CopyByteRows(rows_, widths_[i], run.bottoms[i].raw(), widths_[i], to, top_width_);
      to += widths_[i];
    }
  }

  void Backward(const LayerRun& run) override {
    if (relu_) {
      return run.tops[0].dtype() == DType::kBF16 ? RectifyGradients<BFloat16>(run) : RectifyGradients<float>(run);
    }
    const std::byte* from = static_cast<const std::byte*>(run.top_grads[0].raw());
    for (size_t i = 0; i < widths_.size(); ++i) {
      const Tensor& to = run.bottom_grads[i];
      if (to.defined()) CopyByteRows(rows_, widths_[i], from, top_width_, to.raw(), widths_[i]);
      from += widths_[i];
    }
  }

 private:
  template <typename Number>
  void Rectify(const LayerRun& run) const {
    constexpr int64_t kSize = sizeof(Number);
    Number* to = static_cast<Number*>(run.tops[0].raw());
    for (size_t i = 0; i < widths_.size(); ++i) {
      const int64_t width = widths_[i] / kSize;
      CopyRectified<Number>(rows_, width, {static_cast<const Number*>(run.bottoms[i].raw()), width},
                            {to, top_width_ / kSize});
      to += width;
    }
  }

  template <typename Number>
  void RectifyGradients(const LayerRun& run) const {
    constexpr int64_t kSize = sizeof(Number);
    const Number* gradient = static_cast<const Number*>(run.top_grads[0].raw());
    const Number* rectified = static_cast<const Number*>(run.tops[0].raw());
    for (size_t i = 0; i < widths_.size(); ++i) {
      const int64_t width = widths_[i] / kSize;
      const Tensor& to = run.bottom_grads[i];
      if (to.defined()) {
        CopyRectifiedGradient<Number>(rows_, width, gradient, rectified, top_width_ / kSize,
                                      {static_cast<Number*>(to.raw()), width});
      }
      gradient += width;
      rectified += width;
    }
  }

  // Bytes from one index before the axis, in the order of memory, to the next.
  int64_t Width(const TensorSpec& spec) const {
    return InMemoryOrder(spec).count(AxisInMemory(spec, axis_)) * static_cast<int64_t>(SizeOf(spec.dtype));
  }

  int axis_ = 1, bottoms_ = 1;
  bool relu_ = false;
  // The extents before the axis, in the order of memory, make rows, the others their width in bytes.
  int64_t rows_ = 0, top_width_ = 0;
  std::vector<int64_t> widths_;
};

bool Accepts(std::span<const LayerSetup* const> members, std::string* why_not) {
  for (const LayerSetup* member : members.first(members.size() - 1)) {
    if (member->param().relu_param().negative_slope() != 0) *why_not = "ReLU has a negative slope";
    if (member->top_specs()[0].dtype != DType::kF32) *why_not = "not numbers";
  }
  return why_not->empty();
}

}  // namespace

REGISTER_GATHERING(RectifiedConcat, ConcatLayer, Accepts, "ReLU", "Concat");
REGISTER_LAYER(Concat, ConcatLayer, "concat_param");

}  // namespace crema
