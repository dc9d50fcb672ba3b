// Images under affine maps: turned, resized and cut out in one step.
#ifndef CREMA_IMAGE_AFFINE_H_
#define CREMA_IMAGE_AFFINE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "image/image.h"
#include "image/resize.h"

namespace crema {

// Where the pixels of a result come from: the centre of that in column u and row v from the point (x + u * x_column + v
// * x_row, y + u * y_column + v * y_row) of an image, whose pixel i reaches from i to i + 1. Fixed-point numbers with
// 24 bits behind the point, so that results are the same bits on every CPU; points may be 2^38 pixels away.
struct AffineMap {
  int64_t x = 0, y = 0, x_column = 0, y_column = 0, x_row = 0, y_row = 0;

  // The same of the image that was made smaller by this factor.
  AffineMap Reduced(int factor) const {
    return {x / factor, y / factor, x_column / factor, y_column / factor, x_row / factor, y_row / factor};
  }
};

// An image of size `stored`, resized to `resized`, turned about its centre by `degrees`, counterclockwise, of which
// `part`, that may reach beyond it, is resized to height x width. All sizes are at least 1.
AffineMap TurnedMap(const ImageExtent& stored, const ImageExtent& resized, double degrees, const ImageArea& part,
                    int height, int width);

// Of images of one size, moved as a whole: what comes to the point (x, y) is what was at (x + by_row * y, y + by_column
// * x), and at (x - right, y - down).
AffineMap ShearedMap(double by_row, double by_column);
AffineMap ShiftedMap(int right, int down);

// Pixels of a row: `count` from `first` on.
struct PixelRun {
  int first = 0, count = 0;

  friend bool operator==(const PixelRun&, const PixelRun&) = default;
};

// Of each row of the result, height x width, the pixels that come from within an image of size `extent`.
void FindCovered(const AffineMap& map, const ImageExtent& extent, int height, int width, std::vector<PixelRun>* runs);

// Of `runs`, as FindCovered made them of an image of which only `covered` counts of each row, cuts off at both ends
// what lies in pixels that do not count.
void CutUncovered(const AffineMap& map, std::span<const PixelRun> covered, std::vector<PixelRun>* runs);

// The pixels of `runs`, one for each row of the result, whose points lie within `from`; all others are left as they
// are. Interpolated between four pixels whose weights have 11 bits, and beyond the outermost centres as these. Makes
// `to` runs.size() x width; it must not be `from`.
void SampleBilinear(const Image& from, const AffineMap& map, std::span<const PixelRun> runs, int width, Image* to);
// The pixel that the point lies in, instead: for labels.
void SampleNearest(const Image& from, const AffineMap& map, std::span<const PixelRun> runs, int width, Image* to);

}  // namespace crema

#endif  // CREMA_IMAGE_AFFINE_H_
