// Turned images, with what else is done to them, against formulas in double precision.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "crema/blob.pb.h"
#include "data/augmentation_testing.h"
#include "data/image_testing.h"
#include "image/reference.h"

namespace crema {
namespace {

using testing::Apply;
using testing::ApplyToLabels;
using testing::kAngle;
using testing::kMirrorVertical;
using testing::Photograph;
using testing::StreamOf;
using testing::Turn;
using testing::TurnedPoint;

// What is done to the image of a stream, as the documentation of its random numbers says.
struct View {
  Turn turn;
  bool mirrored, upside_down;

  TurnedPoint PointOf(const Image& image, int v, int u) const {
    return testing::PointOf(image, turn, upside_down ? turn.height - 1 - v : v, mirrored ? turn.width - 1 - u : u);
  }
};

View ViewOf(const TransformationParameter& param, const Image& image, uint64_t seed) {
  const RandomStream random = StreamOf(seed);
  const int crop = static_cast<int>(param.crop_size()), pad = static_cast<int>(param.pad());
  View view{};
  Turn& turn = view.turn;
  turn.degrees = param.max_rotation_angle() * (2.0 * random.Uniform(kAngle) - 1);
  turn.resized = {image.height, image.width};
  if (param.resize_height() > 0) turn.resized = FixedResize(param);
  const auto [height, width] = turn.resized;
  turn.height = crop > 0 ? crop : height + 2 * pad;
  turn.width = crop > 0 ? crop : width + 2 * pad;
  if (param.has_random_resized_crop()) {
    turn.part = RandomArea(param.random_resized_crop()).Draw(height, width, random, 6);
  } else {
    const auto place = [&](uint64_t number, int extent, int size) {
      return static_cast<int>(random.Below(number, static_cast<uint64_t>(extent + 2 * pad - size + 1))) - pad;
    };
    turn.part = {place(1, height, turn.height), place(2, width, turn.width), turn.height, turn.width};
  }
  view.mirrored = param.mirror() && random.Below(0, 2) == 1;
  view.upside_down = param.mirror_vertical() && random.Below(kMirrorVertical, 2) == 1;
  return view;
}

std::vector<TransformationParameter> WaysToCut() {
  TransformationParameter whole, crop, padded, resized, random;
  whole.set_max_rotation_angle(45);
  crop = padded = resized = random = whole;
  crop.set_crop_size(16);
  crop.set_mirror(true);
  padded.set_crop_size(20);
  padded.set_pad(6);
  padded.set_mirror_vertical(true);
  padded.set_mirror(true);
  resized.set_resize_height(40);
  resized.set_resize_width(17);
  resized.set_crop_size(15);
  resized.set_max_rotation_angle(180);
  random.set_crop_size(12);
  random.set_mirror_vertical(true);
  random.mutable_random_resized_crop()->set_min_area(0.3f);
  return {whole, crop, padded, resized, random};
}

TEST(Augmentation, TurnsAsAFormulaDoes) {
  const float means[] = {90, 100, 110};
  for (const int channels : {1, 3}) {
    const Image image = Photograph(24, 31, channels);
    for (TransformationParameter param : WaysToCut()) {
      for (int c = 0; c < channels; ++c) param.add_mean_value(means[c]);
      param.set_scale(2);
      SCOPED_TRACE(param.ShortDebugString());
      const Transform transform(param, TRAIN, "");
      int64_t covered = 0, uncovered = 0;
      double least = 0, most = 0;
      for (uint64_t seed = 0; seed < 12; ++seed) {
        const View view = ViewOf(param, image, seed);
        const int height = view.turn.height, width = view.turn.width;
        least = std::min(least, view.turn.degrees / param.max_rotation_angle());
        most = std::max(most, view.turn.degrees / param.max_rotation_angle());
        const std::vector<float> out = Apply(transform, image, seed);
        ASSERT_EQ(out.size(), static_cast<size_t>(channels) * height * width);
        for (int i = 0; i < channels * height * width; ++i) {
          const int c = i / (height * width), v = i / width % height, u = i % width;
          const TurnedPoint point = view.PointOf(image, v, u);
          if (std::abs(point.inside) < 1e-4) continue;  // either
          const bool inside = point.inside > 0;
          (inside ? covered : uncovered) += 1;
          const double expected = inside ? 2 * (testing::Interpolated(image, point, c) - means[c]) : 0;
          ASSERT_NEAR(out[i], expected, inside ? 1.3 : 0) << v << "," << u << ", seed " << seed;
        }
      }
      EXPECT_GT(covered, 1000);
      EXPECT_GT(uncovered, 50);
      EXPECT_LT(least, -0.5);
      EXPECT_GT(most, 0.5);
    }
  }
}

TEST(Augmentation, LabelsTurnWithTheirPixels) {
  const Image image = Photograph(24, 31, 1);
  for (TransformationParameter param : WaysToCut()) {
    SCOPED_TRACE(param.ShortDebugString());
    param.add_mean_value(300);  // no pixel becomes what is uncovered
    const Transform transform(param, TRAIN, "");
    for (uint64_t seed = 0; seed < 12; ++seed) {
      const View view = ViewOf(param, image, seed);
      const std::vector<float> labels = ApplyToLabels(transform, image, seed), pixels = Apply(transform, image, seed);
      ASSERT_EQ(labels.size(), pixels.size());
      for (int i = 0; i < static_cast<int>(labels.size()); ++i) {
        ASSERT_EQ(labels[i] == 255, pixels[i] == 0);  // the image has no 255
        const TurnedPoint point = view.PointOf(image, i / view.turn.width, i % view.turn.width);
        if (labels[i] == 255 || point.from_border() < 1e-4) continue;
        ASSERT_EQ(labels[i], image.row(static_cast<int>(point.y))[static_cast<int>(point.x)]);
      }
    }
  }
}

// Colours of what is not covered do not count.
TEST(Augmentation, ContrastIsThatOfWhatIsSeen) {
  Image image;
  image.Resize(8, 40, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), 200);
  TransformationParameter param;
  param.set_max_rotation_angle(180);
  param.mutable_color_jitter()->set_contrast(1);
  const Transform transform(param, TRAIN, "");
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const float value : Apply(transform, image, seed)) EXPECT_TRUE(value == 0 || std::abs(value - 200) < 0.01f);
  }
}

}  // namespace
}  // namespace crema
