// Files of images, cut short and changed at random.
#ifndef CREMA_TESTS_IMAGE_DAMAGED_FILES_H_
#define CREMA_TESTS_IMAGE_DAMAGED_FILES_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "image/codec.h"

namespace crema {

// What is cut gives an error, unless only the last `spare` bytes are missing; what is changed gives an error or an
// image of the size that its header says, never more.
inline void ExpectRefusedOrWhole(const std::vector<std::vector<uint8_t>>& files, size_t spare = 0) {
  const RandomStream random(1, 2);
  uint32_t draw = 0;
  for (const std::vector<uint8_t>& whole : files) {
    for (size_t length = 0; length + spare < whole.size(); length += 1 + length / 8) {
      Image image;
      EXPECT_NE(DecodeImage({whole.data(), length}, {}, &image), "") << "cut at " << length << " of " << whole.size();
    }
    for (int round = 0; round < 400; ++round) {
      std::vector<uint8_t> bytes = whole;
      for (int i = 0; i < 3; ++i, draw += 2) {
        bytes[random.Below(draw, bytes.size())] = static_cast<uint8_t>(random.Below(draw + 1, 256));
      }
      Image image;
      ImageInfo info;
      if (!DecodeImage(bytes, {}, &image).empty()) continue;
      ASSERT_EQ(ReadImageInfo(bytes, &info), "");
      EXPECT_EQ(image.height, info.height);
      EXPECT_EQ(image.width, info.width);
      EXPECT_GE(image.pixels.size(), image.size());
    }
  }
}

}  // namespace crema

#endif  // CREMA_TESTS_IMAGE_DAMAGED_FILES_H_
