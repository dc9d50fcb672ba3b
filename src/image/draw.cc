#include "image/draw.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace crema {

namespace {

constexpr int kLetterHeight = 7, kLetterWidth = 5;
constexpr int kSide = 300;  // pixels of the shorter side for each pixel of a line's width, and of a letter's parts

using Color = std::array<uint8_t, 3>;

// Rows [top, bottom) and columns [left, right), which may lie outside.
struct Pixels {
  int left, top, right, bottom;
};

void MakeColor(Image* image) {
  if (image->channels == 3) return;
  const std::vector<uint8_t> grey(image->pixels.begin(), image->pixels.begin() + static_cast<ptrdiff_t>(image->size()));
  image->Resize(image->height, image->width, 3);
  for (size_t i = 0; i < grey.size(); ++i) std::fill_n(image->pixels.data() + 3 * i, 3, grey[i]);
}

void Fill(const Pixels& area, const Color& color, Image* image) {
  const int left = std::max(area.left, 0), right = std::min(area.right, image->width);
  for (int y = std::max(area.top, 0); y < std::min(area.bottom, image->height); ++y) {
    for (int x = left; x < right; ++x) std::copy(color.begin(), color.end(), image->row(y) + 3 * x);
  }
}

int ThicknessFor(const Image& image) { return std::max(1, (std::min(image.height, image.width) + kSide / 2) / kSide); }

// Within [0, extent]; NaN is 0.
int PixelAt(float position, int extent) {
  if (!(position > 0)) return 0;
  return static_cast<int>(std::lround(std::min(position, static_cast<float>(extent))));
}

std::string Drawable(std::string_view text) {
  std::string drawable;
  while (!text.empty()) {
    const size_t length = std::max<size_t>(1, Utf8SequenceLength(text));
    drawable += length == 1 ? text[0] : '?';
    text.remove_prefix(length);
  }
  return drawable;
}

// Black on bright colours, white on dark ones.
Color ColorOn(const Color& ground) {
  const int luminance = (114 * ground[0] + 587 * ground[1] + 299 * ground[2]) / 1000;
  return luminance > 140 ? Color{0, 0, 0} : Color{255, 255, 255};
}

void DrawText(const std::string& text, const Pixels& box, const Color& ground, Image* image) {
  const int size = ThicknessFor(*image);
  const int advance = (kLetterWidth + 1) * size;
  const int width = static_cast<int>(text.size()) * advance + size, height = (kLetterHeight + 2) * size;
  const int left = std::max(0, std::min(box.left, image->width - width));
  const int top = box.top >= height ? box.top - height : box.top;
  Fill({left, top, left + width, top + height}, ground, image);
  const Color color = ColorOn(ground);
  for (size_t i = 0; i < text.size(); ++i) {
    const std::span<const uint8_t, kLetterHeight> rows = RowsOfLetter(text[i]);
    const int x = left + size + static_cast<int>(i) * advance;
    for (int row = 0; row < kLetterHeight; ++row) {
      for (int column = 0; column < kLetterWidth; ++column) {
        if ((rows[static_cast<size_t>(row)] >> (kLetterWidth - 1 - column) & 1) == 0) continue;
        const int at_x = x + column * size, at_y = top + (row + 1) * size;
        Fill({at_x, at_y, at_x + size, at_y + size}, color, image);
      }
    }
  }
}

}  // namespace

std::array<uint8_t, 3> ColorOfKind(int kind) {
  // Hues a golden section apart: however many there are, the next one lies in the largest gap.
  const double turns = 0.618033988749895 * kind;
  const double hue = 6 * (turns - std::floor(turns));
  const auto channel = [&](double shift) {
    const double distance = std::fabs(std::fmod(hue + shift, 6.0) - 3.0);  // 0 at the hue across, 3 at this one's
    return static_cast<uint8_t>(std::lround(25 + 230 * std::clamp(distance - 1.0, 0.0, 1.0)));
  };
  return {channel(2), channel(4), channel(0)};
}

void DrawBoxes(std::span<const DrawnBox> boxes, Image* image) {
  MakeColor(image);
  const int thickness = ThicknessFor(*image);
  for (const DrawnBox& drawn : boxes) {
    const Color color = ColorOfKind(drawn.kind);
    Pixels box = {PixelAt(drawn.xmin, image->width), PixelAt(drawn.ymin, image->height),
                  PixelAt(drawn.xmax, image->width), PixelAt(drawn.ymax, image->height)};
    box.right = std::max(box.right, box.left + 1);
    box.bottom = std::max(box.bottom, box.top + 1);
    Fill({box.left, box.top, box.right, box.top + thickness}, color, image);
    Fill({box.left, box.bottom - thickness, box.right, box.bottom}, color, image);
    Fill({box.left, box.top, box.left + thickness, box.bottom}, color, image);
    Fill({box.right - thickness, box.top, box.right, box.bottom}, color, image);
    if (!drawn.text.empty()) DrawText(Drawable(drawn.text), box, color, image);
  }
}

}  // namespace crema
