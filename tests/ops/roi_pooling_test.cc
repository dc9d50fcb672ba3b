#include "ops/sampling/roi_pooling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>

#include "comparison.h"

namespace crema {
namespace {

// Fast R-CNN's loops.
void PlainForward(const RoiPoolingProblem& p, const std::vector<float>& x, const std::vector<float>& regions,
                  std::vector<float>* y, std::vector<int32_t>* from) {
  for (int64_t n = 0; n < p.regions; ++n) {
    int corner[5];
    for (int i = 0; i < 5; ++i) corner[i] = static_cast<int>(std::round(regions[n * 5 + i] * (i > 0 ? p.scale : 1)));
    const int high = std::max(corner[4] - corner[2] + 1, 1), wide = std::max(corner[3] - corner[1] + 1, 1);
    const float cell_height = static_cast<float>(high) / static_cast<float>(p.pooled_height);
    const float cell_width = static_cast<float>(wide) / static_cast<float>(p.pooled_width);
    const auto clip = [](float at, int begin, int64_t extent) {
      return std::clamp<int64_t>(static_cast<int>(at) + begin, 0, extent);
    };
    for (int64_t c = 0; c < p.channels; ++c) {
      const float* plane = &x[(corner[0] * p.channels + c) * p.height * p.width];
      for (int64_t cell = 0; cell < p.pooled_height * p.pooled_width; ++cell) {
        const auto down = static_cast<float>(cell / p.pooled_width);
        const auto across = static_cast<float>(cell % p.pooled_width);
        const int64_t top = clip(std::floor(down * cell_height), corner[2], p.height);
        const int64_t bottom = clip(std::ceil((down + 1) * cell_height), corner[2], p.height);
        const int64_t left = clip(std::floor(across * cell_width), corner[1], p.width);
        const int64_t right = clip(std::ceil((across + 1) * cell_width), corner[1], p.width);
        float best = top < bottom && left < right ? -FLT_MAX : 0.0f;
        int32_t best_from = -1;
        for (int64_t i = top; i < bottom; ++i) {
          for (int64_t j = left; j < right; ++j) {
            if (plane[i * p.width + j] <= best) continue;
            best = plane[i * p.width + j];
            best_from = static_cast<int32_t>(i * p.width + j);
          }
        }
        y->push_back(best);
        from->push_back(best_from);
      }
    }
  }
}

TEST(RoiPooling, IsFastRcnns) {
  for (const RoiPoolingProblem& p :
       {RoiPoolingProblem{2, 3, 13, 17, 40, 7, 7, 0.0625f}, RoiPoolingProblem{1, 2, 5, 900, 20, 3, 2, 1.0f},
        RoiPoolingProblem{3, 1, 30, 4, 30, 11, 5, 0.3f}}) {
    const std::vector<float> random = RandomValues(p.regions * 5, 1);
    std::vector<float> regions(random.size());
    for (size_t i = 0; i < regions.size(); ++i) {
      const float share = (random[i] + 1) / 2;  // of the images, and some way past their borders
      const auto extent = static_cast<float>(i % 5 == 0 ? p.images : i % 5 % 2 == 1 ? p.width : p.height);
      regions[i] = i % 5 == 0 ? std::min(std::floor(share * extent), extent - 1)
                              : std::floor((share * 1.4f - 0.2f) * extent / p.scale);
    }
    std::vector<float> x = RandomValues(p.images * p.channels * p.height * p.width, 2);
    for (float& value : x) value = std::round(value * 50);  // many are equal
    std::vector<float> expected, y(p.outputs());
    std::vector<int32_t> expected_from, from(p.outputs());
    PlainForward(p, x, regions, &expected, &expected_from);
    EXPECT_EQ(FindBadRegion(p, regions.data()), -1);
    RoiPoolingForward(p, x.data(), regions.data(), y.data(), from.data());
    EXPECT_EQ(y, expected);
    EXPECT_EQ(from, expected_from);
    std::fill(y.begin(), y.end(), 7.0f);
    RoiPoolingForward(p, x.data(), regions.data(), y.data(), nullptr);
    EXPECT_EQ(y, expected);

    const std::vector<float> dy = RandomValues(p.outputs(), 3);
    std::vector<float> expected_dx(x.size()), dx(x.size(), 7.0f);
    for (int64_t i = 0; i < p.outputs(); ++i) {
      const int64_t plane = i / (p.pooled_height * p.pooled_width), region = plane / p.channels;
      const auto image = static_cast<int64_t>(regions[region * 5]);
      if (from[i] < 0) continue;
      expected_dx[(image * p.channels + plane % p.channels) * p.height * p.width + from[i]] += dy[i];
    }
    RoiPoolingBackward(p, regions.data(), from.data(), dy.data(), dx.data());
    EXPECT_EQ(dx, expected_dx);
  }
}

TEST(RoiPooling, FindsWhatNoRegionCanBe) {
  const RoiPoolingProblem p{2, 1, 4, 4, 2, 1, 1, 1.0f};
  const std::vector<float> good = {0, 0, 0, 1, 1, 1.5f, -3, 0, 99, 1};
  const auto with = [&](size_t at, float value) {
    std::vector<float> regions = good;
    regions[at] = value;
    return FindBadRegion(p, regions.data());
  };
  EXPECT_EQ(FindBadRegion(p, good.data()), -1);
  EXPECT_EQ(with(5, 2), 5);
  EXPECT_EQ(with(0, -1), -1);  // no region
  EXPECT_EQ(with(0, -2), 0);
  EXPECT_EQ(with(5, NAN), 5);
  EXPECT_EQ(with(8, INFINITY), 8);
  EXPECT_EQ(with(2, 1e30f), -1);
}

}  // namespace
}  // namespace crema
