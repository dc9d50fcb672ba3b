// Rows that tell the true objects of images, as the labels of detectors are. f32 in CPU memory.
#ifndef CREMA_OPS_DETECTION_OBJECT_ROWS_H_
#define CREMA_OPS_DETECTION_OBJECT_ROWS_H_

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "ops/arrays/functors.h"

namespace crema {

// A row is kNumbers: image, class, number of the object, xmin, ymin, xmax, ymax, 1 where it is difficult; rows of image
// -1 are none.
struct ObjectRows {
  static constexpr int64_t kNumbers = 8;
  static constexpr int64_t kAnyImage = int64_t{1} << 24;  // as many as floats can number
  static constexpr int64_t kAnyClass = int64_t{1} << 31;

  int64_t rows = 0;
  int64_t images = kAnyImage, classes = kAnyClass;  // how many there are
  int64_t background = 0;                           // the class that is none
};

// The first number that cannot be used, as image * rows * kNumbers + its position among all numbers; the image is 0
// where it is itself that number. -1 when all are fine.
int64_t FindBadObject(const ObjectRows& objects, const float* values);

namespace object_rows {

CREMA_FORMULA bool IsNumberOf(float value, int64_t count) {
  return value >= 0.0f && value < static_cast<float>(count) && value == std::floor(value);
}

// Whether number `which` of a row cannot be used.
CREMA_FORMULA bool IsBad(const ObjectRows& o, const float* row, int64_t which) {
  const float value = row[which];
  if (row[0] == -1.0f) return false;
  if (which == 0) return !IsNumberOf(value, o.images);
  if (which == 1) return !IsNumberOf(value, o.classes) || value == static_cast<float>(o.background);
  return which >= 3 && which < 7 && !(__builtin_fabsf(value) <= FLT_MAX);
}

// What is told of number `first` among those of all rows.
CREMA_FORMULA int64_t BadPosition(const ObjectRows& o, const float* values, int64_t first) {
  const float image = values[first / ObjectRows::kNumbers * ObjectRows::kNumbers];
  return (IsNumberOf(image, o.images) ? static_cast<int64_t>(image) : 0) * o.rows * ObjectRows::kNumbers + first;
}

}  // namespace object_rows

}  // namespace crema

#endif  // CREMA_OPS_DETECTION_OBJECT_ROWS_H_
