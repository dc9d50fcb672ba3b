#include "ops/matrices/packed_product.h"

#include <gtest/gtest.h>

#include <string>

#include "comparison.h"
#include "ops/matrices/gemm.h"

namespace crema {
namespace {

TEST(PackedProduct, IsTheProduct) {
  for (const int64_t rows : {1, 2, 5, 6, 7, 11, 12, 13, 25}) {
    for (const int64_t n : {1, 15, 16, 17, 50}) {
      for (const int64_t k : {1, 2, 33}) {
        for (const bool transpose : {false, true}) {
          for (const bool add : {false, true}) {
            const auto a = RandomValues(rows * k, 1), b = RandomValues(k * n, 2);
            std::vector<float> expected = RandomValues(rows * n, 3), packed = Poison(PackedFloats(k, n));
            std::vector<float> actual = add ? expected : Poison(rows * n);
            GemmReference(false, transpose, rows, n, k, 1, a.data(), b.data(), add ? 1.0f : 0.0f, expected.data());
            PackMatrix(transpose, k, n, b.data(), packed.data());
            PackedProduct(rows, n, k, a.data(), packed.data(), add, actual.data());
            const std::string sizes = std::to_string(rows) + " x " + std::to_string(n) + " x " + std::to_string(k);
            ExpectClose(expected, actual, 1e-5f, sizes);

            const int64_t step = rows + 3;
            std::vector<float> transposed = Poison(step * k),
                               again = add ? RandomValues(rows * n, 3) : Poison(rows * n);
            for (int64_t row = 0; row < rows; ++row) {
              for (int64_t l = 0; l < k; ++l) transposed[l * step + row] = a[row * k + l];
            }
            TransposedPackedProduct(rows, n, k, transposed.data(), step, packed.data(), add, again.data());
            EXPECT_EQ(actual, again) << sizes;
          }
        }
      }
    }
  }
}

TEST(PackedProduct, ARowDoesNotDependOnTheOthers) {
  const int64_t rows = 13, n = 37, k = 29;
  const auto a = RandomValues(rows * k, 1), b = RandomValues(k * n, 2);
  std::vector<float> packed(PackedFloats(k, n)), together(rows * n), alone(rows * n);
  PackMatrix(false, k, n, b.data(), packed.data());
  PackedProduct(rows, n, k, a.data(), packed.data(), false, together.data());
  for (int64_t row = 0; row < rows; ++row) {
    PackedProduct(1, n, k, a.data() + row * k, packed.data(), false, alone.data() + row * n);
  }
  EXPECT_EQ(together, alone);
}

}  // namespace
}  // namespace crema
