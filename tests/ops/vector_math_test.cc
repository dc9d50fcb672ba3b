#include "ops/arrays/vector_math.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace crema {
namespace {

std::vector<float> Random(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(n));
  for (float& value : values) value = normal(engine);
  return values;
}

const int64_t kSizes[] = {0, 1, 15, 16, 17, 4095, 4097, 100003, 1 << 20};

TEST(VectorMath, ElementwiseFunctionsDoWhatTheySay) {
  for (int64_t n : kSizes) {
    const std::vector<float> x = Random(n, 1), y = Random(n, 2);
    std::vector<float> axpy = y, scale = y, scaled(n), sum(n), copy(n), fill(n);
    Axpy(n, 0.5f, x.data(), axpy.data());
    Scale(n, 0.25f, scale.data());
    Scale(n, 3.0f, x.data(), scaled.data());
    Add(n, x.data(), y.data(), sum.data());
    Copy(n, x.data(), copy.data());
    Fill(n, 7.0f, fill.data());
    for (int64_t i = 0; i < n; ++i) {
      ASSERT_NEAR(axpy[i], 0.5f * x[i] + y[i], 1e-6);
      ASSERT_EQ(scale[i], 0.25f * y[i]);
      ASSERT_EQ(scaled[i], 3.0f * x[i]);
      ASSERT_EQ(sum[i], x[i] + y[i]);
      ASSERT_EQ(copy[i], x[i]);
      ASSERT_EQ(fill[i], 7.0f);
    }
  }
}

TEST(VectorMath, SumsAreAccurate) {
  for (int64_t n : kSizes) {
    const std::vector<float> x = Random(n, 3), y = Random(n, 4);
    long double sum = 0, magnitude = 0, squares = 0, dot = 0;
    for (int64_t i = 0; i < n; ++i) {
      sum += x[i];
      magnitude += std::fabs(x[i]);
      squares += static_cast<long double>(x[i]) * x[i];
      dot += static_cast<long double>(x[i]) * y[i];
    }
    const double allowed = 1e-14 * static_cast<double>(n + 1);
    EXPECT_NEAR(Sum(n, x.data()), static_cast<double>(sum), allowed);
    EXPECT_NEAR(AbsSum(n, x.data()), static_cast<double>(magnitude), allowed);
    EXPECT_NEAR(SumOfSquares(n, x.data()), static_cast<double>(squares), allowed);
    EXPECT_NEAR(Dot(n, x.data(), y.data()), static_cast<double>(dot), allowed);
  }
}

TEST(VectorMath, SumsDoNotDependOnTheNumberOfThreads) {
  const int before = omp_get_max_threads();
  for (int64_t n : kSizes) {
    const std::vector<float> x = Random(n, 5);
    omp_set_num_threads(1);
    const double sum = Sum(n, x.data()), squares = SumOfSquares(n, x.data());
    for (int threads : {2, 3, 7}) {
      omp_set_num_threads(threads);
      EXPECT_EQ(Sum(n, x.data()), sum);
      EXPECT_EQ(SumOfSquares(n, x.data()), squares);
    }
  }
  omp_set_num_threads(before);
}

TEST(VectorMath, NonFiniteValuesAreFoundWhereverTheyAre) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (int64_t n : {1, 17, 100003}) {
    std::vector<float> x = Random(n, 6);
    x[0] = std::numeric_limits<float>::max();
    EXPECT_FALSE(HasNonFinite(n, x.data()));
    for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
      for (float bad : {infinity, -infinity, std::nanf("")}) {
        const float good = x[at];
        x[at] = bad;
        EXPECT_TRUE(HasNonFinite(n, x.data())) << bad << " at " << at << " of " << n;
        x[at] = good;
      }
    }
  }
  EXPECT_FALSE(HasNonFinite(0, nullptr));
}

TEST(VectorMath, RowsAreCopiedBetweenStrides) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  std::vector<float> y(8, -1);
  CopyRows(2, 2, x.data(), 3, y.data() + 1, 4);
  EXPECT_EQ(y, (std::vector<float>{-1, 1, 2, -1, -1, 4, 5, -1}));
}

}  // namespace
}  // namespace crema
