// What TRAIN does to one image, with the numbers that decide it.
#ifndef CREMA_TESTS_DATA_AUGMENTATION_TESTING_H_
#define CREMA_TESTS_DATA_AUGMENTATION_TESTING_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "data/transforms/transform.h"

namespace crema::testing {

// Numbers of the stream, by what they decide.
inline constexpr uint64_t kMirrorVertical = 80, kAngle = 81, kErases = 82, kErased = 83;

inline RandomStream StreamOf(uint64_t seed) { return {seed, 5}; }

inline std::vector<float> Apply(const Transform& transform, const Image& image, uint64_t seed) {
  const ImageSize size{image.channels, image.height, image.width};
  EXPECT_EQ(transform.Check(size), "");
  std::vector<float> out(transform.OutputSize(size).count() + 1, -12345);
  TransformScratch scratch;
  transform.Apply(image, StreamOf(seed), &scratch, out.data());
  EXPECT_EQ(out.back(), -12345);
  out.pop_back();
  // Raw records go the same way.
  std::vector<uint8_t> planes(image.size());
  ToPlanes(image, planes.data());
  std::vector<float> of_planes(out.size());
  transform.Apply(planes.data(), size, StreamOf(seed), &scratch, of_planes.data());
  EXPECT_EQ(of_planes, out);
  return out;
}

// The image as its own label image.
inline std::vector<float> ApplyToLabels(const Transform& transform, const Image& image, uint64_t seed) {
  const ImageSize size{1, image.height, image.width};
  std::vector<float> out(transform.OutputSize(size).count() + 1, -12345);
  TransformScratch scratch;
  transform.ApplyToLabels(image, StreamOf(seed), &scratch, 255, out.data());
  EXPECT_EQ(out.back(), -12345);
  out.pop_back();
  return out;
}

}  // namespace crema::testing

#endif  // CREMA_TESTS_DATA_AUGMENTATION_TESTING_H_
