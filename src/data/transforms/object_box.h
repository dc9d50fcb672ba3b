// Boxes of objects, as SSD computes with them (Liu et al., "SSD: Single Shot MultiBox Detector", 2016).
#ifndef CREMA_DATA_TRANSFORMS_OBJECT_BOX_H_
#define CREMA_DATA_TRANSFORMS_OBJECT_BOX_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace crema {

// Corners are shares of an image's width and height; they may lie outside of it.
struct ObjectBox {
  float xmin = 0, ymin = 0, xmax = 1, ymax = 1;

  float width() const { return xmax - xmin; }
  float height() const { return ymax - ymin; }
  // 0 where corners are in the wrong order.
  float area() const { return xmax < xmin || ymax < ymin ? 0 : width() * height(); }
};

inline bool IsFinite(const ObjectBox& box) {
  return std::isfinite(box.xmin) && std::isfinite(box.ymin) && std::isfinite(box.xmax) && std::isfinite(box.ymax);
}

// One object of an image.
struct BoxedObject {
  int32_t label = 0, instance = 0;
  ObjectBox box;
  bool difficult = false;
};

inline ObjectBox Clipped(const ObjectBox& box) {
  return {std::clamp(box.xmin, 0.0f, 1.0f), std::clamp(box.ymin, 0.0f, 1.0f), std::clamp(box.xmax, 0.0f, 1.0f),
          std::clamp(box.ymax, 0.0f, 1.0f)};
}

inline bool Overlap(const ObjectBox& a, const ObjectBox& b) {
  return a.xmin < b.xmax && a.xmax > b.xmin && a.ymin < b.ymax && a.ymax > b.ymin;
}

inline float IntersectionArea(const ObjectBox& a, const ObjectBox& b) {
  if (!Overlap(a, b)) return 0;
  return ObjectBox{std::max(a.xmin, b.xmin), std::max(a.ymin, b.ymin), std::min(a.xmax, b.xmax),
                   std::min(a.ymax, b.ymax)}
      .area();
}

inline float IntersectionByUnion(const ObjectBox& a, const ObjectBox& b) {
  const float shared = IntersectionArea(a, b);
  return shared > 0 ? shared / (a.area() + b.area() - shared) : 0;
}

// Share of `box` that `other` covers.
inline float Coverage(const ObjectBox& box, const ObjectBox& other) {
  const float shared = IntersectionArea(box, other);
  return shared > 0 ? shared / box.area() : 0;
}

// The box in shares of the part `of` an image, cut off at its border. False where nothing of it is left.
inline bool Project(const ObjectBox& of, ObjectBox* box) {
  if (!Overlap(*box, of)) return false;
  *box = Clipped({(box->xmin - of.xmin) / of.width(), (box->ymin - of.ymin) / of.height(),
                  (box->xmax - of.xmin) / of.width(), (box->ymax - of.ymin) / of.height()});
  return box->area() > 0;
}

inline ObjectBox Mirrored(const ObjectBox& box) { return {1 - box.xmax, box.ymin, 1 - box.xmin, box.ymax}; }

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_OBJECT_BOX_H_
