// Formulas of ops/detection/detectnet_transform.h, for CPUs and GPUs.
#ifndef CREMA_OPS_DETECTION_DETECTNET_TRANSFORM_FORMULAS_H_
#define CREMA_OPS_DETECTION_DETECTNET_TRANSFORM_FORMULAS_H_

#include <cfloat>
#include <cmath>

#include "ops/arrays/elementary_functions.h"
#include "ops/detection/detectnet_transform.h"

namespace crema::detectnet {

// --- What is drawn. ---

inline constexpr uint64_t kCounters = 16;        // of an image in the stream
inline constexpr float kFarthest = 16777216.0f;  // from an image's corner, in pixels, that a number of a box may be

CREMA_FORMULA bool Happens(const RandomStream& random, uint64_t counter, float probability) {
  return random.Uniform(counter) < probability;
}

// Where the part that the net gets begins: anywhere, `shift` pixels over the borders included, or in the middle. Halves
// are rounded away from 0.
CREMA_FORMULA int32_t CutAt(double share, int64_t extent, int64_t wanted, int64_t shift) {
  const double place = share * static_cast<double>(extent - wanted + shift) - static_cast<double>(shift / 2);
  return static_cast<int32_t>(place < 0 ? -floor(-place + 0.5) : floor(place + 0.5));
}

// A rotation of height x width pixels around their middle, clockwise, moved so that the whole image has places of 0 and
// more; `extent_x` and `extent_y` are those of what holds it.
CREMA_FORMULA void Turn(DetectNetChange* change, float degrees, int64_t* extent_x, int64_t* extent_y) {
  const double angle = static_cast<double>(degrees) * 3.141592653589793 / 180;
  const double c = cos(angle), s = sin(angle);
  const double x = 0.5 * change->width, y = 0.5 * change->height;
  const double reach_x = fabs(c) * x + fabs(s) * y, reach_y = fabs(s) * x + fabs(c) * y;
  const double left = floor(x - reach_x), upper = floor(y - reach_y);
  *extent_x = static_cast<int64_t>(ceil(x + reach_x) - left) + 1;
  *extent_y = static_cast<int64_t>(ceil(y + reach_y) - upper) + 1;
  const double to_x = x - left, to_y = y - upper;
  const double after[6] = {c, -s, to_x - c * x + s * y, s, c, to_y - s * x - c * y};
  const double before[6] = {c, s, x - c * to_x - s * to_y, -s, c, y + s * to_x - c * to_y};
  for (int i = 0; i < 6; ++i) {
    change->after[i] = static_cast<float>(after[i]);
    change->before[i] = static_cast<float>(before[i]);
  }
}

CREMA_FORMULA DetectNetChange DrawChange(const DetectNetTransform& p, const RandomStream& random, int64_t image) {
  DetectNetChange change = {};
  change.saturation = 1;
  change.height = static_cast<int32_t>(p.changes ? p.height : p.out_height);
  change.width = static_cast<int32_t>(p.changes ? p.width : p.out_width);
  if (p.changes) {
    const uint64_t first = static_cast<uint64_t>(image) * kCounters;
    if (Happens(random, first, p.hue_probability)) change.hue = (random.Uniform(first + 1) * 2 - 1) * p.most_hue;
    if (Happens(random, first + 2, p.desaturation_probability)) {
      change.saturation = 1 - random.Uniform(first + 3) * p.most_desaturation;
    }
    change.recolors = change.hue != 0 || change.saturation < 1;
    change.flips = Happens(random, first + 4, p.flip_probability);
    if (Happens(random, first + 5, p.scale_probability)) {
      const float scale = p.least_scale + (p.most_scale - p.least_scale) * random.Uniform(first + 6);
      const int64_t height = static_cast<int64_t>(static_cast<float>(p.height) * scale + 0.5f);
      const int64_t width = static_cast<int64_t>(static_cast<float>(p.width) * scale + 0.5f);
      change.height = static_cast<int32_t>(height < 1 ? 1 : height);
      change.width = static_cast<int32_t>(width < 1 ? 1 : width);
    }
    float degrees = 0;
    if (Happens(random, first + 7, p.rotation_probability)) {
      degrees = (random.Uniform(first + 8) * 2 - 1) * p.most_rotation;
    }
    int64_t extent_x = change.width, extent_y = change.height;
    change.turns = fabsf(degrees) > FLT_EPSILON;
    if (change.turns) Turn(&change, degrees, &extent_x, &extent_y);
    const bool anywhere = Happens(random, first + 9, p.crop_probability);
    const double share_x = anywhere ? static_cast<double>(random.Uniform(first + 10)) : 0.5;
    const double share_y = anywhere ? static_cast<double>(random.Uniform(first + 11)) : 0.5;
    change.left = CutAt(share_x, extent_x, p.out_width, anywhere ? p.shift_x : 0);
    change.top = CutAt(share_y, extent_y, p.out_height, anywhere ? p.shift_y : 0);
  }
  change.scales = change.height != p.height || change.width != p.width;
  return change;
}

// --- Pixels. ---

struct Pixel {
  float values[DetectNetTransform::kChannels];
};

// A channel of a colour of the given value, saturation and hue in sixths of the circle; `at`: where its sector is.
CREMA_FORMULA float OfHue(float value, float saturation, float hue, float at) {
  float k = at + hue;
  k -= 6.0f * floorf(k * (1.0f / 6.0f));
  const float falls = 4.0f - k;
  float share = k < falls ? k : falls;
  share = share < 0.0f ? 0.0f : share > 1.0f ? 1.0f : share;
  return value - value * saturation * share;
}

// By hue, saturation and value (Smith, "Color gamut transform pairs", 1978). Grey has no hue and stays.
CREMA_FORMULA Pixel Recolored(const DetectNetChange& change, const Pixel& pixel) {
  const float b = pixel.values[0], g = pixel.values[1], r = pixel.values[2];
  const float most = r > g ? (r > b ? r : b) : (g > b ? g : b), least = r < g ? (r < b ? r : b) : (g < b ? g : b);
  const float spread = most - least;
  if (!(spread > 0.0f) || !(most > 0.0f)) return pixel;
  const float sixth = most == r ? (g - b) / spread : most == g ? 2.0f + (b - r) / spread : 4.0f + (r - g) / spread;
  const float hue = sixth + change.hue * (1.0f / 60.0f), saturation = spread / most * change.saturation;
  return {{OfHue(most, saturation, hue, 1.0f), OfHue(most, saturation, hue, 3.0f), OfHue(most, saturation, hue, 5.0f)}};
}

CREMA_FORMULA int64_t Between(int64_t value, int64_t limit) {
  return value < 0 ? 0 : value >= limit ? limit - 1 : value;
}

// The four pixels of a line that make one of the stretched line, and how much of each.
struct CubicTaps {
  int64_t at[4];
  float share[4];
};

CREMA_FORMULA CubicTaps TapsOf(int64_t place, int64_t to, int64_t from) {
  constexpr float kA = -0.75f;
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double exact = (static_cast<double>(place) + 0.5) * scale - 0.5, whole = floor(exact);
  const auto x = static_cast<float>(exact - whole), y = 1.0f - x;
  CubicTaps taps;
  for (int i = 0; i < 4; ++i) taps.at[i] = Between(static_cast<int64_t>(whole) + i - 1, from);
  taps.share[0] = ((kA * (x + 1.0f) - 5.0f * kA) * (x + 1.0f) + 8.0f * kA) * (x + 1.0f) - 4.0f * kA;
  taps.share[1] = ((kA + 2.0f) * x - (kA + 3.0f)) * x * x + 1.0f;
  taps.share[2] = ((kA + 2.0f) * y - (kA + 3.0f)) * y * y + 1.0f;
  taps.share[3] = 1.0f - taps.share[0] - taps.share[1] - taps.share[2];
  return taps;
}

// A pixel of an image that was flipped and scaled as was drawn.
CREMA_FORMULA Pixel ScaledPixel(const DetectNetTransform& p, const DetectNetChange& change, const float* image,
                                int64_t y, int64_t x) {
  Pixel pixel = {};
  if (!change.scales) {
    const int64_t at = y * p.width + (change.flips ? p.width - 1 - x : x);
    for (int c = 0; c < 3; ++c) pixel.values[c] = image[c * p.plane() + at];
    return pixel;
  }
  const CubicTaps rows = TapsOf(y, change.height, p.height), columns = TapsOf(x, change.width, p.width);
  for (int i = 0; i < 4; ++i) {
    const float* const row = image + rows.at[i] * p.width;
    for (int k = 0; k < 4; ++k) {
      const int64_t at = change.flips ? p.width - 1 - columns.at[k] : columns.at[k];
      for (int c = 0; c < 3; ++c) pixel.values[c] += rows.share[i] * columns.share[k] * row[c * p.plane() + at];
    }
  }
  return pixel;
}

// What the net gets at a place.
CREMA_FORMULA Pixel PlacedPixel(const DetectNetTransform& p, const DetectNetChange& change, const float* image,
                                int64_t y, int64_t x) {
  x += change.left;
  y += change.top;
  Pixel pixel = {};
  if (!change.turns) {
    if (x < 0 || y < 0 || x >= change.width || y >= change.height) return pixel;
    return ScaledPixel(p, change, image, y, x);
  }
  const auto after_x = static_cast<float>(x), after_y = static_cast<float>(y);
  const float* const m = change.before;
  const float before_x = m[0] * after_x + m[1] * after_y + m[2], before_y = m[3] * after_x + m[4] * after_y + m[5];
  const auto most_x = static_cast<float>(change.width - 1), most_y = static_cast<float>(change.height - 1);
  if (!(before_x >= 0.0f && before_y >= 0.0f && before_x <= most_x && before_y <= most_y)) return pixel;
  const auto left = static_cast<int64_t>(before_x), upper = static_cast<int64_t>(before_y);
  const float right_share = before_x - static_cast<float>(left), lower_share = before_y - static_cast<float>(upper);
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 2; ++k) {
      const float share = (i ? lower_share : 1.0f - lower_share) * (k ? right_share : 1.0f - right_share);
      if (share == 0.0f) continue;
      const Pixel corner = ScaledPixel(p, change, image, upper + i, left + k);
      for (int c = 0; c < 3; ++c) pixel.values[c] += share * corner.values[c];
    }
  }
  return pixel;
}

// --- Objects and labels. ---

struct Area {
  float left, upper, right, lower;

  CREMA_FORMULA float width() const { return right - left; }
  CREMA_FORMULA float height() const { return lower - upper; }
};

CREMA_FORMULA Area Common(const Area& a, const Area& b) {
  return {a.left > b.left ? a.left : b.left, a.upper > b.upper ? a.upper : b.upper,
          a.right < b.right ? a.right : b.right, a.lower < b.lower ? a.lower : b.lower};
}

CREMA_FORMULA float SizeOf(const Area& a) {
  return a.width() > 0.0f && a.height() > 0.0f ? a.width() * a.height() : 0.0f;
}

// An object of the grid.
struct GridObject {
  int32_t place;  // of its class; -1: it is left out
  Area box, covered;
  float norm;
};

// Where the object of a row is in what the net gets. Places are those of pixels' centres, so that the last pixel of a
// line has the place width - 1.
CREMA_FORMULA Area MovedBox(const DetectNetTransform& p, const DetectNetChange& change, const float* row) {
  float x = row[0], y = row[1], width = row[2], height = row[3];
  if (change.flips) x = static_cast<float>(p.width) - x - width - 1.0f;
  if (change.scales) {
    const float by_x = static_cast<float>(change.width) / static_cast<float>(p.width);
    const float by_y = static_cast<float>(change.height) / static_cast<float>(p.height);
    x *= by_x;
    width *= by_x;
    y *= by_y;
    height *= by_y;
  }
  if (change.turns) {
    const float middle_x = x + 0.5f * width, middle_y = y + 0.5f * height;
    const float* const m = change.after;
    x = m[0] * middle_x + m[1] * middle_y + m[2] - 0.5f * width;
    y = m[3] * middle_x + m[4] * middle_y + m[5] - 0.5f * height;
  }
  x -= static_cast<float>(change.left);
  y -= static_cast<float>(change.top);
  return {x, y, x + width, y + height};
}

CREMA_FORMULA float CoveredSide(const DetectNetLabels& l, float side) {
  const float shrunk = side * l.scale;
  if (!l.grows) return shrunk < l.most ? shrunk : l.most;
  const float grown = shrunk > l.least ? shrunk : l.least;
  return grown < side ? grown : side;
}

CREMA_FORMULA GridObject ObjectOf(const DetectNetTransform& p, const DetectNetLabels& l, const DetectNetChange& change,
                                  const int32_t* place_of, const float* row) {
  GridObject object = {};
  const float number = row[5];
  object.place = number < static_cast<float>(l.known) ? place_of[static_cast<int64_t>(number)] : -1;
  if (object.place < 0) return object;
  object.box = MovedBox(p, change, row);
  if (l.clips) {
    object.box = Common(object.box, {0.0f, 0.0f, static_cast<float>(p.out_width), static_cast<float>(p.out_height)});
  }
  if (SizeOf(object.box) < FLT_EPSILON) {
    object.place = -1;
    return object;
  }
  const float middle_x = 0.5f * (object.box.left + object.box.right);
  const float middle_y = 0.5f * (object.box.upper + object.box.lower);
  const float half_x = 0.5f * CoveredSide(l, object.box.width()), half_y = 0.5f * CoveredSide(l, object.box.height());
  object.covered = {middle_x - half_x, middle_y - half_y, middle_x + half_x, middle_y + half_y};
  const float norm = l.stride * l.stride / SizeOf(object.covered);
  object.norm = norm > l.least_norm ? norm : l.least_norm;
  return object;
}

// Whether a cell is one of those that the object covers.
CREMA_FORMULA bool Covers(const DetectNetLabels& l, const GridObject& object, int64_t row, int64_t column) {
  const float x = static_cast<float>(column) * l.stride, y = static_cast<float>(row) * l.stride;
  const float common = SizeOf(Common(object.covered, {x, y, x + l.stride, y + l.stride}));
  return common / (l.stride * l.stride) > FLT_EPSILON;
}

// The cell's numbers, which lie `cells` apart.
CREMA_FORMULA void WriteCell(const DetectNetLabels& l, const GridObject& object, int64_t row, int64_t column,
                             float* y) {
  const int64_t cells = l.cells();
  const float corner_x = static_cast<float>(column) * l.stride, corner_y = static_cast<float>(row) * l.stride;
  float* const cell = y + row * l.width + column;
  cell[0] = 1.0f;
  cell[cells] = object.box.left - corner_x;
  cell[2 * cells] = object.box.upper - corner_y;
  cell[3 * cells] = object.box.right - corner_x;
  cell[4 * cells] = object.box.lower - corner_y;
  cell[5 * cells] = 1.0f / object.box.width();
  cell[6 * cells] = 1.0f / object.box.height();
  cell[7 * cells] = object.norm;
  for (int64_t c = 0; c < l.classes; ++c) cell[(DetectNetLabels::kBoxChannels + c) * cells] = c == object.place;
}

// Whether number `which` of row `row` cannot be used; `first` is the image's first row.
CREMA_FORMULA bool IsBad(const DetectNetLabels& l, const float* first, int64_t row, int64_t which) {
  const float value = first[row * DetectNetLabels::kNumbers + which];
  if (row == 0) {
    if (which == 1) return value != static_cast<float>(DetectNetLabels::kNumbers);
    return which == 0 && !(value >= 0.0f && value < static_cast<float>(l.rows) && value == floorf(value));
  }
  if (!(static_cast<float>(row) <= first[0])) return false;
  if (which < 4) return !(fabsf(value) <= kFarthest);
  return which == 5 && !(value >= 0.0f && value <= FLT_MAX && value == floorf(value));
}

}  // namespace crema::detectnet

#endif  // CREMA_OPS_DETECTION_DETECTNET_TRANSFORM_FORMULAS_H_
