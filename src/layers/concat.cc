// Concat: joins its bottoms along an axis; where each comes from a ReLU, that is done on the way.
#include <cstddef>

#include "crema/fusion.h"
#include "layers/memory_axes.h"
#include "ops/operations.h"

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
        setup.Fail("bottom", "joins along axis " + std::to_string(axis) + ", so all other extents must agree, but " +
                                 setup.BottomIs(0) + " and " + setup.BottomIs(i));
      }
      top.set(axis, top[axis] + setup.bottom_shape(i)[axis]);
    }
    axis_ = axis;
    relu_ = setup.members().size() > 1;
    bottoms_ = setup.bottoms();
    setup.SetTop(0, std::move(top));
    if (axis <= 1) setup.KeepCoordinates();
    if (!relu_) setup.MoveElements();
    setup.AllowChannelsLast();
    setup.AllowHalfPrecision();
    setup.AllowSplitBatch();
    if (bottoms_ == 1) setup.MakeView();
  }

  void Plan(LayerPlan& plan) override {
    top_width_ = Width(plan.top(0));
    rows_ = top_width_ == 0 ? 0 : static_cast<int64_t>(plan.top(0).bytes()) / top_width_;
    for (int i = 0; i < bottoms_; ++i) widths_.push_back(Width(plan.bottom(i)));
    if (relu_ && plan.backward()) plan.BackwardReadsTop(0);
  }

  void Forward(const LayerRun& run) override {
    std::byte* to = static_cast<std::byte*>(run.tops[0].raw());
    for (size_t i = 0; i < widths_.size(); ++i) {
      const ByteRows from{run.bottoms[i].raw(), widths_[i]};
      if (relu_) {
        run.ops->CopyRectified(run.tops[0].dtype(), rows_, widths_[i], from, {to, top_width_});
      } else {
        run.ops->CopyRows(rows_, widths_[i], from, {to, top_width_});
      }
      to += widths_[i];
    }
  }

  void Backward(const LayerRun& run) override {
    const std::byte* from = static_cast<const std::byte*>(run.top_grads[0].raw());
    const std::byte* rectified = static_cast<const std::byte*>(run.tops[0].raw());
    int64_t at = 0;
    for (size_t i = 0; i < widths_.size(); at += widths_[i++]) {
      const Tensor& to = run.bottom_grads[i];
      if (!to.defined()) continue;
      if (relu_) {
        run.ops->CopyRectifiedGradient(to.dtype(), rows_, widths_[i], {from + at, top_width_},
                                       {rectified + at, top_width_}, {to.raw(), widths_[i]});
      } else {
        run.ops->CopyRows(rows_, widths_[i], {from + at, top_width_}, {to.raw(), widths_[i]});
      }
    }
  }

 private:
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

REGISTER_FUSION(RectifiedConcat, ConcatLayer, .types = {"ReLU", "Concat"}, .accepts = Accepts, .gathers = true);
REGISTER_LAYER(Concat, ConcatLayer, "concat_param");

}  // namespace crema
