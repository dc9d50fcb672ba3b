// Im2col: the pixels that each window of a convolution looks at, as channels x window channels of one pixel a window.
#include "crema/layer.h"
#include "layers/convolution_window.h"
#include "ops/operations.h"

namespace crema {

namespace {

class Im2colLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const ConvolutionWindow window = ReadConvolutionWindow(setup);
    if (window.input.empty()) {
      setup.Fail("bottom", "moves a window over the axes behind the channels (axis " + std::to_string(window.axis) +
                               "), but " + setup.BottomIs(0));
    }
    CheckReach(setup, window);
    Shape top = setup.bottom_shape(0);
    problem_ = {};
    problem_.planes = top.count(0, window.axis + 1);
    problem_.axes = static_cast<int>(window.input.size());
    for (int i = 0; i < problem_.axes; ++i) {
      const int64_t output = (window.input[i] + 2 * window.pad[i] - window.reach(i)) / window.stride[i] + 1;
      problem_.axis[i] = {window.input[i], window.kernel[i],   window.stride[i],
                          window.pad[i],   window.dilation[i], output};
      int64_t columns = 0;
      if (__builtin_mul_overflow(top[window.axis], window.kernel[i], &columns)) {
        setup.Fail("convolution_param", "more columns than a machine holds; lower the kernel's size");
      }
      top.set(window.axis, columns);
      top.set(window.axis + 1 + i, output);
    }
    setup.SetTop(0, std::move(top));
  }

  void Forward(const LayerRun& run) override { run.ops->Im2col(problem_, run.bottoms[0].f32(), run.tops[0].f32()); }

  void Backward(const LayerRun& run) override {
    run.ops->Col2im(problem_, run.top_grads[0].f32(), run.bottom_grads[0].f32());
  }

 private:
  Im2colProblem problem_;
};

}  // namespace

REGISTER_LAYER(Im2col, Im2colLayer, "convolution_param");

}  // namespace crema
