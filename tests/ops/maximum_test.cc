#include "ops/arrays/maximum.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace crema {
namespace {

TEST(Maximum, RemembersWhereEachElementCameFrom) {
  const std::vector<float> a = {1, 2, 5, 0}, b = {1, 3, 4, 0}, c = {2, 3, 1, -1}, dy = {10, 20, 30, 40};
  std::vector<float> y(4), dx(4);
  std::vector<uint8_t> from(4);
  MaximumOfTwo(4, a.data(), b.data(), y.data(), from.data());
  MaximumWith(4, c.data(), 2, y.data(), from.data());
  EXPECT_EQ(y, (std::vector<float>{2, 3, 5, 0}));
  EXPECT_EQ(from, (std::vector<uint8_t>{2, 1, 0, 1}));
  MaximumBackward(4, dy.data(), from.data(), 1, dx.data());
  EXPECT_EQ(dx, (std::vector<float>{0, 20, 0, 40}));
}

}  // namespace
}  // namespace crema
