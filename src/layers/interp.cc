// Interp: images of another size, bilinearly, the corners of the part that is left of the bottom onto the corners of
// the top, as in DeepLab and PSPNet. A second bottom only gives the size.
#include <cstdint>
#include <string>

#include "crema/layer.h"
#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

namespace {

class InterpLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1, 2);
    setup.ExpectTops(1);
    const InterpParameter& param = setup.param().interp_param();
    for (int i = 0; i < setup.bottoms(); ++i) {
      if (setup.bottom_shape(i).axes() == 4) continue;
      setup.Fail("bottom", "takes num x channels x height x width, but " + setup.BottomIs(i));
    }
    const Shape& images = setup.bottom_shape(0);
    CheckCut(setup, "pad_beg", param.pad_beg());
    CheckCut(setup, "pad_end", param.pad_end());
    problem_ = {.planes = images[0] * images[1], .height = images[2], .width = images[3]};
    problem_.row = problem_.column = -int64_t{param.pad_beg()};
    const int64_t cut = int64_t{param.pad_beg()} + param.pad_end();
    problem_.part_height = images[2] + cut;
    problem_.part_width = images[3] + cut;
    if (problem_.part_height < 1 || problem_.part_width < 1) {
      setup.Fail(param.has_pad_beg()   ? "interp_param.pad_beg"
                 : param.has_pad_end() ? "interp_param.pad_end"
                                       : "bottom",
                 "nothing is left of " + images.ToString() + " when pad_beg and pad_end are cut off");
    }
    ReadSize(setup);
    const Shape top{images[0], images[1], problem_.result_height, problem_.result_width};
    setup.SetTop(0, top);
    setup.AllowSplitBatch();
    if (setup.bottoms() > 1) setup.NoGradient(1);
    setup.SetCoordinateMap(
        {MapOf(problem_.row, problem_.part_height, top[2]), MapOf(problem_.column, problem_.part_width, top[3])});
    if (top == images && cut == 0) setup.MakeView();
    setup.SetFlops(8.0 * static_cast<double>(top.count()));
  }

  void Forward(const LayerRun& run) override {
    run.ops->InterpolationForward(problem_, run.bottoms[0].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    run.ops->InterpolationBackward(problem_, run.top_grads[0].f32(), run.bottom_grads[0].f32());
  }

 private:
  static void CheckCut(const LayerSetup& setup, const std::string& field, int32_t pad) {
    if (pad <= 0) return;
    setup.Fail("interp_param." + field,
               field + " is " + std::to_string(pad) + ", but images are only cut here: give 0 or a number below");
  }

  // Of an axis of which `extent` elements from `first` on become `result`.
  static LayerSetup::AxisMap MapOf(int64_t first, int64_t extent, int64_t result) {
    const double scale =
        extent > 1 && result > 1 ? static_cast<double>(result - 1) / static_cast<double>(extent - 1) : 1;
    return {scale, -scale * static_cast<double>(first)};
  }

  // As DeepLab and PSPNet decide where several sizes are given.
  void ReadSize(LayerSetup& setup) {
    const InterpParameter& param = setup.param().interp_param();
    const bool shrinks = param.has_shrink_factor(), zooms = param.has_zoom_factor();
    const bool sized = param.has_height() || param.has_width();
    if (shrinks) ReadInRange(setup, "interp_param.shrink_factor", param.shrink_factor(), {.low = 1});
    if (zooms) ReadInRange(setup, "interp_param.zoom_factor", param.zoom_factor(), {.low = 1});
    if (setup.bottoms() > 1) {
      if (shrinks || zooms || sized) {
        setup.Fail("interp_param", "the size is that of \"" + setup.param().bottom(1) +
                                       "\", and interp_param gives another; remove one of them");
      }
      return SetSize(setup, setup.bottom_shape(1)[2], setup.bottom_shape(1)[3]);
    }
    if (sized && (shrinks == zooms)) {
      if (!param.has_height() || !param.has_width()) {
        setup.Fail(param.has_height() ? "interp_param.height" : "interp_param.width",
                   param.has_height() ? "has height without width; give both" : "has width without height; give both");
      }
      return SetSize(setup, param.height(), param.width());
    }
    if (sized) {
      setup.Warn("interp_param", std::string("height and width have no effect beside ") +
                                     (shrinks ? "shrink_factor" : "zoom_factor") + "; remove one of them");
    }
    if (!shrinks && !zooms) {
      setup.Fail("interp_param",
                 "the size of the top is not given; give height and width, zoom_factor, shrink_factor, or a second "
                 "bottom of that size");
    }
    const auto extent = [&](int64_t part) {
      const int64_t shrunk = (part - 1) / param.shrink_factor() + 1;
      return shrunk + (shrunk - 1) * (param.zoom_factor() - 1);
    };
    SetSize(setup, extent(problem_.part_height), extent(problem_.part_width));
  }

  void SetSize(const LayerSetup& setup, int64_t height, int64_t width) {
    if (height < 1 || width < 1 || height > INT32_MAX / 2 || width > INT32_MAX / 2) {
      setup.Fail("interp_param", "a top of height " + std::to_string(height) + " and width " + std::to_string(width) +
                                     " cannot be; give sizes from 1 to " + std::to_string(INT32_MAX / 2));
    }
    problem_.result_height = height;
    problem_.result_width = width;
  }

  Interpolation problem_;
};

}  // namespace

REGISTER_LAYER(Interp, InterpLayer, "interp_param");

}  // namespace crema
