#include "ops/sampling/roi_align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <vector>

#include "comparison.h"

namespace crema {
namespace {

// Calls with(output, element of x, weight) for all that counts, point by point in double, as Detectron's loops do.
template <typename With>
void ForEachPart(const RoiAlignProblem& problem, const std::vector<float>& regions, const With& with) {
  const RoiPoolingProblem& p = problem.grid;
  struct Axis {
    double begin, cell;
    int points;
    int64_t extent;
    Axis(double first, double last, int64_t cells, int wanted, int64_t image)
        : begin(first), cell(std::max(last - first, 1.0) / static_cast<double>(cells)), extent(image) {
      points = wanted > 0 ? wanted : static_cast<int>(std::ceil(cell));
    }
    // At most two elements with their shares.
    std::vector<std::pair<int64_t, double>> At(int64_t i, int point) const {
      const double at = begin + static_cast<double>(i) * cell + (point + 0.5) * cell / points;
      if (at < -1 || at > static_cast<double>(extent)) return {};
      const double near = std::clamp(at, 0.0, static_cast<double>(extent - 1));
      const auto low = static_cast<int64_t>(near);
      const double beyond = near - static_cast<double>(low);
      return {{low, 1 - beyond}, {std::min(low + 1, extent - 1), beyond}};
    }
  };
  for (int64_t n = 0; n < p.regions; ++n) {
    const float* const region = &regions[n * 5];
    const auto corner = [&](int i) { return double{region[i]} * p.scale; };
    const Axis rows(corner(2), corner(4), p.pooled_height, problem.points, p.height);
    const Axis columns(corner(1), corner(3), p.pooled_width, problem.points, p.width);
    for (int64_t c = 0; c < p.channels; ++c) {
      const int64_t plane = static_cast<int64_t>(region[0]) * p.channels + c;
      for (int64_t cell = 0; cell < p.pooled_height * p.pooled_width; ++cell) {
        for (int i = 0; i < rows.points; ++i) {
          for (int k = 0; k < columns.points; ++k) {
            for (const auto& [row, down] : rows.At(cell / p.pooled_width, i)) {
              for (const auto& [column, across] : columns.At(cell % p.pooled_width, k)) {
                with((n * p.channels + c) * p.pooled_height * p.pooled_width + cell,
                     (plane * p.height + row) * p.width + column, down * across / (rows.points * columns.points));
              }
            }
          }
        }
      }
    }
  }
}

void ExpectNear(const std::vector<float>& values, const std::vector<double>& expected, double scale) {
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], expected[i], 3e-5 * scale) << i;
}

TEST(RoiAlign, IsDetectrons) {
  for (const RoiAlignProblem& problem : {
           RoiAlignProblem{{2, 3, 13, 17, 40, 7, 7, 0.0625f}, 0},
           RoiAlignProblem{{2, 3, 13, 17, 40, 7, 7, 0.0625f}, 2},
           RoiAlignProblem{{1, 2, 5, 900, 20, 3, 2, 1.0f}, 0},   // more points than are worked on at a time
           RoiAlignProblem{{1, 2, 5, 900, 20, 3, 40, 1.0f}, 3},  // farther apart
           RoiAlignProblem{{1, 1, 9, 9, 20, 1, 1, 0.5f}, 64},    // many of a pixel
           RoiAlignProblem{{3, 1, 1, 1, 30, 11, 5, 0.3f}, 0},
       }) {
    const RoiPoolingProblem& p = problem.grid;
    const std::vector<float> random = RandomValues(p.regions * 5, 1);
    std::vector<float> regions(random.size());
    for (size_t i = 0; i < regions.size(); ++i) {
      const float share = (random[i] + 1) / 2;  // of the images, and some way past their borders
      const auto extent = static_cast<float>(i % 5 == 0 ? p.images : i % 5 % 2 == 1 ? p.width : p.height);
      regions[i] =
          i % 5 == 0 ? std::min(std::floor(share * extent), extent - 1) : (share * 1.4f - 0.2f) * extent / p.scale;
    }
    const std::vector<float> x = RandomValues(p.images * p.channels * p.height * p.width, 2);
    const std::vector<float> dy = RandomValues(p.outputs(), 3);
    std::vector<double> expected(p.outputs()), expected_dx(x.size());
    ForEachPart(problem, regions, [&](int64_t output, int64_t element, double weight) {
      expected[output] += weight * x[element];
      expected_dx[element] += weight * dy[output];
    });
    std::vector<float> y(p.outputs(), 7.0f), dx(x.size(), 7.0f);
    RoiAlignForward(problem, x.data(), regions.data(), y.data());
    // A place far from the first column is known less exactly.
    const double scale = p.width > 100 ? 10 : 1;
    ExpectNear(y, expected, scale);
    RoiAlignBackward(problem, regions.data(), dy.data(), dx.data());
    ExpectNear(dx, expected_dx, p.height * p.width == 1 ? 30 : 3 * scale);
  }
}

TEST(RoiAlign, EndsWithAnyCorners) {
  const std::vector<float> far = {-FLT_MAX, -1e30f, -1e9f, -3e4f, 0, 3e4f, 1e9f, 1e30f, FLT_MAX};
  std::vector<float> regions;
  for (const float first : far) {
    for (const float last : far) regions.insert(regions.end(), {0, first, first / 2, last, last});
  }
  const std::vector<float> x(2 * 5 * 6, 1.0f);
  for (const int points : {0, 1, 64}) {
    const RoiAlignProblem problem{{1, 2, 5, 6, static_cast<int64_t>(regions.size()) / 5, 7, 3, 4.0f}, points};
    std::vector<float> y(problem.grid.outputs()), dx(x.size());
    RoiAlignForward(problem, x.data(), regions.data(), y.data());
    for (const float value : y) ASSERT_TRUE(value >= 0 && value <= 1.001f) << value;
    RoiAlignBackward(problem, regions.data(), y.data(), dx.data());
    for (const float value : dx) ASSERT_TRUE(std::isfinite(value));
  }
}

}  // namespace
}  // namespace crema
