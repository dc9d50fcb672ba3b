// The extents of one image.
#ifndef CREMA_DATA_DATABASES_IMAGE_SIZE_H_
#define CREMA_DATA_DATABASES_IMAGE_SIZE_H_

#include <cstdint>
#include <string>

#include "crema/tensor.h"

namespace crema {

// Stored channel by channel, row by row. Unlike a Shape it lives without the heap, for loops over records.
struct ImageSize {
  int32_t channels = 0, height = 0, width = 0;

  int64_t count() const { return int64_t{channels} * height * width; }
  Shape shape() const { return Shape{channels, height, width}; }
  // "3x224x224".
  std::string ToString() const { return shape().ToString(); }

  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_IMAGE_SIZE_H_
