#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/check.h"
#include "base/multiversion.h"

namespace crema {

namespace {

constexpr int kFractionBits = 11, kWholeWeight = 1 << kFractionBits;

// Target pixels along one side: where they begin among the pixels that are read, and how far apart they lie.
struct Axis {
  double begin, step;

  // Of the centre of target pixel `i`.
  float At(int i) const { return static_cast<float>(begin + (i + 0.5) * step - 0.5); }
};

ResizeBuffers::Tap TapOf(float place, int extent) {
  int first = static_cast<int>(std::floor(place));
  place -= static_cast<float>(first);
  if (first < 0) {
    first = 0;
    place = 0;
  }
  if (first >= extent - 1) {
    first = extent - 1;
    place = 0;
  }
  const auto weight = [](float share) { return static_cast<int>(std::lrint(share * kWholeWeight)); };
  return {first, std::min(first + 1, extent - 1), weight(1 - place), weight(place)};
}

// As OpenCV divides: by the rounded quotient of the sizes.
double ScaleOf(int from, int to) { return 1 / (static_cast<double>(to) / from); }

void StretchRow(const uint8_t* row, const std::vector<ResizeBuffers::Tap>& columns, int channels, int* to) {
  if (channels == 3) {
    for (const ResizeBuffers::Tap& tap : columns) {
      const uint8_t *a = row + tap.first, *b = row + tap.second;
      to[0] = a[0] * tap.first_weight + b[0] * tap.second_weight;
      to[1] = a[1] * tap.first_weight + b[1] * tap.second_weight;
      to[2] = a[2] * tap.first_weight + b[2] * tap.second_weight;
      to += 3;
    }
    return;
  }
  for (const ResizeBuffers::Tap& tap : columns) {
    for (int c = 0; c < channels; ++c) {
      *to++ = row[tap.first + c] * tap.first_weight + row[tap.second + c] * tap.second_weight;
    }
  }
}

CREMA_MULTIVERSION void MixRows(const int* __restrict upper, const int* __restrict lower, int upper_weight,
                                int lower_weight, size_t count, uint8_t* __restrict to) {
  for (size_t i = 0; i < count; ++i) {
    const int sum = ((upper_weight * (upper[i] >> 4)) >> 16) + ((lower_weight * (lower[i] >> 4)) >> 16);
    to[i] = static_cast<uint8_t>((sum + 2) >> 2);
  }
}

// The rows of an area of an image.
struct AreaRows {
  const Image& image;
  ImageArea area;

  int height() const { return area.height; }
  int width() const { return area.width; }
  const uint8_t* operator()(int y) const { return image.row(area.top + y) + area.left * image.channels; }
};

// Those of a framed image. Two neighbours can be looked at together.
class FramedRows {
 public:
  FramedRows(const FramedImage& framed, ResizeBuffers* buffers) : framed_(framed), buffers_(*buffers) {
    const size_t channels = framed.image.channels;
    buffers_.frame.resize(framed.width * channels);
    for (size_t i = 0; i < buffers_.frame.size(); ++i) {
      buffers_.frame[i] = framed.color[framed.color.size() > 1 ? i % channels : 0];
    }
    for (std::vector<uint8_t>& row : buffers_.crossing) row = buffers_.frame;
  }

  int height() const { return framed_.height; }
  int width() const { return framed_.width; }
  const uint8_t* operator()(int y) const {
    const int inside = y - framed_.top, channels = framed_.image.channels;
    if (inside < 0 || inside >= framed_.seen.height) return buffers_.frame.data();
    const uint8_t* seen = framed_.image.row(framed_.seen.top + inside) + framed_.seen.left * channels;
    uint8_t* const row = buffers_.crossing[y % 2].data();
    std::copy(seen, seen + framed_.seen.width * channels, row + framed_.left * channels);
    return row;
  }

 private:
  const FramedImage& framed_;
  ResizeBuffers& buffers_;
};

template <typename Rows>
void Halve(const Rows& rows, Image* to) {
  const int channels = to->channels;
  for (int y = 0; y < to->height; ++y) {
    const uint8_t *upper = rows(2 * y), *lower = rows(2 * y + 1);
    uint8_t* out = to->row(y);
    for (int x = 0; x < to->width; ++x, upper += channels, lower += channels) {
      for (int c = 0; c < channels; ++c, ++upper, ++lower) {
        *out++ = static_cast<uint8_t>((upper[0] + upper[channels] + lower[0] + lower[channels] + 2) >> 2);
      }
    }
  }
}

template <typename Rows>
void StretchRows(const Rows& rows, const Axis& vertical, const Axis& horizontal, ResizeBuffers* buffers, Image* to) {
  const int height = to->height, width = to->width, channels = to->channels;
  buffers->columns.resize(width);
  for (int x = 0; x < width; ++x) {
    ResizeBuffers::Tap tap = TapOf(horizontal.At(x), rows.width());
    tap.first *= channels;
    tap.second *= channels;
    buffers->columns[x] = tap;
  }
  const size_t count = to->row_bytes();
  buffers->upper.resize(count);
  buffers->lower.resize(count);
  int upper_row = -1, lower_row = -1;
  for (int y = 0; y < height; ++y) {
    // Rows, unlike columns, keep their weights at the borders: both are then the same row.
    const float place = vertical.At(y);
    const int first = static_cast<int>(std::floor(place));
    const float share = place - static_cast<float>(first);
    const int upper = std::clamp(first, 0, rows.height() - 1), lower = std::clamp(first + 1, 0, rows.height() - 1);
    if (upper != upper_row) {
      if (upper == lower_row) {
        std::swap(buffers->upper, buffers->lower);
        std::swap(upper_row, lower_row);
      } else {
        StretchRow(rows(upper), buffers->columns, channels, buffers->upper.data());
        upper_row = upper;
      }
    }
    if (lower != lower_row) {
      StretchRow(rows(lower), buffers->columns, channels, buffers->lower.data());
      lower_row = lower;
    }
    MixRows(buffers->upper.data(), buffers->lower.data(), static_cast<int>(std::lrint((1 - share) * kWholeWeight)),
            static_cast<int>(std::lrint(share * kWholeWeight)), count, to->row(y));
  }
}

// `to` has the size that is wanted.
template <typename Rows>
void ResizeRows(const Rows& rows, ResizeBuffers* buffers, Image* to) {
  const int height = to->height, width = to->width;
  if (height == rows.height() && width == rows.width()) {
    for (int y = 0; y < height; ++y) {
      const uint8_t* row = rows(y);
      std::copy(row, row + to->row_bytes(), to->row(y));
    }
    return;
  }
  if (rows.height() == 2 * height && rows.width() == 2 * width) return Halve(rows, to);

  StretchRows(rows, {0, ScaleOf(rows.height(), height)}, {0, ScaleOf(rows.width(), width)}, buffers, to);
}

}  // namespace

void ResizeBilinear(const Image& from, const ImageArea& area, int height, int width, ResizeBuffers* buffers,
                    Image* to) {
  CREMA_CHECK(height > 0 && width > 0 && area.height > 0 && area.width > 0 && area.top >= 0 && area.left >= 0 &&
              area.top + area.height <= from.height && area.left + area.width <= from.width)
      << "resizing " << area.height << "x" << area.width << " of " << from.height << "x" << from.width << " to "
      << height << "x" << width;
  to->Resize(height, width, from.channels);
  ResizeRows(AreaRows{from, area}, buffers, to);
}

void ResizeBilinear(const FramedImage& from, int height, int width, ResizeBuffers* buffers, Image* to) {
  CREMA_CHECK(height > 0 && width > 0 && from.top >= 0 && from.left >= 0 &&
              from.top + from.seen.height <= from.height && from.left + from.seen.width <= from.width)
      << "resizing " << from.height << "x" << from.width << " to " << height << "x" << width;
  to->Resize(height, width, from.image.channels);
  ResizeRows(FramedRows(from, buffers), buffers, to);
}

void ResizeBilinear(const Image& from, int height, int width, ResizeBuffers* buffers, Image* to) {
  ResizeBilinear(from, {0, 0, from.height, from.width}, height, width, buffers, to);
}

void ResizeRealArea(const Image& from, const RealArea& area, int height, int width, ResizeBuffers* buffers, Image* to) {
  CREMA_CHECK(height > 0 && width > 0 && from.height > 0 && from.width > 0 && &from != to);
  to->Resize(height, width, from.channels);
  StretchRows(AreaRows{from, {0, 0, from.height, from.width}}, {area.top, area.height / height},
              {area.left, area.width / width}, buffers, to);
}

void ResizeNearest(const Image& from, const ImageArea& area, int height, int width, ResizeBuffers* buffers, Image* to) {
  CREMA_CHECK(&from != to);
  CREMA_CHECK(area.top >= 0 && area.left >= 0 && area.top + area.height <= from.height &&
              area.left + area.width <= from.width);
  const auto nearest = [](int i, int extent, int of) {
    return static_cast<int>((2 * int64_t{i} + 1) * extent / (2 * int64_t{of}));
  };
  const int channels = from.channels;
  std::vector<int>& columns = buffers->upper;  // where pixels begin in a row
  columns.resize(static_cast<size_t>(width));
  for (int x = 0; x < width; ++x) columns[x] = (area.left + nearest(x, area.width, width)) * channels;
  to->Resize(height, width, channels);
  for (int y = 0; y < height; ++y) {
    const uint8_t* row = from.row(area.top + nearest(y, area.height, height));
    uint8_t* pixel = to->row(y);
    for (const int column : columns) {
      for (int c = 0; c < channels; ++c) *pixel++ = row[column + c];
    }
  }
}

ImageExtent WithShorterSide(int height, int width, int shorter_side) {
  const auto longer = [&](int long_side, int short_side) {
    const double length = std::round(static_cast<double>(long_side) * shorter_side / short_side);
    return static_cast<int>(std::clamp(length, 1.0, static_cast<double>(std::numeric_limits<int>::max())));
  };
  return height <= width ? ImageExtent{shorter_side, longer(width, height)}
                         : ImageExtent{longer(height, width), shorter_side};
}

std::string ResizeProblem(const ImageExtent& from, const ImageExtent& to) {
  constexpr int64_t kMostPixels = int64_t{1} << 27;
  const int64_t pixels = int64_t{to.height} * to.width;
  if (pixels <= kMostPixels || pixels <= int64_t{from.height} * from.width) return {};
  return "is " + std::to_string(from.height) + "x" + std::to_string(from.width) + ", which would be resized to " +
         std::to_string(to.height) + "x" + std::to_string(to.width) + " (height x width), more than " +
         std::to_string(kMostPixels / 1000000) + " million pixels";
}

FittedExtent FitInto(int height, int width, int shorter, int longer) {
  const auto [least, most] = std::minmax(height, width);
  double scale = static_cast<double>(shorter) / least;
  if (std::nearbyint(scale * most) > longer) scale = static_cast<double>(longer) / most;
  const auto side = [&](int pixels) { return std::max(1, static_cast<int>(std::nearbyint(scale * pixels))); };
  return {{side(height), side(width)}, scale};
}

}  // namespace crema
