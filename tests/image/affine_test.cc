#include "image/affine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "image/reference.h"

namespace crema {
namespace {

using testing::Interpolated;
using testing::Noise;
using testing::PointOf;
using testing::Turn;

// Pixels that are not covered hold 77.
struct Result {
  Image image, nearest;
  std::vector<PixelRun> runs;

  bool Covers(int v, int u) const { return u >= runs[v].first && u < runs[v].first + runs[v].count; }
};

Result Apply(const Image& from, const Turn& turn) {
  Result result;
  const AffineMap map =
      TurnedMap({from.height, from.width}, turn.resized, turn.degrees, turn.part, turn.height, turn.width);
  FindCovered(map, {from.height, from.width}, turn.height, turn.width, &result.runs);
  EXPECT_EQ(result.runs.size(), static_cast<size_t>(turn.height));
  result.image.pixels.assign(static_cast<size_t>(turn.height) * turn.width * from.channels, 77);
  result.nearest.pixels = result.image.pixels;
  SampleBilinear(from, map, result.runs, turn.width, &result.image);
  SampleNearest(from, map, result.runs, turn.width, &result.nearest);
  EXPECT_EQ(result.image.pixels.size(), static_cast<size_t>(turn.height) * turn.width * from.channels);
  return result;
}

TEST(Affine, QuartersAreExact) {
  for (const int side : {1, 2, 7, 32}) {
    for (const int channels : {1, 2, 3}) {
      const Image from = Noise(side, side, channels);
      for (const int quarter : {-2, -1, 0, 1, 2}) {
        const Result result = Apply(from, {{side, side}, quarter * 90.0, {0, 0, side, side}, side, side});
        for (int v = 0; v < side; ++v) {
          ASSERT_EQ(result.runs[v], (PixelRun{0, side}));
          for (int u = 0; u < side; ++u) {
            // Counterclockwise: what is at the right comes to the top.
            const int row = quarter == 0 ? v : quarter == 1 ? u : quarter == -1 ? side - 1 - u : side - 1 - v;
            const int column = quarter == 0 ? u : quarter == 1 ? side - 1 - v : quarter == -1 ? v : side - 1 - u;
            for (int c = 0; c < channels; ++c) {
              ASSERT_EQ(result.image.row(v)[u * channels + c], from.row(row)[column * channels + c]);
              ASSERT_EQ(result.nearest.row(v)[u * channels + c], from.row(row)[column * channels + c]);
            }
          }
        }
      }
    }
  }
}

TEST(Affine, EqualsInterpolationInDoublePrecision) {
  const std::vector<Turn> turns = {{{37, 53}, 7, {0, 0, 37, 53}, 37, 53},      // all of it
                                   {{37, 53}, -33, {5, 9, 20, 30}, 20, 30},    // a part
                                   {{37, 53}, 180, {-3, -4, 43, 61}, 43, 61},  // with a border
                                   {{37, 53}, 61, {2, 30, 30, 20}, 45, 16},    // resized behind
                                   {{80, 20}, -15, {10, 0, 20, 20}, 20, 20},   // and before
                                   {{37, 53}, 90, {0, 0, 37, 53}, 37, 53},    {{5, 7}, 12, {0, 0, 5, 7}, 5, 7},
                                   {{37, 53}, 20, {200, 200, 9, 9}, 9, 9}};  // outside
  for (const int channels : {1, 2, 3}) {
    const Image from = Noise(37, 53, channels);
    for (const Turn& turn : turns) {
      SCOPED_TRACE(std::to_string(turn.degrees) + " degrees, " + std::to_string(channels) + " channels");
      const Result result = Apply(from, turn);
      int covered = 0;
      for (int v = 0; v < turn.height; ++v) {
        for (int u = 0; u < turn.width; ++u) {
          const testing::TurnedPoint point = PointOf(from, turn, v, u);
          covered += result.Covers(v, u);
          if (std::abs(point.inside) > 1e-4) {
            ASSERT_EQ(result.Covers(v, u), point.inside > 0) << v << "," << u;
          }
          for (int c = 0; c < channels; ++c) {
            const uint8_t pixel = result.image.row(v)[u * channels + c];
            const uint8_t nearest = result.nearest.row(v)[u * channels + c];
            if (!result.Covers(v, u)) {
              ASSERT_EQ(pixel, 77);
              ASSERT_EQ(nearest, 77);
              continue;
            }
            ASSERT_NEAR(pixel, Interpolated(from, point, c), 0.65) << v << "," << u;
            // At the border between two pixels it may be either.
            if (point.from_border() < 1e-4) continue;
            ASSERT_EQ(nearest, from.row(static_cast<int>(point.y))[static_cast<int>(point.x) * channels + c]);
          }
        }
      }
      EXPECT_EQ(covered == 0, turn.part.top == 200);
    }
  }
}

TEST(Affine, CoversExactlyWhatComesFromWithin) {
  const RandomStream random(8, 1);
  uint64_t number = 0;
  const auto draw = [&](int low, int high) {
    return low + static_cast<int>(random.Below(number++, static_cast<uint64_t>(high - low + 1)));
  };
  constexpr int64_t kPixel = 1 << 24;
  std::vector<PixelRun> runs;
  int64_t covered = 0;
  for (int round = 0; round < 2000; ++round) {
    const ImageExtent extent{draw(1, 9), draw(1, 9)};
    // Steps of none and of exact pixels are frequent, points on the border, too.
    const auto step = [&] { return draw(0, 2) == 0 ? draw(-1, 1) * kPixel : int64_t{draw(-3 << 24, 3 << 24)}; };
    const auto place = [&] { return draw(0, 2) == 0 ? draw(-2, 10) * kPixel : int64_t{draw(-2 << 24, 10 << 24)}; };
    const AffineMap map{place(), place(), step(), step(), step(), step()};
    const int height = draw(1, 6), width = draw(1, 12);
    FindCovered(map, extent, height, width, &runs);
    for (int v = 0; v < height; ++v) {
      for (int u = 0; u < width; ++u) {
        const int64_t x = map.x + u * map.x_column + v * map.x_row, y = map.y + u * map.y_column + v * map.y_row;
        const bool within = x >= 0 && y >= 0 && x < extent.width * kPixel && y < extent.height * kPixel;
        ASSERT_EQ(u >= runs[v].first && u < runs[v].first + runs[v].count, within) << "round " << round;
        covered += within;
      }
      ASSERT_GE(runs[v].first, 0);
      ASSERT_GE(runs[v].count, 0);
      ASSERT_LE(runs[v].first + runs[v].count, width);
    }
  }
  EXPECT_GT(covered, 1000);
}

// A smaller image shows the same.
TEST(Affine, ReducedMapsShowTheSame) {
  Image large, small;
  large.Resize(80, 96, 1);
  small.Resize(10, 12, 1);
  for (int y = 0; y < 80; ++y) {
    for (int x = 0; x < 96; ++x) large.row(y)[x] = static_cast<uint8_t>(x + y);
  }
  // The means of 8 x 8 pixels.
  for (int y = 0; y < 10; ++y) {
    for (int x = 0; x < 12; ++x) small.row(y)[x] = static_cast<uint8_t>(8 * x + 8 * y + 7);
  }
  const AffineMap map = TurnedMap({80, 96}, {80, 96}, 25, {20, 24, 40, 48}, 16, 16);
  std::vector<PixelRun> runs;
  FindCovered(map, {80, 96}, 16, 16, &runs);
  Image from_large, from_small;
  SampleBilinear(large, map, runs, 16, &from_large);
  SampleBilinear(small, map.Reduced(8), runs, 16, &from_small);
  for (size_t i = 0; i < 256; ++i) ASSERT_NEAR(from_large.pixels[i], from_small.pixels[i], 1);
}

// A row beneath comes from further right; the first row and column from where they are, but for half a pixel.
TEST(Affine, ShearsAboutTheCorner) {
  const Image from = Noise(8, 9, 1);
  for (const bool by_row : {true, false}) {
    const AffineMap map = by_row ? ShearedMap(0.25, 0) : ShearedMap(0, 0.25);
    Image to;
    std::vector<PixelRun> runs;
    FindCovered(map, {8, 9}, 8, 9, &runs);
    SampleBilinear(from, map, runs, 9, &to);
    for (int v = 0; v < 8; ++v) {
      for (int u = 0; u < 9; ++u) {
        const double x = u + 0.5 + (by_row ? 0.25 * (v + 0.5) : 0), y = v + 0.5 + (by_row ? 0 : 0.25 * (u + 0.5));
        const bool inside = x < 9 && y < 8;
        ASSERT_EQ(inside, u >= runs[v].first && u < runs[v].first + runs[v].count);
        if (!inside) continue;
        ASSERT_NEAR(to.row(v)[u], Interpolated(from, {0, 0, 8, 9}, y - 0.5, x - 0.5, 0), 0.7);
      }
    }
  }
}

TEST(Affine, ShiftsByWholePixels) {
  const Image from = Noise(8, 9, 3);
  for (const auto& [right, down] : {std::pair(0, 0), {2, 0}, {-3, 1}, {8, -7}, {9, 0}, {0, 8}, {-100, 100}}) {
    const AffineMap map = ShiftedMap(right, down);
    Image to;
    std::vector<PixelRun> runs;
    FindCovered(map, {8, 9}, 8, 9, &runs);
    SampleBilinear(from, map, runs, 9, &to);
    for (int v = 0; v < 8; ++v) {
      for (int u = 0; u < 9; ++u) {
        const bool inside = u - right >= 0 && u - right < 9 && v - down >= 0 && v - down < 8;
        ASSERT_EQ(inside, u >= runs[v].first && u < runs[v].first + runs[v].count);
        for (int c = 0; c < 3 && inside; ++c) {
          ASSERT_EQ(to.row(v)[3 * u + c], from.row(v - down)[3 * (u - right) + c]);
        }
      }
    }
  }
}

TEST(Affine, WhatDoesNotCountIsCutOff) {
  const std::vector<PixelRun> covered = {{}, {2, 3}, {0, 5}, {4, 1}};
  std::vector<PixelRun> runs;
  const AffineMap stays = ShiftedMap(0, 0), moves = ShiftedMap(1, 1);
  FindCovered(stays, {4, 5}, 4, 5, &runs);
  CutUncovered(stays, covered, &runs);
  for (size_t v = 0; v < 4; ++v) {
    EXPECT_EQ(runs[v].count, covered[v].count);
    if (runs[v].count > 0) {
      EXPECT_EQ(runs[v].first, covered[v].first);
    }
  }
  FindCovered(moves, {4, 5}, 4, 5, &runs);
  CutUncovered(moves, covered, &runs);
  EXPECT_EQ(runs[0].count, 0);
  EXPECT_EQ(runs[1].count, 0);
  EXPECT_EQ(runs[2], (PixelRun{3, 2}));
  EXPECT_EQ(runs[3], (PixelRun{1, 4}));
}

}  // namespace
}  // namespace crema
