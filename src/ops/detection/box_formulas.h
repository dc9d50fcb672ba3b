// Boxes of detectors, shared by the CPU and kernels of a GPU (Liu et al., "SSD: Single Shot MultiBox Detector", 2016).
#ifndef CREMA_OPS_DETECTION_BOX_FORMULAS_H_
#define CREMA_OPS_DETECTION_BOX_FORMULAS_H_

#include "ops/arrays/functors.h"

namespace crema {

// Corners, in shares of the image's width and height. As much as four floats of a tensor.
struct BoundingBox {
  float xmin, ymin, xmax, ymax;
};

// How a box is told by four numbers that begin from a prior: PriorBoxParameter.CodeType.
enum class BoxCode { kCorner, kCenterSize, kCornerSize };

// What predicted numbers are multiplied by. All 1: no effect.
struct BoxVariance {
  float values[4];
};

namespace boxes {

// 0 where corners have changed places.
CREMA_FORMULA float Area(const BoundingBox& box) {
  const float area = (box.xmax - box.xmin) * (box.ymax - box.ymin);
  return ((box.xmax < box.xmin) | (box.ymax < box.ymin)) ? 0.0f : area;
}

CREMA_FORMULA BoundingBox Intersection(const BoundingBox& a, const BoundingBox& b) {
  return {a.xmin > b.xmin ? a.xmin : b.xmin, a.ymin > b.ymin ? a.ymin : b.ymin, a.xmax < b.xmax ? a.xmax : b.xmax,
          a.ymax < b.ymax ? a.ymax : b.ymax};
}

// Intersection by union (Jaccard), 0 to 1.
CREMA_FORMULA float Overlap(const BoundingBox& a, const BoundingBox& b) {
  const float shared = Area(Intersection(a, b));
  const float overlap = shared / (Area(a) + Area(b) - shared);
  return shared > 0.0f ? overlap : 0.0f;
}

CREMA_FORMULA float Within01(float x) { return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x; }

CREMA_FORMULA BoundingBox Clipped(const BoundingBox& box) {
  return {Within01(box.xmin), Within01(box.ymin), Within01(box.xmax), Within01(box.ymax)};
}

// The numbers, as a BoundingBox's members in order, that tell `box`.
CREMA_FORMULA BoundingBox Encode(BoxCode code, const BoundingBox& prior, const BoxVariance& variance,
                                 const BoundingBox& box) {
  const float width = prior.xmax - prior.xmin, height = prior.ymax - prior.ymin;
  const float* const v = variance.values;
  if (code == BoxCode::kCenterSize) {
    return {((box.xmin + box.xmax) - (prior.xmin + prior.xmax)) / 2.0f / width / v[0],
            ((box.ymin + box.ymax) - (prior.ymin + prior.ymax)) / 2.0f / height / v[1],
            formula::Log((box.xmax - box.xmin) / width) / v[2], formula::Log((box.ymax - box.ymin) / height) / v[3]};
  }
  const float x = code == BoxCode::kCornerSize ? width : 1.0f, y = code == BoxCode::kCornerSize ? height : 1.0f;
  return {(box.xmin - prior.xmin) / x / v[0], (box.ymin - prior.ymin) / y / v[1], (box.xmax - prior.xmax) / x / v[2],
          (box.ymax - prior.ymax) / y / v[3]};
}

// The box that they tell.
CREMA_FORMULA BoundingBox Decode(BoxCode code, const BoundingBox& prior, const BoxVariance& variance,
                                 const BoundingBox& numbers) {
  const float width = prior.xmax - prior.xmin, height = prior.ymax - prior.ymin;
  const float* const v = variance.values;
  if (code == BoxCode::kCenterSize) {
    const float x = v[0] * numbers.xmin * width + (prior.xmin + prior.xmax) / 2.0f,
                y = v[1] * numbers.ymin * height + (prior.ymin + prior.ymax) / 2.0f;
    const float half_width = formula::Exp(v[2] * numbers.xmax) * width / 2.0f,
                half_height = formula::Exp(v[3] * numbers.ymax) * height / 2.0f;
    return {x - half_width, y - half_height, x + half_width, y + half_height};
  }
  const float x = code == BoxCode::kCornerSize ? width : 1.0f, y = code == BoxCode::kCornerSize ? height : 1.0f;
  return {prior.xmin + v[0] * numbers.xmin * x, prior.ymin + v[1] * numbers.ymin * y,
          prior.xmax + v[2] * numbers.xmax * x, prior.ymax + v[3] * numbers.ymax * y};
}

}  // namespace boxes
}  // namespace crema

#endif  // CREMA_OPS_DETECTION_BOX_FORMULAS_H_
