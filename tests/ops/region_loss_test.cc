// The loss of YOLOv2, compared with Darknet's region layer as plain loops over objects, and with differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "ops/detection/yolo.h"

namespace crema {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct CentredBox {
  double x, y, width, height;
};

double Overlap(const CentredBox& a, const CentredBox& b) {
  const auto common = [](double a, double a_side, double b, double b_side) {
    return std::min(a + a_side / 2, b + b_side / 2) - std::max(a - a_side / 2, b - b_side / 2);
  };
  const double width = common(a.x, a.width, b.x, b.width), height = common(a.y, a.height, b.y, b.height);
  if (width <= 0 || height <= 0) return 0;
  return width * height / (a.width * a.height + b.width * b.height - width * height);
}

// What a prediction should say, and how much that counts.
struct Wanted {
  double centre[2] = {}, side[2] = {};  // in the cell; logarithms of shares of the anchor
  double box_scale = 0, surely = 0, surely_scale = 0;
  int label = 0;  // 0: none
};

class RegionLayer {
 public:
  RegionLayer(const YoloLoss& loss, const std::vector<double>& numbers, const std::vector<float>& rows, bool draws)
      : loss_(loss), grid_(loss.grid), numbers_(numbers) {
    for (int64_t image = 0; image < grid_.images; ++image) {
      std::vector<std::pair<CentredBox, int>> objects;
      for (size_t at = 0; at < rows.size(); at += ObjectRows::kNumbers) {
        const double left = rows[at + 3], top = rows[at + 4], right = rows[at + 5], bottom = rows[at + 6];
        if (rows[at] != static_cast<float>(image) || right <= left || bottom <= top) continue;
        objects.push_back(
            {{(left + right) / 2, (top + bottom) / 2, right - left, bottom - top}, static_cast<int>(rows[at + 1])});
      }
      Learn(image, objects, draws);
    }
  }

  // The sum of squares that Darknet prints, and what its gradients are of: with `numbers` in place of those that
  // decided what is wanted.
  double Squares(const std::vector<double>& numbers) const { return Sum(numbers, true); }
  double Potential(const std::vector<double>& numbers) const { return Sum(numbers, false); }
  const std::vector<Wanted>& wanted() const { return wanted_; }

 private:
  size_t At(int64_t image, int64_t anchor, int64_t number, int64_t row, int64_t column) const {
    return static_cast<size_t>(
        (((image * grid_.anchors + anchor) * (5 + grid_.classes) + number) * grid_.height + row) * grid_.width +
        column);
  }

  CentredBox BoxOf(int64_t image, int64_t n, int64_t row, int64_t column) const {
    const auto t = [&](int64_t number) { return numbers_[At(image, n, number, row, column)]; };
    return {(static_cast<double>(column) + Sigmoid(t(0))) / static_cast<double>(grid_.width),
            (static_cast<double>(row) + Sigmoid(t(1))) / static_cast<double>(grid_.height),
            std::exp(t(2)) * grid_.anchor_width[n], std::exp(t(3)) * grid_.anchor_height[n]};
  }

  void Learn(int64_t image, const std::vector<std::pair<CentredBox, int>>& objects, bool draws) {
    const size_t first = wanted_.size();
    for (int64_t n = 0; n < grid_.anchors; ++n) {
      for (int64_t cell = 0; cell < grid_.cells(); ++cell) {
        double best = 0;
        for (const auto& [object, label] : objects) {
          best = std::max(best, Overlap(BoxOf(image, n, cell / grid_.width, cell % grid_.width), object));
        }
        Wanted wanted;
        wanted.surely_scale = best > loss_.ignore_above ? 0 : loss_.nothing_scale;
        if (draws) {
          wanted.centre[0] = wanted.centre[1] = 0.5;
          wanted.box_scale = 0.01;
        }
        wanted_.push_back(wanted);
      }
    }
    for (const auto& [object, label] : objects) {
      const auto column = static_cast<int64_t>(object.x * static_cast<double>(grid_.width)),
                 row = static_cast<int64_t>(object.y * static_cast<double>(grid_.height));
      double best = 0;
      int64_t best_n = 0;
      for (int64_t n = 0; n < grid_.anchors; ++n) {
        CentredBox box = BoxOf(image, n, row, column);
        if (!loss_.matches_predicted) box = {0, 0, grid_.anchor_width[n], grid_.anchor_height[n]};
        const double overlap = Overlap({0, 0, box.width, box.height}, {0, 0, object.width, object.height});
        if (overlap <= best) continue;
        best = overlap;
        best_n = n;
      }
      Wanted wanted;
      wanted.centre[0] = object.x * static_cast<double>(grid_.width) - static_cast<double>(column);
      wanted.centre[1] = object.y * static_cast<double>(grid_.height) - static_cast<double>(row);
      wanted.side[0] = std::log(object.width / grid_.anchor_width[best_n]);
      wanted.side[1] = std::log(object.height / grid_.anchor_height[best_n]);
      wanted.box_scale = loss_.box_scale * (2 - object.width * object.height);
      wanted.surely = loss_.rescores ? Overlap(BoxOf(image, best_n, row, column), object) : 1;
      wanted.surely_scale = loss_.object_scale;
      wanted.label = label;
      wanted_[first + static_cast<size_t>(best_n * grid_.cells() + row * grid_.width + column)] = wanted;
    }
  }

  double Sum(const std::vector<double>& numbers, bool squares) const {
    double sum = 0;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const Wanted& wanted = wanted_[i];
      const auto cell = static_cast<int64_t>(i) % grid_.cells(), block = static_cast<int64_t>(i) / grid_.cells();
      const auto t = [&](int64_t number) {
        return numbers[At(block / grid_.anchors, block % grid_.anchors, number, cell / grid_.width,
                          cell % grid_.width)];
      };
      const auto add = [&](double scale, double wrong) {
        sum += squares ? scale * scale * wrong * wrong : scale * wrong * wrong / 2;
      };
      for (int k = 0; k < 2; ++k) add(wanted.box_scale, Sigmoid(t(k)) - wanted.centre[k]);
      for (int k = 0; k < 2; ++k) add(wanted.box_scale, t(2 + k) - wanted.side[k]);
      add(wanted.surely_scale, Sigmoid(t(4)) - wanted.surely);
      if (wanted.label == 0) continue;
      double all = 0;
      for (int64_t c = 0; c < grid_.classes; ++c) all += std::exp(t(5 + c));
      for (int64_t c = 0; c < grid_.classes; ++c) {
        const bool own = c + 1 == wanted.label;
        const double likely = loss_.softmax ? std::exp(t(5 + c)) / all : Sigmoid(t(5 + c));
        if (squares) {
          add(loss_.class_scale, likely - (own ? 1 : 0));
        } else if (own) {
          sum -= loss_.class_scale * std::log(likely);
        } else if (!loss_.softmax) {
          sum -= loss_.class_scale * std::log(1 - likely);
        }
      }
    }
    return sum / static_cast<double>(grid_.images);
  }

  const YoloLoss loss_;
  const YoloGrid grid_;
  const std::vector<double> numbers_;
  std::vector<Wanted> wanted_;  // image by image, of each anchor all cells
};

// Two of one anchor in one cell, the second one of another class; one without an area, one that is none, one whose
// centre lies in the last cell; of images in no order.
const std::vector<float> kObjects = {1, 2, 0, 0.12f, 0.15f, 0.9f,  0.95f, 0, 0,  1, 0, 0.05f, 0.1f,  0.35f, 0.5f,  0,
                                     0, 3, 0, 0.08f, 0.14f, 0.34f, 0.5f,  1, -1, 0, 0, 0,     0,     0,     0,     0,
                                     1, 3, 0, 0.7f,  0.6f,  0.7f,  0.8f,  0, 0,  2, 0, 0.9f,  0.85f, 0.97f, 0.99f, 0,
                                     1, 1, 0, 0.4f,  0.3f,  0.55f, 0.42f, 0};

YoloLoss RegionLoss() {
  YoloLoss loss;
  YoloGrid& grid = loss.grid;
  grid.images = 2;
  grid.classes = 3;
  grid.height = 3;
  grid.width = 4;
  grid.anchors = grid.all_anchors = 3;
  const float widths[] = {0.1f, 0.3f, 0.8f}, heights[] = {0.15f, 0.4f, 0.7f};
  for (int n = 0; n < 3; ++n) {
    grid.anchor_width[n] = widths[n];
    grid.anchor_height[n] = heights[n];
    grid.own[n] = n;
  }
  loss.objects = static_cast<int64_t>(kObjects.size()) / ObjectRows::kNumbers;
  loss.ignore_above = 0.3f;
  loss.match_above = 1;
  loss.object_scale = 5;
  loss.nothing_scale = 0.8f;
  loss.class_scale = 1.5f;
  loss.box_scale = 1.2f;
  loss.averages = loss.joins_classes = false;
  loss.through_sigmoid = true;
  return loss;
}

struct Form {
  const char* name;
  bool softmax, rescores, matches_predicted;
  uint64_t pass;
};

void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

class RegionLossForms : public ::testing::TestWithParam<Form> {};

TEST_P(RegionLossForms, IsDarknets) {
  constexpr uint64_t kAnchorPasses = 2;
  YoloLoss loss = RegionLoss();
  loss.softmax = GetParam().softmax;
  loss.rescores = GetParam().rescores;
  loss.matches_predicted = GetParam().matches_predicted;
  loss.anchor_passes = kAnchorPasses;
  const auto predictions = static_cast<size_t>(loss.grid.images * loss.grid.of_image());
  std::vector<float> numbers(predictions * static_cast<size_t>(loss.grid.numbers())), gradient(numbers.size()),
      losses(predictions);
  std::mt19937 random(7);
  for (float& number : numbers) number = std::uniform_real_distribution<float>(-1.2f, 1.2f)(random);
  LearnYolo(loss, GetParam().pass, numbers.data(), kObjects.data(), gradient.data(), losses.data());

  std::vector<double> exact(numbers.begin(), numbers.end());
  const RegionLayer layer(loss, exact, kObjects, GetParam().pass < kAnchorPasses);
  double sum = 0;
  for (const float part : losses) sum += part;
  const double wanted = layer.Squares(exact);
  EXPECT_NEAR(sum / static_cast<double>(loss.grid.images), wanted, 1e-5 * wanted);
  for (size_t i = 0; i < numbers.size(); ++i) {
    constexpr double kStep = 1e-4;
    const double at = exact[i];
    const auto potential = [&](double number) {
      exact[i] = number;
      return layer.Potential(exact);
    };
    const double slope = (potential(at + kStep) - potential(at - kStep)) / (2 * kStep);
    exact[i] = at;
    ASSERT_NEAR(gradient[i], slope, 2e-6 + 1e-5 * std::abs(slope)) << i;
  }
  // There is something of each kind: an object, nothing, and what may be found all the same.
  const auto count = [&](auto condition) {
    return std::count_if(layer.wanted().begin(), layer.wanted().end(), condition);
  };
  EXPECT_EQ(count([](const Wanted& w) { return w.label > 0; }), 4);
  EXPECT_GT(count([](const Wanted& w) { return w.surely_scale == 0; }), 0);
  EXPECT_GT(count([](const Wanted& w) { return w.label == 0 && w.surely_scale > 0; }), 10);
}

INSTANTIATE_TEST_SUITE_P(
    All, RegionLossForms,
    ::testing::Values(Form{"softmax", true, false, false, 2}, Form{"rescored", true, true, false, 2},
                      Form{"predicted_sides", true, true, true, 2}, Form{"sigmoids", false, true, false, 2},
                      Form{"anchors", true, true, false, 1}, Form{"sigmoids_and_anchors", false, false, true, 0}),
    [](const auto& info) { return std::string(info.param.name); });

// Anchors that the cell predicts otherwise than they are learn other objects.
TEST(RegionLoss, PredictedSidesChooseTheAnchor) {
  YoloLoss loss = RegionLoss();
  loss.softmax = true;
  const auto count = static_cast<size_t>(loss.grid.images * loss.grid.of_image() * loss.grid.numbers());
  std::vector<float> numbers(count, 0.0f), gradient(count), losses(count);
  // In the cell of row 0, column 0 of image 0: the first anchor predicts what the second one is.
  const auto cells = static_cast<size_t>(loss.grid.cells()), block = static_cast<size_t>(loss.grid.numbers()) * cells;
  numbers[2 * cells] = std::log(3.0f);
  numbers[3 * cells] = std::log(0.4f / 0.15f);
  numbers[block + 2 * cells] = -3;
  const auto learns = [&](size_t anchor) { return gradient[anchor * block + 5 * cells] != 0; };
  LearnYolo(loss, 0, numbers.data(), kObjects.data(), gradient.data(), losses.data());
  EXPECT_FALSE(learns(0));
  EXPECT_TRUE(learns(1));
  loss.matches_predicted = true;
  LearnYolo(loss, 0, numbers.data(), kObjects.data(), gradient.data(), losses.data());
  EXPECT_TRUE(learns(0));
  EXPECT_FALSE(learns(1));
}

// Of two objects at one place the last one is.
TEST(RegionLoss, WhatIsLearntIsFound) {
  YoloLoss loss = RegionLoss();
  loss.softmax = loss.rescores = true;
  loss.ignore_above = 1;
  constexpr uint64_t kPasses = 4000;
  loss.anchor_passes = kPasses / 2;
  const YoloGrid& grid = loss.grid;
  const auto predictions = static_cast<size_t>(grid.images * grid.of_image());
  std::vector<float> numbers(predictions * static_cast<size_t>(grid.numbers()), 0.0f), gradient(numbers.size()),
      losses(predictions);
  for (uint64_t pass = 0; pass < kPasses; ++pass) {
    LearnYolo(loss, pass, numbers.data(), kObjects.data(), gradient.data(), losses.data());
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] -= 0.25f * gradient[i];
  }
  std::vector<float> corners(4 * predictions), scores(predictions), labels(predictions);
  DecodeYolo(grid, numbers.data(), {0, grid.of_image(), true, false, corners.data(), scores.data(), labels.data()});
  std::vector<size_t> found_rows;
  for (size_t i = 0; i < predictions; ++i) {
    if (scores[i] < 0.5f) {
      EXPECT_LT(scores[i], 0.1f) << i;
      continue;
    }
    EXPECT_GT(scores[i], 0.9f) << i;
    const auto image = static_cast<float>(i / static_cast<size_t>(grid.of_image()));
    for (size_t row = 0; row < kObjects.size(); row += ObjectRows::kNumbers) {
      bool is_one = kObjects[row] == image && kObjects[row + 1] == labels[i];
      for (size_t c = 0; c < 4; ++c) is_one &= std::abs(corners[4 * i + c] - kObjects[row + 3 + c]) < 0.01f;
      if (is_one) found_rows.push_back(row / ObjectRows::kNumbers);
    }
  }
  std::sort(found_rows.begin(), found_rows.end());
  EXPECT_EQ(found_rows, (std::vector<size_t>{0, 2, 5, 6}));
}

}  // namespace
}  // namespace crema
