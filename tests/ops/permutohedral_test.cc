#include "ops/mean_field/permutohedral.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "comparison.h"

namespace crema::permutohedral {
namespace {

class BuiltLattice {
 public:
  BuiltLattice(int dimensions, const std::vector<float>& features)
      : points_(static_cast<int64_t>(features.size()) / dimensions),
        memory_(View::Bytes(dimensions, points_) / sizeof(double) + 8),
        view_(dimensions, points_, reinterpret_cast<std::byte*>(memory_.data())) {
    std::vector<double> workspace(BuildWorkspace(dimensions, points_) / sizeof(double) + 1);
    Build(view_, features.data(), reinterpret_cast<std::byte*>(workspace.data()));
  }

  const View& view() const { return view_; }
  std::vector<float> Filtered(const std::vector<float>& x, Direction direction = Direction::kForward,
                              bool normalizes = true) const {
    const auto channels = static_cast<int64_t>(x.size()) / points_;
    std::vector<float> y(x.size(), NAN), workspace(FilterWorkspace(view_.dimensions, points_, channels), NAN);
    Filter(view_, direction, normalizes, channels, x.data(), y.data(), workspace.data());
    return y;
  }

 private:
  int64_t points_;
  std::vector<double> memory_;
  View view_;
};

// Pixels of a smooth image: positions / theta, and where there are five dimensions colours.
std::vector<float> ImageFeatures(int dimensions, int64_t height, int64_t width, float theta) {
  std::vector<float> features;
  for (int64_t i = 0; i < height * width; ++i) {
    const auto row = static_cast<float>(i / width), column = static_cast<float>(i % width);
    features.insert(features.end(), {column / theta, row / theta});
    for (int color = 0; color < dimensions - 2; ++color) {
      features.push_back(2.0f * std::sin(0.21f * row + 0.13f * static_cast<float>(color + 1) * column));
    }
  }
  return features;
}

std::vector<double> GaussianMeans(int dimensions, const std::vector<float>& features, const std::vector<float>& x) {
  const size_t points = x.size();
  std::vector<double> means(points);
  for (size_t i = 0; i < points; ++i) {
    double sum = 0, weights = 0;
    for (size_t k = 0; k < points; ++k) {
      double square = 0;
      for (int d = 0; d < dimensions; ++d) {
        const double difference = double{features[i * dimensions + d]} - features[k * dimensions + d];
        square += difference * difference;
      }
      const double weight = std::exp(-square / 2);
      sum += weight * x[k];
      weights += weight;
    }
    means[i] = sum / weights;
  }
  return means;
}

double Dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += double{a[i]} * b[i];
  return sum;
}

class Permutohedral : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Dimensions, Permutohedral, testing::Values(2, 5));

TEST_P(Permutohedral, IsNearGaussianMeans) {
  constexpr int64_t kHeight = 30, kWidth = 34;
  const std::vector<float> features = ImageFeatures(GetParam(), kHeight, kWidth, 3);
  std::vector<float> steps(kHeight * kWidth);  // as probabilities are: of regions
  for (int64_t i = 0; i < kHeight * kWidth; ++i) steps[i] = (i / kWidth / 9 + i % kWidth / 7) % 2 == 0 ? 1.0f : 0.0f;
  const std::vector<float> filtered = BuiltLattice(GetParam(), features).Filtered(steps);
  const std::vector<double> expected = GaussianMeans(GetParam(), features, steps);
  double worst = 0, sum = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    worst = std::max(worst, std::fabs(filtered[i] - expected[i]));
    sum += std::fabs(filtered[i] - expected[i]);
  }
  const double mean = sum / static_cast<double>(steps.size());
  EXPECT_LT(worst, GetParam() == 2 ? 0.06 : 0.15);
  EXPECT_LT(mean, GetParam() == 2 ? 0.015 : 0.025) << worst;
}

TEST_P(Permutohedral, KeepsWhatIsConstant) {
  const BuiltLattice lattice(GetParam(), ImageFeatures(GetParam(), 20, 23, 2.5f));
  for (const float value : lattice.Filtered(std::vector<float>(20 * 23 * 3, -0.7f))) EXPECT_NEAR(value, -0.7f, 1e-6f);
}

TEST_P(Permutohedral, AdjointIsTheTranspose) {
  const BuiltLattice lattice(GetParam(), ImageFeatures(GetParam(), 17, 26, 2));
  const std::vector<float> x = RandomValues(17 * 26 * 4, 1), y = RandomValues(17 * 26 * 4, 2);
  for (const bool normalizes : {false, true}) {
    const double one = Dot(lattice.Filtered(x, Direction::kForward, normalizes), y);
    const double other = Dot(x, lattice.Filtered(y, Direction::kAdjoint, normalizes));
    EXPECT_NEAR(one, other, 2e-6 * std::sqrt(Dot(x, x) * Dot(y, y)));
    EXPECT_GT(std::fabs(one), 1e-3);
  }
}

// The vertices of a simplex, weighted, are the point itself, so that what is linear on the lattice is met exactly.
TEST_P(Permutohedral, SimplexHoldsItsPoint) {
  const auto check = [&](auto dimensions) {
    constexpr int kDimensions = decltype(dimensions)::value;
    for (uint64_t stream = 0; stream < 200; ++stream) {
      std::vector<float> features = RandomValues(kDimensions, stream);
      for (float& feature : features) feature *= 40;
      const Simplex<kDimensions> simplex(features.data());
      double total = 0, elevated = 0;
      for (int i = 0; i < kDimensions; ++i) {
        elevated += features[i] * std::sqrt(2.0 / 3) / std::sqrt((i + 1.0) * (i + 2));
      }
      double first = 0;  // coordinate 0 of the point, in multiples of d + 1
      for (int group = 0; group <= kDimensions; ++group) {
        EXPECT_GE(simplex.weights[group], -1e-5f);
        const double q = simplex.base[0] - (simplex.rank[0] > kDimensions - group ? 1 : 0);
        first += simplex.weights[group] * (q + static_cast<double>(group) / (kDimensions + 1));
        total += simplex.weights[group];
      }
      EXPECT_NEAR(total, 1, 1e-5);
      EXPECT_NEAR(first, elevated, 1e-4);
    }
  };
  GetParam() == 2 ? check(std::integral_constant<int, 2>()) : check(std::integral_constant<int, 5>());
}

TEST_P(Permutohedral, ListsEachPointOnceInEachGroup) {
  const int64_t points = 21 * 19;
  const BuiltLattice lattice(GetParam(), ImageFeatures(GetParam(), 21, 19, 4));
  const View& view = lattice.view();
  ASSERT_GT(*view.vertices, view.groups());
  ASSERT_LT(*view.vertices, view.most());
  std::vector<int> seen(points);
  for (int64_t vertex = 0; vertex < *view.vertices; ++vertex) {
    for (int64_t i = view.first[vertex]; i < view.first[vertex + 1]; ++i) {
      ++seen[view.from_point[i]];
      if (i == view.first[vertex]) continue;
      EXPECT_LT(view.from_point[i - 1], view.from_point[i]);
    }
    for (int direction = 0; direction < view.groups(); ++direction) {
      const int32_t behind = view.Behind(direction)[vertex], ahead = view.Ahead(direction)[vertex];
      EXPECT_TRUE(behind < 0 || view.Ahead(direction)[behind] == vertex);
      EXPECT_TRUE(ahead < 0 || view.Behind(direction)[ahead] == vertex);
    }
  }
  for (const int count : seen) EXPECT_EQ(count, view.groups());
}

TEST_P(Permutohedral, DoesNotDependOnThreads) {
  const std::vector<float> features = ImageFeatures(GetParam(), 120, 110, 5), x = RandomValues(120 * 110 * 7, 3);
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const std::vector<float> alone = BuiltLattice(GetParam(), features).Filtered(x);
  omp_set_num_threads(3);
  const std::vector<float> together = BuiltLattice(GetParam(), features).Filtered(x);
  omp_set_num_threads(threads);
  EXPECT_EQ(alone, together);
}

TEST_P(Permutohedral, NotFiniteFeaturesMakeNaN) {
  for (const float bad : {NAN, std::numeric_limits<float>::infinity()}) {
    std::vector<float> features = ImageFeatures(GetParam(), 5, 6, 1);
    features.back() = bad;
    EXPECT_TRUE(std::isnan(BuiltLattice(GetParam(), features).Filtered(std::vector<float>(30, 1)).back()));
  }
}

TEST_P(Permutohedral, FeaturesFarAwayAreApart) {
  std::vector<float> features = ImageFeatures(GetParam(), 5, 6, 1);
  features.back() = 3e38f;
  features.front() = -3e38f;
  std::vector<float> x(30);
  x.front() = 1;
  x.back() = 2;
  const std::vector<float> filtered = BuiltLattice(GetParam(), features).Filtered(x);
  EXPECT_NEAR(filtered.front(), 1, 1e-3f);
  EXPECT_NEAR(filtered.back(), 2, 1e-3f);
}

}  // namespace
}  // namespace crema::permutohedral
