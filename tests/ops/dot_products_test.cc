#include "ops/matrices/dot_products.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "comparison.h"
#include "ops/matrices/gemm.h"

namespace crema {
namespace {

TEST(DotProducts, AreTheProduct) {
  // Rows and columns of every tile and beside it, depths on both sides of a vector and of a part.
  for (const int64_t m : {1, 2, 3, 4, 5, 6, 7, 13}) {
    for (const int64_t n : {1, 2, 3, 4, 5, 66}) {
      for (const int64_t k : {1, 3, 4, 8, 16, 33, 1024, 1025, 2600}) {
        for (const bool add : {false, true}) {
          const auto a = RandomValues(m * k, 1), b = RandomValues(k * n, 2);
          std::vector<float> expected = RandomValues(m * n, 3), actual = add ? expected : Poison(m * n);
          GemmReference(false, true, m, n, k, 1, a.data(), b.data(), add ? 1.0f : 0.0f, expected.data());
          DotProducts(m, n, k, a.data(), k, b.data(), k, add, actual.data(), n);
          ExpectClose(expected, actual, 1e-5f,
                      std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
        }
      }
    }
  }
}

TEST(DotProducts, KeepToTheirRows) {
  const int64_t m = 7, n = 9, k = 21;
  const auto a = RandomValues(m * (k + 3), 1), b = RandomValues(n * (k + 5), 2);
  std::vector<float> c(m * (n + 2), 7.0f);
  DotProducts(m, n, k, a.data(), k + 3, b.data(), k + 5, false, c.data(), n + 2);
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double expected = 0;
      for (int64_t l = 0; l < k; ++l) expected += static_cast<double>(a[row * (k + 3) + l]) * b[column * (k + 5) + l];
      EXPECT_NEAR(c[row * (n + 2) + column], expected, 1e-4);
    }
    EXPECT_EQ(c[row * (n + 2) + n], 7.0f);
    EXPECT_EQ(c[row * (n + 2) + n + 1], 7.0f);
  }
}

TEST(DotProducts, OfNothingAreZero) {
  auto c = Poison(6);
  DotProducts(2, 3, 0, nullptr, 0, nullptr, 0, false, c.data(), 3);
  EXPECT_EQ(c, std::vector<float>(6, 0.0f));
  DotProducts(2, 3, 0, nullptr, 0, nullptr, 0, true, c.data(), 3);
  EXPECT_EQ(c, std::vector<float>(6, 0.0f));
}

TEST(DotProducts, ThreadsAndOtherRowsDoNotChangeBits) {
  const int64_t m = 14, n = 203, k = 1100;
  const auto a = RandomValues(m * k, 1), b = RandomValues(n * k, 2);
  std::vector<float> together(m * n), alone(m * n), shared(m * n);
  DotProducts(m, n, k, a.data(), k, b.data(), k, false, together.data(), n);
  for (int64_t row = 0; row < m; ++row) {
    DotProducts(1, n, k, a.data() + row * k, k, b.data(), k, false, alone.data() + row * n, n);
  }
  EXPECT_EQ(together, alone);
  const int before = omp_get_max_threads();
  for (const int threads : {1, 3, 64}) {
    omp_set_num_threads(threads);
    DotProducts(m, n, k, a.data(), k, b.data(), k, false, shared.data(), n);
    EXPECT_EQ(together, shared) << threads;
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace crema
