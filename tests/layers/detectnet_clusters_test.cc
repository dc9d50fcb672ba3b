// More objects than ClusterDetections has rows for.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ops/detection/detectnet_boxes.h"

namespace crema {
namespace {

// A grid whose cells tell of 60 objects, far from each other; object i by 2 cells, every tenth by 3.
TEST(DetectNetClusters, KeepThoseOfMostBoxes) {
  constexpr int64_t kObjects = 60, kCells = kObjects * 3;
  DetectNetGrid grid;
  grid.images = 1;
  grid.height = grid.rows = 1;
  grid.width = grid.columns = kCells;
  grid.stride = 16;
  grid.objects = 50;
  std::vector<float> coverage(kCells, 0), boxes(4 * kCells, 0);
  for (int64_t cell = 0; cell < kCells; ++cell) {
    const int64_t object = cell / 3;
    if (cell % 3 == 2 && object % 10 != 9) continue;
    coverage[cell] = 1;
    const auto left = static_cast<float>(100 * object - 16 * cell);
    boxes[cell] = left;
    boxes[2 * kCells + cell] = left + 40;
    boxes[3 * kCells + cell] = 30;
  }
  DetectNetGrouping grouping;
  grouping.coverage = 0.5f;
  grouping.least = 1;
  grouping.similarity = 0.1f;
  std::vector<float> objects(50 * DetectNetGrid::kNumbers, -1);
  std::vector<std::byte> workspace(DetectNetGroupWorkspace(grid));
  GroupDetectNetBoxes(grid, grouping, coverage.data(), boxes.data(), objects.data(), workspace.data());
  // The six of three boxes, and the first 44 of the others, in the order of the grid.
  int64_t row = 0;
  for (int64_t object = 0; object < kObjects; ++object) {
    const bool large = object % 10 == 9;
    if (!large && object - object / 10 >= 44) continue;
    ASSERT_LT(row, 50);
    const float* numbers = objects.data() + row++ * DetectNetGrid::kNumbers;
    EXPECT_EQ(numbers[0], 100.0f * object) << row;
    EXPECT_EQ(numbers[2], 100.0f * object + 40) << row;
    EXPECT_FLOAT_EQ(numbers[4], std::log(large ? 3.0f : 2.0f)) << row;
  }
  EXPECT_EQ(row, 50);
}

}  // namespace
}  // namespace crema
