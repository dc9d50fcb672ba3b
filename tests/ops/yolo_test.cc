#include "ops/detection/yolo.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <vector>

#include "ops/detection/box_overlap_gradient.h"

namespace crema {
namespace {

// Two anchors of three, on 3 x 4 cells, for three classes.
YoloGrid Grid(int64_t images) {
  YoloGrid grid;
  grid.images = images;
  grid.classes = 3;
  grid.height = 3;
  grid.width = 4;
  grid.anchors = 2;
  grid.all_anchors = 3;
  const float widths[] = {0.1f, 0.3f, 0.8f}, heights[] = {0.15f, 0.4f, 0.7f};
  std::copy(std::begin(widths), std::end(widths), grid.anchor_width);
  std::copy(std::begin(heights), std::end(heights), grid.anchor_height);
  grid.own[0] = 0;
  grid.own[1] = 1;
  return grid;
}

// The third one is for the anchor that these cells do not have.
const std::vector<float> kObjects = {0, 1, 0, 0.1f, 0.1f, 0.35f, 0.55f, 0, 0, 3, 0, 0.62f, 0.7f, 0.7f, 0.8f, 0,
                                     1, 2, 0, 0.1f, 0.1f, 0.95f, 0.9f,  0, 1, 2, 0, 0.5f,  0.1f, 0.8f, 0.4f, 0};

struct Found {
  std::vector<float> corners, scores, labels;
};

Found Decode(const YoloGrid& grid, const std::vector<float>& predictions) {
  const auto count = static_cast<size_t>(grid.images * grid.of_image());
  Found found{std::vector<float>(4 * count), std::vector<float>(count), std::vector<float>(count)};
  DecodeYolo(grid, predictions.data(),
             {0, grid.of_image(), false, false, found.corners.data(), found.scores.data(), found.labels.data()});
  return found;
}

struct Form {
  YoloBoxLoss box_loss;
  float centre_range = 1;
  bool squared_sides = false;
};

void PrintTo(const Form& form, std::ostream* out) {
  *out << "box loss " << static_cast<int>(form.box_loss) << ", centres in " << form.centre_range
       << (form.squared_sides ? ", squared sides" : "");
}

class YoloLearning : public ::testing::TestWithParam<Form> {};

TEST_P(YoloLearning, WhatIsLearntIsFound) {
  YoloLoss loss;
  loss.grid = Grid(2);
  loss.objects = static_cast<int64_t>(kObjects.size()) / ObjectRows::kNumbers;
  loss.match_above = 1;
  loss.box_loss = GetParam().box_loss;
  loss.grid.centre_range = GetParam().centre_range;
  loss.grid.squared_sides = GetParam().squared_sides;
  const YoloGrid& grid = loss.grid;
  const auto predictions = static_cast<size_t>(grid.images * grid.of_image());
  std::vector<float> numbers(predictions * static_cast<size_t>(grid.numbers()), 0.0f), gradient(numbers.size()),
      losses(predictions);
  constexpr int kSteps = 4000;
  for (int step = 0; step < kSteps; ++step) {
    LearnYolo(loss, 0, numbers.data(), kObjects.data(), gradient.data(), losses.data());
    // Overlaps have steep sides, also where they are large.
    const float rate = 0.5f * static_cast<float>(kSteps - step) / kSteps;
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] -= rate * gradient[i];
  }

  const Found found = Decode(grid, numbers);
  int objects = 0;
  for (size_t i = 0; i < predictions; ++i) {
    if (found.scores[i] < 0.5f) {
      EXPECT_LT(found.scores[i], 0.1f) << i;
      continue;
    }
    ++objects;
    EXPECT_GT(found.scores[i], 0.9f) << i;
    const auto image = static_cast<float>(i / static_cast<size_t>(grid.of_image()));
    bool is_one = false;
    for (size_t row = 0; row < kObjects.size(); row += ObjectRows::kNumbers) {
      float apart = 0;
      for (size_t c = 0; c < 4; ++c) {
        apart = std::max(apart, std::abs(found.corners[4 * i + c] - kObjects[row + 3 + c]));
      }
      is_one |= kObjects[row] == image && kObjects[row + 1] == found.labels[i] && apart < 0.01f;
    }
    EXPECT_TRUE(is_one) << i;
  }
  EXPECT_EQ(objects, 3);
}

INSTANTIATE_TEST_SUITE_P(BoxLosses, YoloLearning,
                         ::testing::Values(Form{YoloBoxLoss::kSquares}, Form{YoloBoxLoss::kOverlap},
                                           Form{YoloBoxLoss::kGeneralized}, Form{YoloBoxLoss::kDistance},
                                           Form{YoloBoxLoss::kComplete}, Form{YoloBoxLoss::kSquares, 1.2f},
                                           Form{YoloBoxLoss::kComplete, 1.05f}, Form{YoloBoxLoss::kComplete, 2, true}));

// Where it is the derivative of the value: all but the last one's, which leaves its weight out.
TEST(Yolo, OverlapsHaveTheirDerivatives) {
  const overlaps::Centred<float> objects[] = {{0.5f, 0.5f, 0.3f, 0.2f}, {0.2f, 0.7f, 0.2f, 0.3f}};
  const overlaps::Centred<float> box = {0.45f, 0.52f, 0.28f, 0.31f};
  for (const YoloBoxLoss loss : {YoloBoxLoss::kOverlap, YoloBoxLoss::kGeneralized, YoloBoxLoss::kDistance}) {
    for (const auto& object : objects) {
      const overlaps::Dual known = overlaps::Overlap(loss, box, object);
      for (int i = 0; i < 4; ++i) {
        const float step = 2e-3f;
        const auto value_at = [&](float shift) {
          overlaps::Centred<float> moved = box;
          (i == 0 ? moved.x : i == 1 ? moved.y : i == 2 ? moved.width : moved.height) += shift;
          return overlaps::Overlap(loss, moved, object).value;
        };
        EXPECT_NEAR(known.by[i], (value_at(step) - value_at(-step)) / (2 * step), 5e-3)
            << static_cast<int>(loss) << " " << i;
      }
    }
  }
}

// Boxes far apart overlap by nothing, and where they do not know where to go the others do.
TEST(Yolo, BoxesApartLearnByGeneralizedOverlaps) {
  const overlaps::Centred<float> box = {0.2f, 0.5f, 0.1f, 0.1f}, object = {0.8f, 0.5f, 0.1f, 0.1f};
  EXPECT_EQ(overlaps::Overlap(YoloBoxLoss::kOverlap, box, object).by[0], 0);
  for (const YoloBoxLoss loss : {YoloBoxLoss::kGeneralized, YoloBoxLoss::kDistance, YoloBoxLoss::kComplete}) {
    EXPECT_GT(overlaps::Overlap(loss, box, object).by[0], 0.1f);
    EXPECT_NEAR(overlaps::Overlap(loss, object, object).value, 1, 1e-5);
  }
}

// Rows that cannot be used, as they are while the check of a GPU's batch is on its way.
TEST(Yolo, UnusableObjectsWriteNowhere) {
  YoloLoss loss;
  loss.grid = Grid(1);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> rows = {0,    1e9f, 0,        0.1f, 0.1f, 0.5f, 0.5f, 0, 0,    2,    0,
                                   0.5f, 0.5f, infinity, 0.9f, 0,    0,    -3,   0, 0.1f, 0.1f, std::nanf(""),
                                   1,    0,    1.5f,     1,    0,    0,    0,    1, 1,    0};
  loss.objects = 4;
  const auto predictions = static_cast<size_t>(loss.grid.of_image()),
             count = predictions * static_cast<size_t>(loss.grid.numbers());
  const std::vector<float> numbers(count, 0.0f);
  std::vector<float> gradient(count + 2, 77.0f), losses(predictions);
  LearnYolo(loss, 0, numbers.data(), rows.data(), gradient.data() + 1, losses.data());
  EXPECT_EQ(gradient.front(), 77.0f);
  EXPECT_EQ(gradient.back(), 77.0f);
}

}  // namespace
}  // namespace crema
