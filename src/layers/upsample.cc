// Upsample: each element of bottom 0 goes where bottom 1 says, the index in the plane that a Pooling layer gives as its
// second top; 0 elsewhere (SegNet). Where several have one index the last one stays, and all get its gradient. With one
// bottom each element is repeated scale x scale times (YOLOv3).
#include <cstdint>
#include <string>

#include "layers/field_range.h"
#include "layers/unpooled_images.h"

namespace crema {

namespace {

class UpsampleLayer : public UnpooledImages {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1, 2);
    ExpectImages(setup);
    const bool repeats = setup.bottoms() == 1;
    if (repeats) ExpectScaleAlone(setup);
    ReadSize(setup);
    const UpsampleParameter& param = setup.param().upsample_param();
    const int64_t scale_h = param.has_scale_h() ? param.scale_h() : param.scale();
    const int64_t scale_w = param.has_scale_w() ? param.scale_w() : param.scale();
    const PoolingWindow vertical{scale_h, scale_h, 0}, horizontal{scale_w, scale_w, 0};
    if (!repeats) {
      if (!param.has_upsample_h()) StandInWindows(setup, vertical, horizontal);
      return PutBack(setup, "upsample_param", height_, width_, "upsample_h and upsample_w");
    }
    Spread(setup, "upsample_param", PoolingMethod::kSum, vertical, horizontal, height_, width_);
    setup.MoveElements();
    if (scale_h == 1 && scale_w == 1) setup.MakeView();
  }

 private:
  // Forks whose Upsample repeats elements leave them once by default, SegNet's enlarges by 2.
  static void ExpectScaleAlone(const LayerSetup& setup) {
    const UpsampleParameter& param = setup.param().upsample_param();
    const auto refuse = [&](bool has, const std::string& field) {
      if (!has) return;
      setup.Fail("upsample_param." + field,
                 field +
                     " says where a mask's indices lie, but there is no second bottom; name the second top of the "
                     "Pooling layer, or give scale alone");
    };
    refuse(param.has_upsample_h(), "upsample_h");
    refuse(param.has_upsample_w(), "upsample_w");
    refuse(param.has_pad_out_h(), "pad_out_h");
    refuse(param.has_pad_out_w(), "pad_out_w");
    if (param.has_scale() || param.has_scale_h() || param.has_scale_w()) return;
    setup.Fail("upsample_param",
               "scale is not set; with one bottom it is how often each element is repeated along height and width");
  }

  void ReadSize(const LayerSetup& setup) {
    const UpsampleParameter& param = setup.param().upsample_param();
    const auto both = [&](const char* h, bool has_h, const char* w, bool has_w) {
      if (has_h == has_w) return;
      setup.Fail(std::string("upsample_param.") + (has_h ? h : w),
                 std::string("has ") + (has_h ? h : w) + " without " + (has_h ? w : h) + "; give both");
    };
    both("upsample_h", param.has_upsample_h(), "upsample_w", param.has_upsample_w());
    both("scale_h", param.has_scale_h(), "scale_w", param.has_scale_w());
    if (param.has_upsample_h()) {
      height_ = ReadInRange(setup, "upsample_param.upsample_h", param.upsample_h(), {.low = 1});
      width_ = ReadInRange(setup, "upsample_param.upsample_w", param.upsample_w(), {.low = 1});
      return;
    }
    if (param.has_scale() && param.has_scale_h()) {
      setup.Fail("upsample_param.scale", "has both scale and scale_h; keep one of the two forms");
    }
    const Shape& values = setup.bottom_shape(0);
    height_ = Scaled(setup, values[2], param.has_scale_h() ? "scale_h" : "scale",
                     param.has_scale_h() ? param.scale_h() : param.scale(), "pad_out_h", param.pad_out_h());
    width_ = Scaled(setup, values[3], param.has_scale_w() ? "scale_w" : "scale",
                    param.has_scale_w() ? param.scale_w() : param.scale(), "pad_out_w", param.pad_out_w());
  }

  // One less where what was pooled was odd, as pad_out says.
  static int64_t Scaled(const LayerSetup& setup, int64_t extent, const std::string& name, int64_t scale,
                        const std::string& pad_name, bool pad) {
    ReadInRange(setup, "upsample_param." + name, scale, {1, INT16_MAX});
    if (pad && scale != 2) {
      setup.Fail("upsample_param." + pad_name, pad_name + " needs a scale of 2, but " + name + " is " +
                                                   std::to_string(scale) +
                                                   "; give upsample_h and upsample_w, the size of what was pooled");
    }
    return extent * scale - (pad ? 1 : 0);
  }

  int64_t height_ = 1, width_ = 1;  // of the top
};

}  // namespace

REGISTER_LAYER(Upsample, UpsampleLayer, "upsample_param");

}  // namespace crema
