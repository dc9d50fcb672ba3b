// What resizing and turning images should give, one pixel at a time in double precision.
#ifndef CREMA_TESTS_IMAGE_REFERENCE_H_
#define CREMA_TESTS_IMAGE_REFERENCE_H_

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "base/random.h"
#include "image/image.h"
#include "image/resize.h"

namespace crema::testing {

inline Image Noise(int height, int width, int channels) {
  Image image;
  image.Resize(height, width, channels);
  const RandomStream random(3, 4);
  for (size_t i = 0; i < image.size(); ++i) image.pixels[i] = static_cast<uint8_t>(random.Below(i, 256));
  return image;
}

// Bilinear interpolation in an area, pixels as little squares; row 0 is the centre of the first.
inline double Interpolated(const Image& image, const ImageArea& area, double row, double column, int channel) {
  const auto at = [&](int y, int x) {
    y = std::clamp(y, 0, area.height - 1);
    x = std::clamp(x, 0, area.width - 1);
    return static_cast<double>(image.row(area.top + y)[(area.left + x) * image.channels + channel]);
  };
  const int y = static_cast<int>(std::floor(row)), x = static_cast<int>(std::floor(column));
  const double v = row - y, u = column - x;
  return (1 - v) * ((1 - u) * at(y, x) + u * at(y, x + 1)) + v * ((1 - u) * at(y + 1, x) + u * at(y + 1, x + 1));
}

// An image, resized, turned counterclockwise, and a part of that, resized to height x width.
struct Turn {
  ImageExtent resized;
  double degrees = 0;
  ImageArea part;
  int height = 0, width = 0;
};

// A point of an image, in pixels from its corner.
struct TurnedPoint {
  double y, x;
  // How far it is from the image's border; below 0 outside.
  double inside;
  // From the nearest border between two pixels.
  double from_border() const { return std::min(std::abs(x - std::round(x)), std::abs(y - std::round(y))); }
};

// Where the centre of a pixel of the result comes from.
inline TurnedPoint PointOf(const Image& image, const Turn& turn, int v, int u) {
  const double angle = turn.degrees * std::numbers::pi / 180;
  const double middle_y = turn.resized.height / 2.0, middle_x = turn.resized.width / 2.0;
  const double y = turn.part.top + (v + 0.5) * turn.part.height / turn.height - middle_y;
  const double x = turn.part.left + (u + 0.5) * turn.part.width / turn.width - middle_x;
  TurnedPoint point;
  point.y = (middle_y + std::sin(angle) * x + std::cos(angle) * y) / turn.resized.height * image.height;
  point.x = (middle_x + std::cos(angle) * x - std::sin(angle) * y) / turn.resized.width * image.width;
  point.inside = std::min({point.x, point.y, image.width - point.x, image.height - point.y});
  return point;
}

inline double Interpolated(const Image& image, const TurnedPoint& point, int channel) {
  return Interpolated(image, {0, 0, image.height, image.width}, point.y - 0.5, point.x - 0.5, channel);
}

}  // namespace crema::testing

#endif  // CREMA_TESTS_IMAGE_REFERENCE_H_
