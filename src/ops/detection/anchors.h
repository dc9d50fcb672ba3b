// The boxes that nets begin from which propose regions (Ren et al., "Faster R-CNN: Towards Real-Time Object Detection
// with Region Proposal Networks", 2015), shared by the CPU and kernels of a GPU. Regions name the pixels of both
// corners; as a BoundingBox one reaches to the end of its last pixel, so that centres, areas and overlaps are those of
// boxes.
#ifndef CREMA_OPS_DETECTION_ANCHORS_H_
#define CREMA_OPS_DETECTION_ANCHORS_H_

#include <cstdint>

#include "ops/detection/box_formulas.h"

namespace crema {

struct Anchors {
  static constexpr int kMostShapes = 64;

  int64_t height = 1, width = 1;  // of the feature map
  float stride = 16;              // pixels of the image from one of its pixels to the next
  int32_t shapes = 1;
  BoundingBox boxes[kMostShapes] = {};  // of the first pixel, in pixels of the image

  CREMA_HOST_DEVICE int64_t pixels() const { return height * width; }
  // They are numbered as scores lie in memory: all of the first shape, row by row, then those of the next.
  CREMA_HOST_DEVICE int64_t count() const { return shapes * pixels(); }
};

// What a blob im_info holds of an image.
struct ScaledImage {
  static constexpr int64_t kNumbers = 3;

  float height, width;  // in pixels
  float scale;          // to these from pixels of the original
};

namespace anchors {

CREMA_FORMULA ScaledImage InfoOf(const float* info, int64_t image) {
  const float* const at = info + image * ScaledImage::kNumbers;
  return {at[0], at[1], at[2]};
}

CREMA_FORMULA BoundingBox BoxOf(const Anchors& a, int64_t anchor) {
  const int64_t pixel = anchor % a.pixels();
  const float x = static_cast<float>(pixel % a.width) * a.stride, y = static_cast<float>(pixel / a.width) * a.stride;
  const BoundingBox& shape = a.boxes[anchor / a.pixels()];
  return {shape.xmin + x, shape.ymin + y, shape.xmax + x, shape.ymax + y};
}

// Where the first of an anchor's four numbers lies among an image's 4 shapes x height x width; the others follow a
// plane each.
CREMA_FORMULA int64_t FirstNumber(const Anchors& a, int64_t anchor) {
  return anchor / a.pixels() * 4 * a.pixels() + anchor % a.pixels();
}

// Of a region: its corners, or those of an object.
CREMA_FORMULA BoundingBox FromPixels(const float* corners) {
  return {corners[0], corners[1], corners[2] + 1.0f, corners[3] + 1.0f};
}

// What a net predicts of a region, as Faster R-CNN reads it: the far corner it tells is itself a pixel of the region.
CREMA_FORMULA BoundingBox Moved(const BoundingBox& region, const BoxVariance& variance, const BoundingBox& offsets) {
  const BoundingBox box = boxes::Decode(BoxCode::kCenterSize, region, variance, offsets);
  return {box.xmin, box.ymin, box.xmax + 1.0f, box.ymax + 1.0f};
}

// Every corner's pixel moved into the image. A NaN stays.
CREMA_FORMULA BoundingBox Inside(const BoundingBox& box, const ScaledImage& image) {
  const auto within = [](float x, float least, float most) {
    x = x > most ? most : x;
    return x < least ? least : x;
  };
  return {within(box.xmin, 0.0f, image.width - 1.0f), within(box.ymin, 0.0f, image.height - 1.0f),
          within(box.xmax, 1.0f, image.width), within(box.ymax, 1.0f, image.height)};
}

}  // namespace anchors
}  // namespace crema

#endif  // CREMA_OPS_DETECTION_ANCHORS_H_
