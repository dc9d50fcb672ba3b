#include "ops/arrays/axis_permutation.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <numeric>

#include "base/bfloat16.h"
#include "comparison.h"

namespace crema {
namespace {

std::vector<float> Permuted(const Shape& shape, const std::vector<int>& order, const std::vector<float>& values) {
  std::vector<float> source = values, result = Poison(static_cast<int64_t>(values.size()) + 2);
  const Shape flat{static_cast<int64_t>(values.size())};
  PermuteAxes(AxisPermutation(shape.dims(), order), Tensor(source.data(), {flat}), Tensor(result.data() + 1, {flat}));
  EXPECT_EQ(source, values) << shape.ToString();
  EXPECT_TRUE(std::isnan(result.front()) && std::isnan(result.back())) << "wrote outside " << shape.ToString();
  return {result.begin() + 1, result.end() - 1};
}

// Element by element.
std::vector<float> Expected(const Shape& shape, const std::vector<int>& order, const std::vector<float>& values) {
  std::vector<float> result;
  for (int64_t i = 0; i < shape.count(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t axis = order.size(); axis-- > 0;) {
      const int from = order[axis];
      at += rest % shape[from] * shape.count(from + 1);
      rest /= shape[from];
    }
    result.push_back(values[at]);
  }
  return result;
}

TEST(AxisPermutation, PutsEveryElementWhereItsAxesGo) {
  const Shape shapes[] = {{5},          {3, 7},          {2, 3, 4},        {1, 5, 1, 3},   {2, 2, 2, 2},
                          {3, 1, 4, 5}, {2, 3, 33, 20},  {17, 2, 3, 40},   {40, 3, 2, 17}, {2, 65, 3, 1, 34},
                          {0, 3, 2},    {3, 2, 4, 3, 2}, {20, 20, 20},     {2, 300, 3},    {3, 1, 1, 2100},
                          {2, 5, 261},  {261, 5, 2},     {33, 1, 4, 5, 21}};
  const int before = omp_get_max_threads();
  for (const Shape& shape : shapes) {
    const auto values = RandomValues(shape.count(), 1);
    std::vector<int> order(shape.axes());
    std::iota(order.begin(), order.end(), 0);
    do {
      for (const int threads : {1, 3}) {
        omp_set_num_threads(threads);
        ASSERT_EQ(Permuted(shape, order, values), Expected(shape, order, values))
            << shape.ToString() << " to " << testing::PrintToString(order) << " on " << threads << " threads";
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
  omp_set_num_threads(before);
}

TEST(AxisPermutation, MergesAxesThatStayTogether) {
  const auto axes = [](const Shape& shape, const std::vector<int>& order) {
    return AxisPermutation(shape.dims(), order).axes();
  };
  EXPECT_EQ(axes({2, 3, 4, 5}, {0, 1, 2, 3}), 1);
  EXPECT_EQ(axes({2, 3, 4, 5}, {0, 2, 3, 1}), 3);
  EXPECT_EQ(axes({2, 3, 4, 5}, {2, 3, 0, 1}), 2);
  EXPECT_EQ(axes({2, 3, 4, 5}, {3, 2, 1, 0}), 4);
  EXPECT_EQ(axes({2, 3, 1, 5}, {2, 0, 1, 3}), 1);
  EXPECT_EQ(axes({1, 1}, {1, 0}), 0);
}

TEST(AxisPermutation, KnowsWhatMovesNothing) {
  const auto moves_nothing = [](const Shape& shape, const std::vector<int>& order) {
    return AxisPermutation(shape.dims(), order).moves_nothing();
  };
  EXPECT_TRUE(moves_nothing({2, 3, 4}, {0, 1, 2}));
  EXPECT_TRUE(moves_nothing({2, 1, 4}, {1, 0, 2}));
  EXPECT_TRUE(moves_nothing({}, {}));
  EXPECT_FALSE(moves_nothing({2, 3, 4}, {0, 2, 1}));
  EXPECT_FALSE(moves_nothing({2, 3, 4}, {1, 0, 2}));
}

TEST(AxisPermutation, MovesBFloat16) {
  const Shape shape{3, 33, 4, 18};
  std::vector<BFloat16> source(shape.count()), result(shape.count());
  for (size_t i = 0; i < source.size(); ++i) source[i].bits = static_cast<uint16_t>(i);
  for (const std::vector<int>& order : {std::vector<int>{0, 2, 3, 1}, {2, 0, 1, 3}, {3, 1, 0, 2}}) {
    std::vector<float> numbers(source.begin(), source.end());
    PermuteAxes(AxisPermutation(shape.dims(), order), Tensor(source.data(), {shape, DType::kBF16}),
                Tensor(result.data(), {shape, DType::kBF16}));
    EXPECT_EQ(std::vector<float>(result.begin(), result.end()), Expected(shape, order, numbers));
  }
}

}  // namespace
}  // namespace crema
