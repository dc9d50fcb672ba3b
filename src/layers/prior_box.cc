// PriorBox: the boxes that a detector starts from, and their variances (Liu et al., "SSD: Single Shot MultiBox
// Detector", 2016). They depend on the shapes of the bottoms alone, so that the layer is a source, whose top is written
// once.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "layers/box_variance.h"
#include "layers/constant_source.h"
#include "layers/field_range.h"

namespace crema {

namespace {

// Width and height, in pixels of the image.
struct Extent {
  float width, height;
};

class PriorBoxLayer : public ConstantSource {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const PriorBoxParameter& param = setup.param().prior_box_param();
    for (int i = 0; i < 2; ++i) {
      const Shape& shape = setup.bottom_shape(i);
      if (shape.axes() == 4 && shape.count() > 0) continue;
      setup.Fail("bottom", "\"" + setup.param().bottom(i) + "\" is " + shape.ToString() +
                               ", but expected num x channels x height x width: bottom 0 is what boxes are predicted "
                               "from, bottom 1 the image");
    }
    const Shape &pixels = setup.bottom_shape(0), &image = setup.bottom_shape(1);
    rows_ = pixels[2];
    columns_ = pixels[3];
    image_ = ReadPair(setup, {"img_size", static_cast<float>(param.img_size()), param.has_img_size()},
                      {"img_w", static_cast<float>(param.img_w()), param.has_img_w()},
                      {"img_h", static_cast<float>(param.img_h()), param.has_img_h()});
    if (image_.width == 0) image_ = {static_cast<float>(image[3]), static_cast<float>(image[2])};
    step_ = ReadPair(setup, {"step", param.step(), param.has_step()}, {"step_w", param.step_w(), param.has_step_w()},
                     {"step_h", param.step_h(), param.has_step_h()});
    if (step_.width == 0) {
      step_ = {image_.width / static_cast<float>(columns_), image_.height / static_cast<float>(rows_)};
    }
    offset_ = ReadInRange(setup, "prior_box_param.offset", param.offset(), kFinite, "0.5 is usual");
    clip_ = param.clip();
    ReadExtents(setup);
    variance_ = VarianceOf(setup, "prior_box_param.variance", param.variance(), 0.1f);
    const auto boxes = static_cast<int64_t>(extents_.size());
    if (boxes * kNumbers > INT32_MAX / rows_ / columns_) {
      setup.Fail("prior_box_param", std::to_string(boxes) + " boxes at each of the " + std::to_string(rows_) + " x " +
                                        std::to_string(columns_) + " pixels of \"" + setup.param().bottom(0) +
                                        "\" are too many; expected fewer than 2^29 in all");
    }
    setup.SetTop(0, {1, 2, rows_ * columns_ * boxes * kNumbers});
    MakeConstant(setup);
  }

 private:
  void Write(const Tensor& top) const override {
    const int64_t half = top.count() / 2;
    WriteBoxes(top.f32());
    for (int64_t i = 0; i < half; ++i) top.f32()[half + i] = variance_.values[i % kNumbers];
  }

  static constexpr int64_t kNumbers = 4;  // of a box

  struct Field {
    std::string name;
    float value;
    bool given;
  };

  // What `both` gives for width and height or else `width` and `height`; 0 where they are absent or 0.
  static Extent ReadPair(const LayerSetup& setup, const Field& both, const Field& width, const Field& height) {
    for (const Field* field : {&both, &width, &height}) {
      ReadInRange(setup, "prior_box_param." + field->name, field->value, kNotNegative, "it counts pixels");
    }
    if (both.given && (width.given || height.given)) {
      setup.Fail("prior_box_param." + both.name,
                 "both " + both.name + " and " + width.name + " or " + height.name + " are set; keep one of them");
    }
    if ((width.value > 0) != (height.value > 0)) {
      const Field &set = width.value > 0 ? width : height, &other = width.value > 0 ? height : width;
      setup.Fail("prior_box_param." + set.name,
                 set.name + " is set without " + other.name + "; set both, or " + both.name + " for equal ones");
    }
    return both.value > 0 ? Extent{both.value, both.value} : Extent{width.value, height.value};
  }

  // The shapes of a pixel, in the order of its boxes. As Caffe's SSD does, sizes count whole pixels: fractions are
  // dropped.
  void ReadExtents(const LayerSetup& setup) {
    const PriorBoxParameter& param = setup.param().prior_box_param();
    if (param.min_size_size() == 0) {
      setup.Fail("prior_box_param", "min_size is not set; give the sides of the boxes in pixels of the image");
    }
    if (param.max_size_size() > 0 && param.max_size_size() != param.min_size_size()) {
      setup.Fail("prior_box_param.max_size", "max_size is given " + std::to_string(param.max_size_size()) +
                                                 " times beside " + std::to_string(param.min_size_size()) +
                                                 " of min_size; give one for each min_size, or none");
    }
    const std::vector<float> proportions = ReadProportions(setup);
    for (int i = 0; i < param.min_size_size(); ++i) {
      CheckSize(setup, "min_size", param.min_size(i));
      const int least = static_cast<int>(param.min_size(i));
      extents_.push_back({static_cast<float>(least), static_cast<float>(least)});
      if (param.max_size_size() > 0) {
        CheckSize(setup, "max_size", param.max_size(i));
        if (!(param.max_size(i) > param.min_size(i))) {
          setup.Fail("prior_box_param.max_size", "max_size " + FormatNumber(param.max_size(i)) +
                                                     " is not above its min_size, " + FormatNumber(param.min_size(i)));
        }
        const int most = static_cast<int>(param.max_size(i));
        const auto side = static_cast<float>(std::sqrt(static_cast<double>(least) * most));
        extents_.push_back({side, side});
      }
      for (const float proportion : proportions) {
        const double root = std::sqrt(double{proportion});
        extents_.push_back({static_cast<float>(least * root), static_cast<float>(least / root)});
      }
    }
  }

  static void CheckSize(const LayerSetup& setup, const std::string& field, float size) {
    ReadInRange(setup, "prior_box_param." + field, size, {1, 32768}, "it counts pixels of the image");
  }

  // Each once, without that of squares.
  static std::vector<float> ReadProportions(const LayerSetup& setup) {
    const PriorBoxParameter& param = setup.param().prior_box_param();
    std::vector<float> proportions = {1};
    for (const float proportion : param.aspect_ratio()) {
      if (!(proportion > 0) || !std::isfinite(proportion) || !std::isfinite(1 / proportion)) {
        setup.Fail("prior_box_param.aspect_ratio",
                   "aspect_ratio is " + FormatNumber(proportion) + " but must be above 0; it is width / height");
      }
      const auto is_same = [=](float other) { return std::fabs(proportion - other) < 1e-6; };
      if (std::any_of(proportions.begin(), proportions.end(), is_same)) continue;
      proportions.push_back(proportion);
      if (param.flip()) proportions.push_back(1 / proportion);
    }
    proportions.erase(proportions.begin());
    return proportions;
  }

  // Centres are rounded to floats, corners computed in double precision, as Caffe's SSD does.
  void WriteBoxes(float* to) const {
    for (int64_t row = 0; row < rows_; ++row) {
      const float y = (static_cast<float>(row) + offset_) * step_.height;
      for (int64_t column = 0; column < columns_; ++column) {
        const float x = (static_cast<float>(column) + offset_) * step_.width;
        for (const Extent& extent : extents_) {
          for (const double side : {-0.5, 0.5}) {
            *to++ = Share((x + side * extent.width) / image_.width);
            *to++ = Share((y + side * extent.height) / image_.height);
          }
        }
      }
    }
  }

  float Share(double share) const {
    const auto rounded = static_cast<float>(share);
    return clip_ ? std::clamp(rounded, 0.0f, 1.0f) : rounded;
  }

  int64_t rows_ = 0, columns_ = 0;
  Extent image_{}, step_{};  // in pixels of the image
  float offset_ = 0;
  bool clip_ = false;
  std::vector<Extent> extents_;  // of the boxes of a pixel
  BoxVariance variance_;
};

}  // namespace

REGISTER_LAYER(PriorBox, PriorBoxLayer, "prior_box_param");

}  // namespace crema
