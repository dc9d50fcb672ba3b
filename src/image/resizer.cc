#include "image/resizer.h"

#include <algorithm>
#include <cstdlib>

namespace crema {

namespace {

// Which of `extent` pixels in a row shows at `i`, which may lie outside of them.
int ShownPixel(ImageBorder::Kind kind, int i, int extent) {
  if (kind == ImageBorder::Kind::kNearest || extent == 1) return std::clamp(i, 0, extent - 1);
  const int period = 2 * (extent - 1), along = std::abs(i) % period;
  return std::min(along, period - along);
}

void FillPixels(const std::vector<uint8_t>& color, int pixels, int channels, uint8_t* to) {
  for (int i = 0; i < pixels; ++i) {
    for (int c = 0; c < channels; ++c) *to++ = color[color.size() > 1 ? c : 0];
  }
}

void FillRow(const uint8_t* inner, const ImageArea& place, int width, int channels, const ImageBorder& border,
             uint8_t* to) {
  const auto fill = [&](int first, int end) {
    if (border.kind == ImageBorder::Kind::kColor) {
      return FillPixels(border.color, end - first, channels, to + first * channels);
    }
    for (int x = first; x < end; ++x) {
      const int shown = ShownPixel(border.kind, x - place.left, place.width);
      std::copy_n(inner + shown * channels, channels, to + x * channels);
    }
  };
  fill(0, place.left);
  std::copy_n(inner, place.width * channels, to + place.left * channels);
  fill(place.left + place.width, width);
}

void AddBorder(const Image& inner, const ImageArea& place, const ImageBorder& border, Image* to) {
  const bool colored = border.kind == ImageBorder::Kind::kColor;
  for (int y = 0; y < to->height; ++y) {
    const int inside = y - place.top;
    if (colored && (inside < 0 || inside >= place.height)) {
      FillPixels(border.color, to->width, to->channels, to->row(y));
    } else {
      FillRow(inner.row(ShownPixel(border.kind, inside, place.height)), place, to->width, to->channels, border,
              to->row(y));
    }
  }
}

}  // namespace

ImageArea Resizer::PlaceOf(const ImageExtent& image, const ImageExtent& whole) const {
  if (!border_) return {0, 0, whole.height, whole.width};
  const int64_t wide = int64_t{whole.height} * image.width, high = int64_t{whole.width} * image.height;
  ImageExtent fitted = whole;
  if (wide > high) {
    fitted.height = static_cast<int>(std::max<int64_t>(high / image.width, 1));
  } else {
    fitted.width = static_cast<int>(std::max<int64_t>(wide / image.height, 1));
  }
  return {(whole.height - fitted.height) / 2, (whole.width - fitted.width) / 2, fitted.height, fitted.width};
}

void Resizer::Resize(const Image& from, const ImageArea& area, const ImageExtent& whole, ResizeBuffers* buffers,
                     Image* to) const {
  if (!border_) return ResizeBilinear(from, area, whole.height, whole.width, buffers, to);
  const ImageArea place = PlaceOf({area.height, area.width}, whole);
  ResizeBilinear(from, area, place.height, place.width, buffers, &buffers->inner);
  to->Resize(whole.height, whole.width, from.channels);
  AddBorder(buffers->inner, place, *border_, to);
}

void Resizer::Resize(const FramedImage& from, const ImageExtent& whole, ResizeBuffers* buffers, Image* to) const {
  if (!border_) return ResizeBilinear(from, whole.height, whole.width, buffers, to);
  const ImageArea place = PlaceOf({from.height, from.width}, whole);
  ResizeBilinear(from, place.height, place.width, buffers, &buffers->inner);
  to->Resize(whole.height, whole.width, from.image.channels);
  AddBorder(buffers->inner, place, *border_, to);
}

}  // namespace crema
