// Gradients of images that were resized, where some are infinite: what has no weight gets nothing of them.
#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <vector>

#include "ops/sampling/interpolation.h"
#include "ops/sampling/resampling.h"

namespace crema {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(ResizedGradients, OfInterpolation) {
  const Interpolation problem = {
      .height = 3, .width = 3, .part_height = 3, .part_width = 3, .result_height = 5, .result_width = 5};
  std::vector<float> dy(25), dx(9);
  dy[12] = kInfinity;  // on the middle
  InterpolationBackward(problem, dy.data(), dx.data());
  EXPECT_EQ(dx, (std::vector<float>{0, 0, 0, 0, kInfinity, 0, 0, 0, 0}));
}

TEST(ResizedGradients, OfResampling) {
  for (const int64_t factor : {1, 3}) {
    const Resampling::Axis columns = ResamplingBetweenEdges(Resampling::Filter::kLinear, false, 10, 10 * factor);
    const Resampling problem = {.columns = columns, .filter = Resampling::Filter::kLinear};
    std::vector<float> dy(static_cast<size_t>(10 * factor)), dx(10), expected(10);
    std::vector<std::byte> workspace(ResamplingWorkspace(problem));
    dy[static_cast<size_t>(4 * factor + factor / 2)] = kInfinity;  // on element 4
    expected[4] = kInfinity;
    ResamplingBackward(problem, dy.data(), dx.data(), workspace.data());
    EXPECT_EQ(dx, expected) << factor;
  }
}

}  // namespace
}  // namespace crema
