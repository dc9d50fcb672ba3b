// Boxes beside each other, whose overlaps with another one are computed at once.
#ifndef CREMA_OPS_DETECTION_BOX_TILE_H_
#define CREMA_OPS_DETECTION_BOX_TILE_H_

#include <cstdint>

#include "base/multiversion.h"
#include "ops/detection/box_formulas.h"

namespace crema {

struct BoxTile {
  static constexpr int64_t kMost = 256;

  float xmin[kMost], ymin[kMost], xmax[kMost], ymax[kMost];
};

// Of the first `count` boxes.
CREMA_INLINE void OverlapAll(int64_t count, const BoxTile& tile, const BoundingBox& box, float* overlap) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    overlap[i] = boxes::Overlap({tile.xmin[i], tile.ymin[i], tile.xmax[i], tile.ymax[i]}, box);
  }
}

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_BOX_TILE_H_
