#include "layers/unpooled_images.h"

#include "base/check.h"
#include "base/number_text.h"
#include "layers/plan_kernel.h"
#include "layers/window_map.h"

namespace crema {

void UnpooledImages::ExpectImages(const LayerSetup& setup) {
  setup.ExpectTops(1);
  if (setup.bottom_shape(0).axes() == 4) return;
  setup.Fail("bottom", "takes num x channels x height x width, but " + setup.BottomIs(0));
}

void UnpooledImages::StandInWindows(LayerSetup& setup, const PoolingWindow& vertical, const PoolingWindow& horizontal) {
  setup.SetCoordinateMap({WindowMap(vertical.kernel, vertical.stride, vertical.pad, true),
                          WindowMap(horizontal.kernel, horizontal.stride, horizontal.pad, true)});
}

void UnpooledImages::PutBack(LayerSetup& setup, const std::string& block, int64_t height, int64_t width,
                             std::string remedy) {
  const Shape &values = setup.bottom_shape(0), &mask = setup.bottom_shape(1);
  if (mask != values) {
    setup.Fail("bottom", "takes one index for each value, the second top of a Pooling layer, but " + setup.BottomIs(0) +
                             " and " + setup.BottomIs(1));
  }
  // Each must be a float's value.
  constexpr int64_t kMost = 1 << 24;
  if (height > kMost || width > kMost || height * width > kMost) {
    setup.Fail(block, "a top of height " + std::to_string(height) + " and width " + std::to_string(width) +
                          " has more elements than can be told apart, 2^24");
  }
  by_mask_ = true;
  height_ = height;
  width_ = width;
  mask_ = setup.param().bottom(1);
  remedy_ = std::move(remedy);
  places_ = {values[0], values[1], values.count(2), height * width};
  setup.SetTop(0, {values[0], values[1], height, width});
  setup.AllowSplitBatch();
  setup.NoGradient(1);
  setup.AllowChannelsLast();
}

void UnpooledImages::Spread(LayerSetup& setup, const std::string& block, PoolingMethod method,
                            const PoolingWindow& vertical, const PoolingWindow& horizontal, int64_t height,
                            int64_t width) {
  const Shape& values = setup.bottom_shape(0);
  constexpr int64_t kMost = 1 << 24;
  if (height > kMost || width > kMost) {
    setup.Fail(block, "a top of height " + std::to_string(height) + " and width " + std::to_string(width) +
                          " is larger than is possible, " + std::to_string(kMost) + " along an axis");
  }
  windows_ = {.method = method,
              .batch = values[0],
              .channels = values[1],
              .input_height = height,
              .input_width = width,
              .vertical = vertical,
              .horizontal = horizontal,
              .output_height = values[2],
              .output_width = values[3],
              .backward = true};
  setup.SetTop(0, {values[0], values[1], height, width});
  setup.AllowSplitBatch();
  setup.AllowChannelsLast();
  setup.AllowHalfPrecision();
  StandInWindows(setup, vertical, horizontal);
  setup.SetFlops(static_cast<double>(values.count()) * static_cast<double>(vertical.kernel) *
                 static_cast<double>(horizontal.kernel));
}

void UnpooledImages::Plan(LayerPlan& plan) {
  if (by_mask_) {
    places_.layout = plan.bottom(0).layout;
    if (plan.backward()) plan.BackwardReadsBottom(1);
    return;
  }
  windows_.layout = plan.bottom(0).layout;
  windows_.dtype = plan.bottom(0).dtype;
  kernel_ = PlanKernel(plan, &Operations::MakePooling, windows_);
  CREMA_CHECK(kernel_->saved().shape.count() == 0) << "sums of windows keep something";
}

void UnpooledImages::Forward(const LayerRun& run) {
  if (!by_mask_) return kernel_->Backward(nullptr, run.bottoms[0].raw(), nullptr, run.tops[0].raw());
  const float* index = run.bottoms[1].f32();
  const int64_t bad = run.ops->FindBadIndex({places_.inputs(), places_.result_pixels, 1}, index);
  if (bad >= 0) OnBadValue(bad, index[bad]);
  run.ops->UnpoolingForward(places_, run.bottoms[0].f32(), index, run.tops[0].f32());
}

void UnpooledImages::Backward(const LayerRun& run) {
  if (!by_mask_) {
    return kernel_->Forward(run.top_grads[0].raw(), run.bottom_grads[0].raw(), nullptr, nullptr, nullptr);
  }
  run.ops->UnpoolingBackward(places_, run.bottoms[1].f32(), run.top_grads[0].f32(), run.bottom_grads[0].f32());
}

void UnpooledImages::OnBadValue(int64_t position, float value) const {
  throw BadItem(1, position / (places_.channels * places_.pixels),
                "\"" + mask_ + "\" holds " + FormatNumber(value, "%.9g") + ", but the top's planes of " +
                    std::to_string(height_) + " x " + std::to_string(width_) + " have elements 0 to " +
                    std::to_string(places_.result_pixels - 1) + "; give " + remedy_ + ", the size of what was pooled");
}

}  // namespace crema
