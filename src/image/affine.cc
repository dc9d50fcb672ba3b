#include "image/affine.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"

namespace crema {

namespace {

constexpr int kBits = 24, kWeightBits = 11;
constexpr int64_t kPixel = int64_t{1} << kBits;
constexpr int kOne = 1 << kWeightBits;

int64_t FixedPoint(double pixels) { return std::llrint(pixels * static_cast<double>(kPixel)); }

int64_t DividedUp(int64_t a, int64_t positive) { return a / positive + (a % positive > 0 ? 1 : 0); }

// The u of [0, width) with 0 <= start + u * step < end.
PixelRun Within(int64_t start, int64_t step, int64_t end, int width) {
  int64_t first = 0, behind = start >= 0 && start < end ? width : 0;
  if (step > 0) {
    first = DividedUp(-start, step);
    behind = DividedUp(end - start, step);
  } else if (step < 0) {
    first = DividedUp(start - end + 1, -step);
    behind = DividedUp(start + 1, -step);
  }
  first = std::clamp<int64_t>(first, 0, width);
  behind = std::clamp<int64_t>(behind, first, width);
  return {static_cast<int>(first), static_cast<int>(behind - first)};
}

// A point, and how it moves from pixel to pixel.
struct Walk {
  int64_t x, y, x_step, y_step;
};

Walk WalkOf(const AffineMap& map, int row, int column) {
  return {map.x + column * map.x_column + row * map.x_row, map.y + column * map.y_column + row * map.y_row,
          map.x_column, map.y_column};
}

// What pixels are read from; no Image, whose members bytes that are written might be, as far as compilers know.
struct Pixels {
  const uint8_t* begin;
  int64_t row_bytes;
  int last_row, last_column, channels;
};

// kChannels: of the image, or 0: as many as it has.
template <int kChannels>
void BilinearRow(const Pixels& image, Walk walk, int count, uint8_t* __restrict to) {
  const Pixels from = image;
  const int channels = kChannels > 0 ? kChannels : from.channels;
  // From pixels' borders to their centres, and to the nearest of the places that weights tell apart.
  constexpr int64_t kShift = kPixel / 2 - (int64_t{1} << (kBits - kWeightBits - 1));
  walk.x -= kShift;
  walk.y -= kShift;
  for (int i = 0; i < count; ++i, walk.x += walk.x_step, walk.y += walk.y_step) {
    const int column = static_cast<int>(walk.x >> kBits), row = static_cast<int>(walk.y >> kBits);
    const int x = static_cast<int>((walk.x >> (kBits - kWeightBits)) & (kOne - 1));
    const int y = static_cast<int>((walk.y >> (kBits - kWeightBits)) & (kOne - 1));
    const int64_t left = int64_t{std::max(column, 0)} * channels;
    const int64_t right = int64_t{std::min(column + 1, from.last_column)} * channels;
    const uint8_t* const upper = from.begin + std::max(row, 0) * from.row_bytes;
    const uint8_t* const lower = from.begin + std::min(row + 1, from.last_row) * from.row_bytes;
    for (int c = 0; c < channels; ++c) {
      const int above = upper[left + c] * kOne + (upper[right + c] - upper[left + c]) * x;
      const int below = lower[left + c] * kOne + (lower[right + c] - lower[left + c]) * x;
      *to++ = static_cast<uint8_t>((above * kOne + (below - above) * y + kOne * kOne / 2) >> (2 * kWeightBits));
    }
  }
}

template <int kChannels>
void NearestRow(const Pixels& image, Walk walk, int count, uint8_t* __restrict to) {
  const Pixels from = image;
  const int channels = kChannels > 0 ? kChannels : from.channels;
  for (int i = 0; i < count; ++i, walk.x += walk.x_step, walk.y += walk.y_step) {
    const uint8_t* const pixel = from.begin + (walk.y >> kBits) * from.row_bytes + (walk.x >> kBits) * channels;
    for (int c = 0; c < channels; ++c) *to++ = pixel[c];
  }
}

// Calls row(pixels, walk, count, to) for each run.
template <typename Row>
void Sample(const Image& from, const AffineMap& map, std::span<const PixelRun> runs, int width, Image* to,
            const Row& row) {
  CREMA_CHECK(&from != to);
  to->Resize(static_cast<int>(runs.size()), width, from.channels);
  const Pixels pixels{from.pixels.data(), static_cast<int64_t>(from.row_bytes()), from.height - 1, from.width - 1,
                      from.channels};
  for (int v = 0; v < to->height; ++v) {
    const PixelRun& run = runs[static_cast<size_t>(v)];
    row(pixels, WalkOf(map, v, run.first), run.count, to->row(v) + run.first * from.channels);
  }
}

}  // namespace

AffineMap TurnedMap(const ImageExtent& stored, const ImageExtent& resized, double degrees, const ImageArea& part,
                    int height, int width) {
  const double radians = degrees * std::numbers::pi / 180, cosine = std::cos(radians), sine = std::sin(radians);
  const double column = static_cast<double>(part.width) / width, row = static_cast<double>(part.height) / height;
  const double to_x = static_cast<double>(stored.width) / resized.width,
               to_y = static_cast<double>(stored.height) / resized.height;
  const double x = part.left + column / 2 - resized.width / 2.0, y = part.top + row / 2 - resized.height / 2.0;
  AffineMap map;
  map.x = FixedPoint((resized.width / 2.0 + cosine * x - sine * y) * to_x);
  map.y = FixedPoint((resized.height / 2.0 + sine * x + cosine * y) * to_y);
  map.x_column = FixedPoint(cosine * column * to_x);
  map.y_column = FixedPoint(sine * column * to_y);
  map.x_row = FixedPoint(-sine * row * to_x);
  map.y_row = FixedPoint(cosine * row * to_y);
  return map;
}

AffineMap ShearedMap(double by_row, double by_column) {
  AffineMap map{kPixel / 2, kPixel / 2, kPixel, FixedPoint(by_column), FixedPoint(by_row), kPixel};
  map.x += map.x_row / 2;
  map.y += map.y_column / 2;
  return map;
}

AffineMap ShiftedMap(int right, int down) {
  return {kPixel / 2 - right * kPixel, kPixel / 2 - down * kPixel, kPixel, 0, 0, kPixel};
}

void FindCovered(const AffineMap& map, const ImageExtent& extent, int height, int width, std::vector<PixelRun>* runs) {
  runs->resize(static_cast<size_t>(height));
  for (int v = 0; v < height; ++v) {
    const Walk walk = WalkOf(map, v, 0);
    const PixelRun columns = Within(walk.x, walk.x_step, extent.width * kPixel, width);
    const PixelRun rows = Within(walk.y, walk.y_step, extent.height * kPixel, width);
    const int first = std::max(columns.first, rows.first);
    const int behind = std::min(columns.first + columns.count, rows.first + rows.count);
    (*runs)[static_cast<size_t>(v)] = behind > first ? PixelRun{first, behind - first} : PixelRun{};
  }
}

void CutUncovered(const AffineMap& map, std::span<const PixelRun> covered, std::vector<PixelRun>* runs) {
  for (size_t v = 0; v < runs->size(); ++v) {
    PixelRun& run = (*runs)[v];
    const auto counts = [&](int column) {
      const Walk walk = WalkOf(map, static_cast<int>(v), column);
      const PixelRun& source = covered[static_cast<size_t>(walk.y >> kBits)];
      const int64_t x = walk.x >> kBits;
      return x >= source.first && x < source.first + source.count;
    };
    while (run.count > 0 && !counts(run.first)) ++run.first, --run.count;
    while (run.count > 0 && !counts(run.first + run.count - 1)) --run.count;
  }
}

void SampleBilinear(const Image& from, const AffineMap& map, std::span<const PixelRun> runs, int width, Image* to) {
  Sample(from, map, runs, width, to,
         from.channels == 3   ? BilinearRow<3>
         : from.channels == 1 ? BilinearRow<1>
                              : BilinearRow<0>);
}

void SampleNearest(const Image& from, const AffineMap& map, std::span<const PixelRun> runs, int width, Image* to) {
  Sample(from, map, runs, width, to, from.channels == 1 ? NearestRow<1> : NearestRow<0>);
}

}  // namespace crema
