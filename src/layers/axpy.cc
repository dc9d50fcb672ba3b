// Axpy: scale * x + y, with one scale for each channel of each image, as SENet weighs the channels of a residual block
// (Hu et al., "Squeeze-and-Excitation Networks", 2018). Bottoms: scale, x, y.

#include "base/aligned_memory.h"
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class AxpyLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(3);
    setup.ExpectTops(1);
    const Shape &scale = setup.bottom_shape(0), &x = setup.bottom_shape(1), &y = setup.bottom_shape(2);
    if (x.axes() < 2) {
      setup.Fail("bottom", "takes num x channels and more, but " + setup.BottomIs(1));
    }
    if (y != x) {
      setup.Fail("bottom", "adds bottoms of one shape, but " + setup.BottomIs(1) + " and " + setup.BottomIs(2));
    }
    if (scale.axes() < 2 || scale[0] != x[0] || scale[1] != x[1] || scale.count(2) != 1) {
      setup.Fail("bottom", "takes one scale for each channel of each image, " + Shape{x[0], x[1], 1, 1}.ToString() +
                               ", but " + setup.BottomIs(0));
    }
    setup.SetTop(0, x);
    setup.AllowChannelsLast();
    setup.AllowSplitBatch();
    setup.SetFlops(2.0 * static_cast<double>(x.count()));
  }

  void Plan(LayerPlan& plan) override {
    const TensorSpec& x = plan.bottom(1);
    // Where all pixels of a channel lie together, an image's channels are as good as more channels of one image.
    const bool channels_last = x.layout == Layout::kChannelsLast;
    const int64_t images = x.shape[0], channels = x.shape[1];
    images_ = channels_last ? images : 1;
    grid_ = {1, channels_last ? channels : images * channels, x.shape.count(2), x.layout, x.dtype};
    if (plan.bottom_grad(0)) plan.BackwardReadsBottom(1);
    if (plan.bottom_grad(1)) plan.BackwardReadsBottom(0);
    plan.PassGradient(2);
    sum_bytes_ = AlignedBytesOf<float>(grid_.channels);
    const size_t scratch = OperationsOf(*plan.context().device).ChannelWorkspace(grid_);
    plan.Workspace(scratch, sum_bytes_ + scratch);
  }

  void Forward(const LayerRun& run) override {
    for (int64_t i = 0; i < images_; ++i) {
      run.ops->ChannelAffine(grid_,
                             {.x = Image(run.bottoms[1], i),
                              .scale = run.bottoms[0].f32() + i * grid_.channels,
                              .addend = Image(run.bottoms[2], i),
                              .y = Image(run.tops[0], i)},
                             run.workspace);
    }
  }

  void Backward(const LayerRun& run) override {
    float* sum = reinterpret_cast<float*>(run.workspace);  // of no use here
    std::byte* scratch = run.workspace + sum_bytes_;
    for (int64_t i = 0; i < images_; ++i) {
      const void* dy = Image(run.top_grads[0], i);
      if (run.bottom_grads[0].defined()) {
        run.ops->ChannelGradientSums(grid_, {.dy = dy}, Image(run.bottoms[1], i), nullptr, sum,
                                     run.bottom_grads[0].f32() + i * grid_.channels, scratch);
      }
      if (run.bottom_grads[1].defined()) {
        run.ops->ChannelGradientMap(
            grid_,
            {.g = {.dy = dy}, .a = run.bottoms[0].f32() + i * grid_.channels, .dx = Image(run.bottom_grads[1], i)},
            scratch);
      }
    }
  }

 private:
  float* Image(const Tensor& tensor, int64_t i) const { return tensor.f32() + i * grid_.count(); }

  int64_t images_ = 1;  // that are worked on one by one
  ChannelGrid grid_;    // of each
  size_t sum_bytes_ = 0;
};

}  // namespace

REGISTER_LAYER(Axpy, AxpyLayer);

}  // namespace crema
