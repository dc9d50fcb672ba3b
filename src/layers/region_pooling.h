// What layers share that pool rectangles of images to grids of cells. Bottoms: images and regions.
#ifndef CREMA_LAYERS_REGION_POOLING_H_
#define CREMA_LAYERS_REGION_POOLING_H_

#include <cstdint>
#include <string>

#include "base/number_text.h"
#include "crema/layer.h"
#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

class RegionPoolingLayer : public Layer {
 public:
  void OnBadValue(int64_t position, float value) const override {
    static constexpr const char* kNames[kRegionNumbers] = {"image", "x1", "y1", "x2", "y2"};
    const int64_t region = position / kRegionNumbers, number = position % kRegionNumbers;
    const std::string text = FormatNumber(value, "%.9g");
    const std::string which = "region " + std::to_string(region) + " of \"" + regions_ + "\" ";
    if (number > 0) {
      throw BadItem(1, region, which + "has " + kNames[number] + " = " + text + "; give finite numbers");
    }
    throw BadItem(1, region,
                  which + "is of image " + text + ", but \"" + images_ + "\" holds images 0 to " +
                      std::to_string(problem_.images - 1) + "; correct the first of its 5 numbers");
  }

 protected:
  // A number of `message` of the file that must be in [1, 65536].
  static void CheckCount(const LayerSetup& setup, const std::string& message, const std::string& field, bool given,
                         int64_t count, const std::string& meaning) {
    if (count >= 1 && count <= 1 << 16) return;
    setup.Fail(given ? message + "." + field : message, field + " must be in [1, 65536]; it is " + meaning);
  }

  static void CheckCells(const LayerSetup& setup, const std::string& message, const std::string& field, bool given,
                         int64_t cells) {
    CheckCount(setup, message, field, given, cells, "how many cells a region is cut into");
  }

  // Checks the bottoms and tells problem() of them, as if the top had the channels of the images.
  void SetupRegions(LayerSetup& setup, const std::string& message, int64_t rows, int64_t columns, float scale) {
    ReadInRange(setup, message + ".spatial_scale", scale, kPositive,
                "corners are multiplied by it to become pixels of the bottom");
    const Shape &images = setup.bottom_shape(0), &regions = setup.bottom_shape(1);
    images_ = setup.param().bottom(0);
    regions_ = setup.param().bottom(1);
    if (images.axes() != 4) {
      setup.Fail("bottom", "takes num x channels x height x width, but \"" + images_ + "\" is " + images.ToString());
    }
    if (images.count(2) > INT32_MAX) {
      setup.Fail("bottom", "\"" + images_ + "\" (" + images.ToString() + ") has planes of more than 2^31 elements");
    }
    if (regions.axes() < 1 || regions.count() != regions[0] * kRegionNumbers) {
      setup.Fail("bottom", "\"" + regions_ + "\" is " + regions.ToString() +
                               ", but a region is 5 numbers: its image, x1, y1, x2 and y2");
    }
    problem_ = {images[0], images[1], images[2], images[3], regions[0], rows, columns, scale};
    setup.NoGradient(1);
  }

  // Looks for regions that are none.
  void CheckRegions(const LayerRun& run) const {
    const float* regions = run.bottoms[1].f32();
    const int64_t bad = run.ops->FindBadRegion(problem_, regions);
    if (bad >= 0) OnBadValue(bad, regions[bad]);
  }

  RoiPoolingProblem problem_;

 private:
  std::string images_, regions_;  // names of the bottoms, for messages
};

}  // namespace crema

#endif  // CREMA_LAYERS_REGION_POOLING_H_
