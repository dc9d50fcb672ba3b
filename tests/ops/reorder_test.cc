#include "ops/reorder.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cstring>

#include "base/bfloat16.h"
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

// Numbers of both types, between guards that are NaN in each.
class Numbers {
 public:
  Numbers(const Shape& shape, DType dtype, Layout layout)
      : bytes_(shape.count() * SizeOf(dtype) + 2 * kGuard, 0xFF),
        tensor_(bytes_.data() + kGuard, {shape, dtype, layout}) {}
  const Tensor& tensor() const { return tensor_; }
  bool GuardsIntact() const {
    for (size_t i = 0; i < kGuard; ++i) {
      if (bytes_[i] != 0xFF || bytes_[bytes_.size() - 1 - i] != 0xFF) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 64;
  std::vector<uint8_t> bytes_;
  Tensor tensor_;
};

TEST(ReorderImage, ConvertsBetweenTypesInAnyLayout) {
  constexpr Layout kLayouts[] = {Layout::kPlain, Layout::kChannelsLast};
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16};
  for (const Shape& shape : kShapes) {
    const auto values = RandomValues(shape.count(), 1);
    for (const Layout layout : kLayouts) {
      for (const DType dtype : kTypes) {
        const Numbers from(shape, dtype, layout);
        for (size_t i = 0; i < values.size(); ++i) {
          (dtype == DType::kF32) ? void(from.tensor().f32()[i] = values[i])
                                 : void(from.tensor().bf16()[i] = BFloat16(values[i]));
        }
        for (const Layout wanted : kLayouts) {
          for (const DType type : kTypes) {
            const Numbers to(shape, type, wanted);
            ReorderImage(from.tensor(), to.tensor());
            EXPECT_TRUE(to.GuardsIntact()) << shape.ToString();
            for (int64_t i = 0; i < shape.count(); ++i) {
              const float value = static_cast<float>(from.tensor().value(i));
              ASSERT_EQ(to.tensor().value(i), type == DType::kF32 ? value : static_cast<float>(BFloat16(value)))
                  << shape.ToString() << " element " << i << " from " << Name(dtype) << " to " << Name(type);
            }
          }
        }
      }
    }
  }
}

TEST(ReorderImage, RoundsToTheNearestEvenBFloat16InAnyLayout) {
  const uint32_t given[] = {0x3F808000, 0x3F818000, 0x3F808001, 0x3F807FFF, 0x7F7FFFFF, 0x80000001,
                            0x7F800000, 0xFF800000, 0x7F800001, 0xFFFFFFFF, 0x00008000, 0x00018000,
                            0xBF808000, 0xBF818000, 0x00000000, 0x80000000};
  const uint16_t expected[] = {0x3F80, 0x3F82, 0x3F81, 0x3F80, 0x7F80, 0x8000, 0x7F80, 0xFF80,
                               0x7FC0, 0xFFFF, 0x0000, 0x0002, 0xBF80, 0xBF82, 0x0000, 0x8000};
  for (const Layout layout : {Layout::kPlain, Layout::kChannelsLast}) {
    const Shape shape{1, 64, 4, 4};
    const Numbers from(shape, DType::kF32, Layout::kPlain), to(shape, DType::kBF16, layout);
    for (int64_t i = 0; i < shape.count(); ++i) std::memcpy(from.tensor().f32() + i, &given[i % 16], 4);
    ReorderImage(from.tensor(), to.tensor());
    for (int64_t i = 0; i < shape.count(); ++i) {
      const int64_t at = layout == Layout::kPlain ? i : i % 16 * 64 + i / 16;
      ASSERT_EQ(to.tensor().bf16()[at].bits, expected[i % 16]) << std::hex << given[i % 16];
    }
  }
}

// What the scheduler copies need not be an image.
TEST(ReorderImage, CopiesAnyShapeWithinOneLayout) {
  const Shape shape{7, 11};
  const auto values = RandomValues(shape.count(), 1);
  EXPECT_EQ(Reordered(shape, values, Layout::kPlain, Layout::kPlain), values);
}

}  // namespace
}  // namespace crema
