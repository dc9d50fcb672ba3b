#include "ops/reorder.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "comparison.h"

namespace crema {
namespace {

const Shape kShapes[] = {{2, 3, 4, 5},     {1, 1, 7, 3},   {3, 5, 1, 1},   {2, 20, 24, 24}, {1, 50, 8, 8},
                         {2, 64, 14, 14},  {1, 512, 7, 7}, {4, 256, 6, 6}, {2, 3, 224, 9},  {3, 4, 33},
                         {2, 7, 3, 5, 11}, {1, 2, 513, 1}, {1, 2049, 3},   {2, 17, 61},     {0, 3, 4, 4},
                         {1, 16, 64, 64},  {2, 6, 2},      {3, 2, 2}};

std::vector<float> Reordered(const Shape& shape, const std::vector<float>& values, Layout from, Layout to) {
  std::vector<float> source = values, result = Poison(static_cast<int64_t>(values.size()) + 2);
  ReorderImage(Tensor(source.data(), {shape, DType::kF32, from}), Tensor(result.data() + 1, {shape, DType::kF32, to}));
  EXPECT_EQ(source, values) << shape.ToString();
  EXPECT_TRUE(std::isnan(result.front()) && std::isnan(result.back())) << "wrote outside " << shape.ToString();
  return {result.begin() + 1, result.end() - 1};
}

TEST(ReorderImage, PutsEveryElementWhereItsLayoutSays) {
  for (const int threads : {1, 2}) {
    const int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    for (const Shape& shape : kShapes) {
      const auto values = RandomValues(shape.count(), 1);
      auto last = Reordered(shape, values, Layout::kPlain, Layout::kChannelsLast);
      const Tensor view(last.data(), {shape, DType::kF32, Layout::kChannelsLast});
      for (int64_t i = 0; i < shape.count(); ++i) {
        ASSERT_EQ(static_cast<float>(view.value(i)), values[i]) << shape.ToString() << " element " << i;
      }
      EXPECT_EQ(Reordered(shape, last, Layout::kChannelsLast, Layout::kPlain), values) << shape.ToString();
    }
    omp_set_num_threads(before);
  }
}

TEST(ReorderImage, CopiesWithinOneLayout) {
  const Shape shape{2, 3, 4, 5};
  const auto values = RandomValues(shape.count(), 1);
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    EXPECT_EQ(Reordered(shape, values, layout, layout), values);
  }
}

}  // namespace
}  // namespace crema
