// RandAugment and TrivialAugment: what is drawn, where pixels and labels move to, and where in TRAIN.
#include "data/transforms/augmentation_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <vector>

#include "data/augmentation_testing.h"
#include "data/image_testing.h"
#include "image/reference.h"

namespace crema {
namespace {

using testing::Apply;
using testing::ApplyToLabels;
using testing::Photograph;
using testing::StreamOf;
using testing::TurnedPoint;
using Operation = AugmentationStep::Operation;

constexpr uint64_t kPolicy = 134;

bool Moves(const AugmentationStep& step) {
  return step.operation >= Operation::kShearX && step.operation <= Operation::kRotate;
}

TransformationParameter RandAugment(uint32_t operations, uint32_t magnitude) {
  TransformationParameter param;
  param.mutable_rand_augment()->set_operations(operations);
  param.mutable_rand_augment()->set_magnitude(magnitude);
  return param;
}

TransformationParameter TrivialAugment() {
  TransformationParameter param;
  param.mutable_trivial_augment();
  return param;
}

// All amounts that were drawn for images of 100 x 331.
std::map<Operation, std::set<double>> AmountsOf(const TransformationParameter& param) {
  const auto policy = AugmentationPolicy::Of(param);
  std::map<Operation, std::set<double>> amounts;
  std::map<Operation, int> times;
  for (uint64_t i = 0; i < 28000; ++i) {
    const AugmentationStep step = policy->Draw(0, {100, 331}, RandomStream(7, i), kPolicy);
    amounts[step.operation].insert(step.amount);
    ++times[step.operation];
  }
  EXPECT_EQ(times.size(), 14u);
  for (const auto& [operation, count] : times) EXPECT_NEAR(count, 2000, 200);
  return amounts;
}

// Ends of ranges are those of torchvision's documentation and source.
TEST(AugmentationPolicy, RandAugmentDrawsOperationsOfOneMagnitude) {
  TransformationParameter defaults;
  defaults.mutable_rand_augment();
  EXPECT_EQ(AugmentationPolicy::Of(defaults)->operations(), 2);
  for (const uint32_t magnitude : {0u, 9u, 15u, 30u}) {
    auto amounts = AmountsOf(magnitude == 9 ? defaults : RandAugment(1, magnitude));
    const double share = magnitude / 30.0;
    const auto expect = [&](Operation operation, double amount, bool with_opposite) {
      SCOPED_TRACE(static_cast<int>(operation));
      std::set<double> expected = {amount};
      if (with_opposite && amount != 0) expected.insert(-amount);
      const std::set<double>& drawn = amounts[operation];
      ASSERT_EQ(drawn.size(), expected.size());
      for (auto a = drawn.begin(), b = expected.begin(); a != drawn.end(); ++a, ++b) EXPECT_NEAR(*a, *b, 1e-9);
    };
    expect(Operation::kShearX, 0.3 * share, true);
    expect(Operation::kShearY, 0.3 * share, true);
    expect(Operation::kTranslateX, 150 * share, true);
    expect(Operation::kTranslateY, 150.0 / 331 * 100 * share, true);
    expect(Operation::kRotate, 30 * share, true);
    for (const Operation operation :
         {Operation::kBrightness, Operation::kColor, Operation::kContrast, Operation::kSharpness}) {
      expect(operation, 0.9 * share, true);
    }
    expect(Operation::kPosterize, magnitude == 0 ? 8 : magnitude == 9 ? 7 : magnitude == 15 ? 6 : 4, false);
    expect(Operation::kSolarize, magnitude == 9 ? 178.5 : 255 - 255 * share, false);
    for (const Operation operation : {Operation::kIdentity, Operation::kAutoContrast, Operation::kEqualize}) {
      expect(operation, 0, false);
    }
  }
}

TEST(AugmentationPolicy, TrivialAugmentDrawsAnyMagnitudeOfTheWideSpace) {
  const auto policy = AugmentationPolicy::Of(TrivialAugment());
  EXPECT_EQ(policy->operations(), 1);
  auto amounts = AmountsOf(TrivialAugment());
  const auto expect = [&](Operation operation, double least, double most, size_t count) {
    SCOPED_TRACE(static_cast<int>(operation));
    const std::set<double>& drawn = amounts[operation];
    EXPECT_EQ(drawn.size(), count);
    EXPECT_NEAR(*drawn.begin(), least, 1e-9);
    EXPECT_NEAR(*drawn.rbegin(), most, 1e-9);
  };
  for (const Operation operation : {Operation::kShearX, Operation::kShearY, Operation::kBrightness, Operation::kColor,
                                    Operation::kContrast, Operation::kSharpness}) {
    expect(operation, -0.99, 0.99, 61);
  }
  expect(Operation::kTranslateX, -32, 32, 61);
  expect(Operation::kTranslateY, -32, 32, 61);
  expect(Operation::kRotate, -135, 135, 61);
  expect(Operation::kPosterize, 2, 8, 7);
  expect(Operation::kSolarize, 0, 255, 31);
}

TEST(AugmentationPolicy, OperationsDrawNumbersOfTheirOwn) {
  const auto two = AugmentationPolicy::Of(RandAugment(2, 9)), three = AugmentationPolicy::Of(RandAugment(3, 9));
  int equal = 0;
  for (uint64_t i = 0; i < 1400; ++i) {
    const RandomStream random(i, 4);
    const AugmentationStep first = two->Draw(0, {9, 9}, random, kPolicy),
                           second = two->Draw(1, {9, 9}, random, kPolicy);
    equal += first.operation == second.operation;
    EXPECT_EQ(three->Draw(1, {9, 9}, random, kPolicy).operation, second.operation);
    EXPECT_EQ(three->Draw(1, {9, 9}, random, kPolicy).amount, second.amount);
    EXPECT_EQ(first.operation, static_cast<Operation>(random.Below(134, 14)));
    EXPECT_EQ(second.operation, static_cast<Operation>(random.Below(137, 14)));
  }
  EXPECT_NEAR(equal, 100, 40);
}

SeenImage Seen(const Image& image) {
  SeenImage seen;
  seen.image = image;
  seen.runs.assign(static_cast<size_t>(image.height), PixelRun{0, image.width});
  seen.border.assign(static_cast<size_t>(image.channels), 99);
  return seen;
}

// Where torchvision's affine(center=[0, 0]) and rotate take a pixel from.
TurnedPoint SourceOf(const AugmentationStep& step, const Image& image, int v, int u) {
  const double x = u + 0.5, y = v + 0.5, middle_x = image.width / 2.0, middle_y = image.height / 2.0;
  const double angle = step.amount * std::numbers::pi / 180;
  TurnedPoint point{y, x, 0};
  switch (step.operation) {
    case Operation::kShearX:
      point.x = x + step.amount * y;
      break;
    case Operation::kShearY:
      point.y = y + step.amount * x;
      break;
    case Operation::kTranslateX:
      point.x = x - std::trunc(step.amount);
      break;
    case Operation::kTranslateY:
      point.y = y - std::trunc(step.amount);
      break;
    default:
      point.x = middle_x + std::cos(angle) * (x - middle_x) - std::sin(angle) * (y - middle_y);
      point.y = middle_y + std::sin(angle) * (x - middle_x) + std::cos(angle) * (y - middle_y);
  }
  point.inside = std::min({point.x, point.y, image.width - point.x, image.height - point.y});
  return point;
}

std::vector<AugmentationStep> Movements() {
  std::vector<AugmentationStep> steps;
  for (const double sign : {1, -1}) {
    for (const double shear : {0.0, 0.11, 0.99}) {
      steps.push_back({Operation::kShearX, sign * shear});
      steps.push_back({Operation::kShearY, sign * shear});
    }
    for (const double pixels : {0.9, 1.0, 7.6, 31.5, 200.0}) {
      steps.push_back({Operation::kTranslateX, sign * pixels});
      steps.push_back({Operation::kTranslateY, sign * pixels});
    }
    for (const double degrees : {1.0, 30.0, 90.0, 135.0}) steps.push_back({Operation::kRotate, sign * degrees});
  }
  return steps;
}

TEST(AugmentationPolicy, PixelsAndLabelsMoveAsAFormulaSays) {
  for (const int channels : {1, 3}) {
    const Image image = Photograph(26, 35, channels);
    for (const AugmentationStep& step : Movements()) {
      SCOPED_TRACE(std::to_string(static_cast<int>(step.operation)) + ": " + std::to_string(step.amount));
      EXPECT_TRUE(Moves(step));
      SeenImage seen = Seen(image), labels = Seen(image);
      step.Apply(&seen);
      step.ApplyToLabels(&labels);
      for (int v = 0; v < 26; ++v) {
        for (int u = 0; u < 35; ++u) {
          const TurnedPoint point = SourceOf(step, image, v, u);
          if (std::abs(point.inside) < 1e-4) continue;  // either
          const PixelRun& run = seen.runs[static_cast<size_t>(v)];
          ASSERT_EQ(run, labels.runs[static_cast<size_t>(v)]);
          ASSERT_EQ(point.inside > 0, u >= run.first && u < run.first + run.count) << v << "," << u;
          for (int c = 0; c < channels; ++c) {
            const double expected = point.inside > 0 ? testing::Interpolated(image, point, c) : 99;
            ASSERT_NEAR(seen.image.row(v)[u * channels + c], expected, 0.7) << v << "," << u;
            if (point.inside > 0 && point.from_border() < 1e-4) continue;
            const int nearest =
                point.inside > 0 ? image.row(static_cast<int>(point.y))[static_cast<int>(point.x) * channels + c] : 99;
            ASSERT_EQ(labels.image.row(v)[u * channels + c], nearest) << v << "," << u;
          }
        }
      }
    }
  }
}

TEST(AugmentationPolicy, ColorsLeaveLabelsAlone) {
  const Image image = Photograph(40, 40, 1);
  for (int operation = 0; operation < AugmentationStep::kOperations; ++operation) {
    const AugmentationStep step{static_cast<Operation>(operation), 4};
    SeenImage seen = Seen(image);
    step.ApplyToLabels(&seen);
    EXPECT_EQ(seen.image.pixels == image.pixels, !Moves(step));
  }
}

// What came from beside the image stays beside it.
TEST(AugmentationPolicy, WhatIsCoveredMovesAlong) {
  const Image image = Photograph(30, 40);
  SeenImage seen = Seen(image);
  const AugmentationStep steps[] = {{Operation::kTranslateX, 9},
                                    {Operation::kTranslateX, -4},
                                    {Operation::kTranslateY, -3},
                                    {Operation::kBrightness, -0.5},
                                    {Operation::kTranslateY, 1}};
  for (const AugmentationStep& step : steps) step.Apply(&seen);
  for (int y = 0; y < 30; ++y) {
    for (int x = 0; x < 40; ++x) {
      const int row = y + 2, column = x - 5;
      const bool covered = y >= 1 && row < 30 && column >= 0 && x < 36;
      for (int c = 0; c < 3; ++c) {
        const int expected = covered ? image.row(row)[column * 3 + c] / 2 : 99;
        ASSERT_EQ(seen.image.row(y)[x * 3 + c], expected) << y << "," << x;
      }
    }
  }
}

std::vector<TransformationParameter> Policies() {
  return {RandAugment(1, 20), RandAugment(2, 9), RandAugment(5, 30), TrivialAugment()};
}

// What is seen without, changed; then values.
TEST(AugmentationPolicy, ActsOnWhatIsCutOutAndMirrored) {
  for (const int channels : {1, 3}) {
    const Image image = Photograph(30, 44, channels);
    TransformationParameter plain;
    plain.set_pad(2);
    plain.set_crop_size(27);
    plain.set_mirror(true);
    plain.set_mirror_vertical(true);
    plain.add_mean_value(300);  // only what is not covered is 0
    for (TransformationParameter param : Policies()) {
      SCOPED_TRACE(param.ShortDebugString());
      const auto policy = AugmentationPolicy::Of(param);
      param.MergeFrom(plain);
      std::set<std::vector<float>> seen_results;
      for (uint64_t seed = 0; seed < 60; ++seed) {
        const std::vector<float> before = Apply(Transform(plain, TRAIN, ""), image, seed),
                                 behind = Apply(Transform(param, TRAIN, ""), image, seed);
        const int plane = 27 * 27;
        SeenImage seen;
        seen.border.assign(static_cast<size_t>(channels), 255);
        seen.image.Resize(27, 27, channels);
        for (int y = 0; y < 27; ++y) {
          const float* row = before.data() + y * 27;
          const auto covered = [](float value) { return value != 0; };
          const auto first = std::find_if(row, row + 27, covered) - row;
          const auto count = std::count_if(row, row + 27, covered);
          seen.runs.push_back({count == 0 ? 0 : static_cast<int>(first), static_cast<int>(count)});
        }
        for (int i = 0; i < plane * channels; ++i) {
          seen.image.pixels[static_cast<size_t>(i % plane * channels + i / plane)] =
              before[i] == 0 ? 255 : static_cast<uint8_t>(before[i] + 300);
        }
        policy->Apply(StreamOf(seed), kPolicy, &seen);
        std::vector<float> expected(behind.size(), 0);
        for (int y = 0; y < 27; ++y) {
          const PixelRun run = seen.runs[static_cast<size_t>(y)];
          for (int x = run.first; x < run.first + run.count; ++x) {
            for (int c = 0; c < channels; ++c) {
              expected[c * plane + y * 27 + x] = static_cast<float>(seen.image.row(y)[x * channels + c]) - 300;
            }
          }
        }
        ASSERT_EQ(behind, expected) << "seed " << seed;
        seen_results.insert(behind);
        EXPECT_EQ(Apply(Transform(param, TEST, ""), image, seed), Apply(Transform(plain, TEST, ""), image, seed));
      }
      EXPECT_GE(seen_results.size(), 55u);
    }
  }
}

TEST(AugmentationPolicy, LabelsMoveWithTheirPixels) {
  const Image image = Photograph(40, 52, 1);
  TransformationParameter plain;
  plain.add_mean_value(300);
  TransformationParameter cut = plain, turned = plain, fitted = plain;
  cut.set_pad(3);
  cut.set_crop_size(32);
  cut.set_mirror(true);
  cut.set_mirror_vertical(true);
  turned.set_max_rotation_angle(40);
  turned.set_crop_size(24);
  turned.mutable_random_resized_crop();
  for (const TransformationParameter& way : {plain, cut, turned}) {
    for (TransformationParameter param : Policies()) {
      param.MergeFrom(way);
      SCOPED_TRACE(param.ShortDebugString());
      const auto policy = AugmentationPolicy::Of(param);
      int64_t uncovered = 0, holes = 0, total = 0, compared = 0;
      for (uint64_t seed = 0; seed < 60; ++seed) {
        const std::vector<float> pixels = Apply(Transform(param, TRAIN, ""), image, seed),
                                 labels = ApplyToLabels(Transform(param, TRAIN, ""), image, seed);
        ASSERT_EQ(pixels.size(), labels.size());
        bool same_colors = true;
        for (int i = 0; i < policy->operations(); ++i) {
          const Operation operation = policy->Draw(i, {9, 9}, StreamOf(seed), kPolicy).operation;
          same_colors = same_colors && (operation == Operation::kIdentity || operation == Operation::kTranslateX ||
                                        operation == Operation::kTranslateY);
        }
        for (size_t i = 0; i < pixels.size(); ++i) {
          ++total;
          uncovered += pixels[i] == 0;
          if (pixels[i] == 0) {
            ASSERT_EQ(labels[i], 255);
          } else if (labels[i] == 255) {
            ++holes;  // of the edge of what was moved before
          } else if (same_colors && !way.has_random_resized_crop()) {
            ++compared;
            ASSERT_EQ(pixels[i] + 300, labels[i]);
          }
        }
      }
      EXPECT_GT(uncovered, total / 100);
      EXPECT_LT(holes, total / 500);
      if (policy->operations() == 1 && !way.has_random_resized_crop()) {
        EXPECT_GT(compared, 1000);
      }
    }
  }
}

TEST(AugmentationPolicy, BytesOfOneOrThreeChannelsAreTaken) {
  for (const auto& [param, field] :
       {std::pair(RandAugment(2, 9), "rand_augment"), {TrivialAugment(), "trivial_augment"}}) {
    const Transform transform(param, TRAIN, "");
    const std::string leave_out = std::string("leave ") + field + " out";
    EXPECT_EQ(transform.Check({3, 5, 5}), "");
    EXPECT_NE(transform.Check({2, 5, 5}).find(leave_out), std::string::npos);
    EXPECT_NE(transform.Check({1, 5, 5}, Transform::Values::kFloats).find(leave_out), std::string::npos);
    const Transform test(param, TEST, "");
    EXPECT_EQ(test.Check({2, 5, 5}), "");
    EXPECT_EQ(test.Check({1, 5, 5}, Transform::Values::kFloats), "");
  }
}

}  // namespace
}  // namespace crema
