// Transforms of images in memory, by hand-computed values and against the resizer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "crema/blob.pb.h"
#include "data/data_testing.h"
#include "data/image_testing.h"
#include "data/transforms/transform.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::Photograph;

std::vector<float> Apply(const Transform& transform, const Image& image, uint64_t seed = 1,
                         const ReducedImage& reduced = {}) {
  const ImageSize size{image.channels, reduced.reduction > 1 ? reduced.whole.height : image.height,
                       reduced.reduction > 1 ? reduced.whole.width : image.width};
  EXPECT_EQ(transform.Check(size), "");
  // The last value stays as it is.
  std::vector<float> out(transform.OutputSize(size).count() + 1, -12345);
  TransformScratch scratch;
  transform.Apply(image, RandomStream(seed, 5), &scratch, out.data(), reduced);
  EXPECT_EQ(out.back(), -12345);
  out.pop_back();
  return out;
}

Image Pixels(int height, int width, int channels, const std::vector<uint8_t>& pixels) {
  Image image;
  image.Resize(height, width, channels);
  image.pixels = pixels;
  return image;
}

std::vector<float> PlanesOf(const Image& image) {
  std::vector<uint8_t> planes(image.size());
  ToPlanes(image, planes.data());
  return {planes.begin(), planes.end()};
}

TEST(ImageTransform, ValuesByHand) {
  const Image image = Pixels(1, 2, 3, {10, 20, 30, 40, 50, 60});
  EXPECT_EQ(Apply(Transform({}, TEST, ""), image), (std::vector<float>{10, 40, 20, 50, 30, 60}));
  TransformationParameter param;
  for (const float mean : {10.0f, 20.0f, 40.0f}) param.add_mean_value(mean);
  param.add_std_value(2);
  param.add_std_value(4);
  param.add_std_value(5);
  param.set_scale(8);
  EXPECT_EQ(Apply(Transform(param, TRAIN, ""), image), (std::vector<float>{0, 120, 0, 60, -16, 32}));
  param.mutable_std_value()->Truncate(1);
  EXPECT_EQ(Apply(Transform(param, TRAIN, ""), image), (std::vector<float>{0, 120, 0, 120, -40, 80}));
}

// Every way to the values: planes and pixels, of 1, 2 and 3 channels, wide enough for vectors, both directions.
TEST(ImageTransform, PixelsAndPlanesAgree) {
  for (const int channels : {1, 2, 3}) {
    for (const int width : {1, 2, 7, 64, 131}) {
      const Image image = Photograph(5, width, channels, static_cast<uint64_t>(width));
      std::vector<uint8_t> planes(image.size());
      ToPlanes(image, planes.data());
      const ImageSize size{channels, 5, width};
      TransformationParameter param;
      param.set_mirror(true);
      param.set_scale(0.017f);
      param.add_std_value(3);
      for (int c = 0; c < channels; ++c) param.add_mean_value(101.5f + static_cast<float>(c));
      param.set_pad(width > 2 ? 2 : 0);
      const Transform transform(param, TRAIN, "");
      for (uint64_t seed = 0; seed < 6; ++seed) {
        std::vector<float> out(transform.OutputSize(size).count());
        TransformScratch scratch;
        transform.Apply(planes.data(), size, RandomStream(seed, 5), &scratch, out.data());
        EXPECT_EQ(Apply(transform, image, seed), out) << channels << " channels, width " << width;
      }
    }
  }
}

TEST(ImageTransform, PadsWithWhatTheNetSeesAsZero) {
  const Image image = Pixels(2, 2, 1, {1, 2, 3, 4});
  TransformationParameter param;
  param.set_pad(1);
  param.add_mean_value(1);
  EXPECT_EQ(Apply(Transform(param, TEST, ""), image),
            (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 3, 0, 0, 0, 0, 0}));
  // All nine shifts of the crop are seen, each with its border.
  param.set_crop_size(2);
  const Transform transform(param, TRAIN, "");
  EXPECT_EQ(transform.OutputSize({1, 2, 2}), (ImageSize{1, 2, 2}));
  std::set<std::vector<float>> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) seen.insert(Apply(transform, image, seed));
  std::set<std::vector<float>> shifts;
  for (int top = -1; top <= 1; ++top) {
    for (int left = -1; left <= 1; ++left) {
      std::vector<float> crop;
      for (int y = top; y < top + 2; ++y) {
        for (int x = left; x < left + 2; ++x) {
          crop.push_back(y < 0 || y > 1 || x < 0 || x > 1 ? 0.0f : static_cast<float>(image.row(y)[x] - 1));
        }
      }
      shifts.insert(crop);
    }
  }
  EXPECT_EQ(seen, shifts);
  // Larger than the image: allowed by the border alone.
  param.set_crop_size(4);
  EXPECT_EQ(Apply(Transform(param, TEST, ""), image),
            (std::vector<float>{0, 0, 0, 0, 0, 0, 1, 0, 0, 2, 3, 0, 0, 0, 0, 0}));
}

TEST(ImageTransform, ResizesAsTheConverterDoes) {
  for (const int channels : {1, 3}) {
    const Image image = Photograph(37, 50, channels);
    ResizeBuffers buffers;
    Image expected;
    TransformationParameter param;
    param.set_resize_height(20);
    param.set_resize_width(31);
    ResizeBilinear(image, 20, 31, &buffers, &expected);
    EXPECT_EQ(Apply(Transform(param, TRAIN, ""), image), PlanesOf(expected));
    TransformationParameter shorter;
    shorter.set_resize_shorter_side(74);
    ResizeBilinear(image, 74, 100, &buffers, &expected);
    const Transform transform(shorter, TEST, "");
    EXPECT_EQ(transform.OutputSize({channels, 37, 50}), (ImageSize{channels, 74, 100}));
    EXPECT_EQ(Apply(transform, image), PlanesOf(expected));
    // Planes of raw records likewise.
    std::vector<uint8_t> planes(image.size());
    ToPlanes(image, planes.data());
    std::vector<float> out(expected.size());
    TransformScratch scratch;
    transform.Apply(planes.data(), {channels, 37, 50}, RandomStream(1, 5), &scratch, out.data());
    EXPECT_EQ(out, PlanesOf(expected));
  }
}

TEST(ImageTransform, MeanImageIsOfTheResizedSize) {
  TemporaryFolder folder;
  BlobProto mean;
  for (const int extent : {3, 4, 6}) mean.mutable_shape()->add_dim(extent);
  for (int i = 0; i < 72; ++i) mean.add_data(static_cast<float>(i));
  testing::WriteFile(folder / "mean", mean.SerializeAsString());
  const Image image = Photograph(8, 12);
  TransformationParameter param;
  param.set_mean_file("mean");
  param.set_resize_height(4);
  param.set_resize_width(6);
  param.set_scale(0.5f);
  param.set_crop_size(2);
  Image resized;
  ResizeBuffers buffers;
  ResizeBilinear(image, 4, 6, &buffers, &resized);
  const std::vector<float> planes = PlanesOf(resized), out = Apply(Transform(param, TEST, folder / "mean"), image);
  for (int i = 0; i < 12; ++i) {
    const int at = i / 4 * 24 + (1 + i % 4 / 2) * 6 + 2 + i % 2;
    EXPECT_EQ(out[i], (planes[at] - static_cast<float>(at)) * 0.5f);
  }
  param.set_resize_width(7);
  ExpectThrows<UserError>([&] { Transform(param, TEST, folder / "mean"); }, {"3x4x6", "resized to 4x7", "mean_value"});
  param.clear_resize_width();
  param.clear_resize_height();
  EXPECT_NE(Transform(param, TEST, folder / "mean").Check({3, 8, 12}).find("3x4x6"), std::string::npos);
}

TEST(ImageTransform, SmallImagesNameTheRemedy) {
  TransformationParameter param;
  param.set_crop_size(224);
  EXPECT_NE(Transform(param, TRAIN, "").Check({3, 200, 300}).find("resize_shorter_side: 224"), std::string::npos);
  param.set_resize_shorter_side(256);
  EXPECT_EQ(Transform(param, TRAIN, "").Check({3, 200, 300}), "");
  EXPECT_NE(Transform(param, TRAIN, "").Check({3, 200, 300}, Transform::Values::kFloats), "");
}

TEST(ImageTransform, FloatsAreNeitherResizedNorChanged) {
  TransformationParameter param;
  param.set_resize_shorter_side(9);
  param.mutable_color_jitter()->set_brightness(1);
  param.set_pad(1);
  const Transform transform(param, TRAIN, "");
  EXPECT_EQ(transform.OutputSize({1, 2, 2}, Transform::Values::kFloats), (ImageSize{1, 4, 4}));
  const std::vector<float> floats = {1, 2, 3, 4};
  std::vector<float> out(16);
  transform.Apply(floats.data(), {1, 2, 2}, RandomStream(1, 5), out.data());
  EXPECT_EQ(out, (std::vector<float>{0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0}));
}

TEST(ImageTransform, RandomResizedCropIsTheResizedRectangle) {
  const Image image = Photograph(61, 80);
  TransformationParameter param;
  param.set_crop_size(24);
  param.mutable_random_resized_crop();
  const Transform transform(param, TRAIN, "");
  ResizeBuffers buffers;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ImageArea area = RandomArea(param.random_resized_crop()).Draw(61, 80, RandomStream(seed, 5), 6);
    Image expected;
    ResizeBilinear(image, area, 24, 24, &buffers, &expected);
    EXPECT_EQ(Apply(transform, image, seed), PlanesOf(expected));
  }
  // In TEST the other fields act.
  const Transform test(param, TEST, "");
  EXPECT_EQ(test.ReductionFor({610, 800}, RandomStream(1, 5)), 1);
  param.clear_random_resized_crop();
  EXPECT_EQ(Apply(test, image), Apply(Transform(param, TEST, ""), image));
}

TEST(ImageTransform, ReducedImagesLookAlike) {
  const Image image = Photograph(480, 640);
  const std::vector<uint8_t> bytes = EncodeJpeg(image, 95);
  TransformationParameter param;
  param.set_crop_size(48);
  param.mutable_random_resized_crop();
  const Transform transform(param, TRAIN, "");
  std::set<int> reductions;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const RandomStream random(seed, 5);
    ReducedImage reduced;
    reduced.whole = {480, 640};
    reduced.reduction = transform.ReductionFor(reduced.whole, random);
    const ImageArea area = RandomArea(param.random_resized_crop()).Draw(480, 640, random, 6);
    EXPECT_GE(std::min(area.height, area.width), 48 * reduced.reduction);
    if (reduced.reduction < 8) {
      EXPECT_LT(std::min(area.height, area.width), 96 * reduced.reduction);
    }
    reductions.insert(reduced.reduction);
    DecodeOptions options;
    Image whole, small;
    ASSERT_EQ(DecodeImage(bytes, options, &whole), "");
    options.reduction = reduced.reduction;
    ASSERT_EQ(DecodeImage(bytes, options, &small), "");
    const std::vector<float> expected = Apply(transform, whole, seed), got = Apply(transform, small, seed, reduced);
    double difference = 0;
    for (size_t i = 0; i < got.size(); ++i) difference += got[i] - expected[i];
    EXPECT_NEAR(difference / static_cast<double>(got.size()), 0, 3) << "seed " << seed;
  }
  EXPECT_EQ(reductions, (std::set<int>{2, 4, 8}));
}

// Label images are never decoded smaller.
TEST(ImageTransform, ReducedImagesLieWhereTheirLabelsDo) {
  Image labels, image;
  labels.Resize(400, 600, 1);
  image.Resize(400, 600, 3);
  for (int y = 0; y < labels.height; ++y) {
    for (int x = 0; x < labels.width; ++x) {
      const int square = (y / 40 + x / 40) % 2;
      labels.row(y)[x] = static_cast<uint8_t>(square);
      std::fill_n(image.row(y) + 3 * x, 3, static_cast<uint8_t>(200 * square));
    }
  }
  const std::vector<uint8_t> bytes = EncodeJpeg(image, 98);
  TransformationParameter param;
  param.set_crop_size(24);
  param.mutable_random_resized_crop();
  const Transform transform(param, TRAIN, "");
  int same = 0, pixels = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const RandomStream random(seed, 5);
    ReducedImage reduced;
    reduced.whole = {400, 600};
    reduced.reduction = transform.ReductionFor(reduced.whole, random);
    Image small;
    ASSERT_EQ(DecodeImage(bytes, {.reduction = reduced.reduction}, &small), "");
    const std::vector<float> seen = Apply(transform, small, seed, reduced);
    std::vector<float> label(24 * 24);
    TransformScratch scratch;
    transform.ApplyToLabels(labels, random, &scratch, 255, label.data());
    for (size_t i = 0; i < label.size(); ++i, ++pixels) same += (seen[i] > 100) == (label[i] == 1);
  }
  EXPECT_GT(same, 0.98 * pixels);
}

std::vector<float> ChangedByHand(const std::vector<float>& planes, size_t pixels, const ColorChange& change,
                                 bool colored) {
  const auto cut = [](float x) { return std::min(255.0f, std::max(0.0f, x)); };
  std::vector<float> out = planes;
  for (float& x : out) x = cut(x * change.brightness);
  const size_t channels = planes.size() / pixels;
  double mean = 0;
  for (size_t i = 0; i < pixels; ++i) {
    mean += colored ? 0.114 * out[i] + 0.587 * out[pixels + i] + 0.299 * out[2 * pixels + i] : out[i];
  }
  const float middle = static_cast<float>(mean / static_cast<double>(pixels));
  for (float& x : out) x = cut((x - middle) * change.contrast + middle);
  for (size_t i = 0; i < pixels && colored; ++i) {
    const float light = 0.114f * out[i] + 0.587f * out[pixels + i] + 0.299f * out[2 * pixels + i];
    for (size_t c = 0; c < channels; ++c)
      out[c * pixels + i] = cut((out[c * pixels + i] - light) * change.saturation + light);
  }
  return out;
}

TEST(ImageTransform, ColorsChangeAsDocumented) {
  for (const int channels : {1, 3}) {
    const Image image = Photograph(9, 35, channels);
    TransformationParameter param;
    param.mutable_color_jitter()->set_brightness(0.9f);
    param.mutable_color_jitter()->set_contrast(0.8f);
    param.mutable_color_jitter()->set_saturation(1);
    const Transform transform(param, TRAIN, "");
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const RandomStream random(seed, 5);
      ColorChange change;
      change.brightness = 0.1f + 1.8f * random.Uniform(3);
      change.contrast = 0.2f + 1.6f * random.Uniform(4);
      change.saturation = 2 * random.Uniform(5);
      const std::vector<float> out = Apply(transform, image, seed),
                               expected = ChangedByHand(PlanesOf(image), 9 * 35, change, channels == 3);
      for (size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], expected[i], 0.01) << "seed " << seed;
    }
    // Not in TEST.
    EXPECT_EQ(Apply(Transform(param, TEST, ""), image), PlanesOf(image));
  }
  TransformationParameter param;
  param.mutable_color_jitter()->set_contrast(0.5f);
  EXPECT_NE(Transform(param, TRAIN, "").Check({2, 5, 5}).find("1 or 3 channels"), std::string::npos);
}

TEST(ImageTransform, BorderAndMeanBehindChangedColors) {
  const Image image = Photograph(6, 6);
  TransformationParameter plain, jittered;
  plain.set_mirror(true);
  plain.set_pad(2);
  plain.set_crop_size(6);
  plain.add_mean_value(50);
  jittered = plain;
  jittered.mutable_color_jitter()->set_brightness(0.5f);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const float brightness = 0.5f + RandomStream(seed, 5).Uniform(3);
    const std::vector<float> from = Apply(Transform(plain, TRAIN, ""), image, seed),
                             to = Apply(Transform(jittered, TRAIN, ""), image, seed);
    for (size_t i = 0; i < from.size(); ++i) {
      const float expected = from[i] == 0 ? 0 : std::min(255.0f, (from[i] + 50) * brightness) - 50;
      // A pixel that equals the mean looks like the border.
      if (from[i] == 0 && to[i] != 0) continue;
      ASSERT_NEAR(to[i], expected, 0.01);
    }
  }
}

}  // namespace
}  // namespace crema
