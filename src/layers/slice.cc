// Slice: cuts its bottom into its tops along an axis.
#include <cstddef>

#include "crema/layer.h"
#include "layers/memory_axes.h"
#include "ops/operations.h"

namespace crema {

namespace {

class SliceLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1, -1);
    const SliceParameter& param = setup.param().slice_param();
    if (param.has_axis() && param.has_slice_dim()) {
      setup.Fail("slice_param.slice_dim", "both axis and slice_dim are set; slice_dim is the old name, drop it");
    }
    axis_ = param.has_slice_dim() ? setup.CanonicalAxis("slice_param.slice_dim", static_cast<int>(param.slice_dim()))
                                  : setup.CanonicalAxis("slice_param.axis", param.axis());
    const Shape& shape = setup.bottom_shape(0);
    const std::vector<int64_t> ends = ReadEnds(setup, shape[axis_]);
    for (int i = 0; i < setup.tops(); ++i) {
      Shape top = shape;
      top.set(axis_, ends[i] - (i > 0 ? ends[i - 1] : 0));
      setup.SetTop(i, std::move(top));
    }
    if (axis_ <= 1) setup.KeepCoordinates();
    setup.MoveElements();
    if (setup.tops() == 1) {
      setup.MakeView();
    } else {
      setup.AllowChannelsLast();
      setup.AllowHalfPrecision();
      setup.AllowSplitBatch();
    }
    tops_ = setup.tops();
  }

  void Plan(LayerPlan& plan) override {
    const Shape whole = InMemoryOrder(plan.bottom(0));
    const int axis = AxisInMemory(plan.bottom(0), axis_);
    rows_ = whole.count(0, axis);
    const int64_t bytes = static_cast<int64_t>(SizeOf(plan.bottom(0).dtype));
    bottom_width_ = whole.count(axis) * bytes;
    widths_.clear();
    for (int i = 0; i < tops_; ++i) widths_.push_back(InMemoryOrder(plan.top(i)).count(axis) * bytes);
  }

  void Forward(const LayerRun& run) override {
    const std::byte* from = static_cast<const std::byte*>(run.bottoms[0].raw());
    for (size_t i = 0; i < widths_.size(); ++i) {
      run.ops->CopyRows(rows_, widths_[i], {from, bottom_width_}, {run.tops[i].raw(), widths_[i]});
      from += widths_[i];
    }
  }

  void Backward(const LayerRun& run) override {
    std::byte* to = static_cast<std::byte*>(run.bottom_grads[0].raw());
    for (size_t i = 0; i < widths_.size(); ++i) {
      run.ops->CopyRows(rows_, widths_[i], {run.top_grads[i].raw(), widths_[i]}, {to, bottom_width_});
      to += widths_[i];
    }
  }

 private:
  // Where each top ends along the axis.
  static std::vector<int64_t> ReadEnds(const LayerSetup& setup, int64_t extent) {
    const auto& points = setup.param().slice_param().slice_point();
    const int tops = setup.tops();
    const std::string bottom = setup.DescribeBottom(0);
    std::vector<int64_t> ends;
    if (points.empty()) {
      if (extent % tops != 0) {
        setup.Fail("top", "cuts " + std::to_string(extent) + " of " + bottom + " into " + std::to_string(tops) +
                              " equal parts, which is not possible; set slice_point, or another number of tops");
      }
      for (int i = 1; i <= tops; ++i) ends.push_back(extent / tops * i);
      return ends;
    }
    if (points.size() != tops - 1) {
      setup.Fail("slice_param.slice_point", "slice_point is given " + std::to_string(points.size()) + " times for " +
                                                std::to_string(tops) + " tops; give one fewer than there are tops");
    }
    for (const int64_t point : points) {
      if (point <= (ends.empty() ? 0 : ends.back()) || point >= extent) {
        setup.Fail("slice_param.slice_point", "slice_point " + std::to_string(point) +
                                                  " leaves nothing for a top; they must increase and lie between 0 "
                                                  "and the extent " +
                                                  std::to_string(extent) + " of " + bottom + ", both excluded");
      }
      ends.push_back(point);
    }
    ends.push_back(extent);
    return ends;
  }

  int axis_ = 1, tops_ = 1;
  // In memory, the extents before the axis make rows, the others their width in bytes.
  int64_t rows_ = 1, bottom_width_ = 0;
  std::vector<int64_t> widths_;
};

}  // namespace

REGISTER_LAYER(Slice, SliceLayer, "slice_param");

}  // namespace crema
