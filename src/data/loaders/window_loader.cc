#include "data/loaders/window_loader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "crema/error.h"
#include "data/loaders/encoded_image.h"
#include "data/loaders/image_list_loader.h"
#include "image/codec.h"
#include "image/resize.h"

namespace crema {

namespace {

enum WindowNumber : uint64_t { kWindow = 0, kMirror = 1 };

int Rounded(float value) { return static_cast<int>(std::round(value)); }

// Along one axis: the pixels that are cut out, before they are cut off at the image's borders.
struct Span {
  int first, last;
};

// What of a span lies within the image, and where in the item; false: nothing.
struct Fitted {
  int first, count;      // in the image
  int before, size;      // in the item
  int before_if_turned;  // where the item is mirrored
};

bool Fit(const Span& span, int extent, int crop, Fitted* fitted) {
  const int outside_before = std::max(0, -span.first), outside_behind = std::max(0, span.last - extent + 1);
  const float scale = static_cast<float>(crop) / static_cast<float>(span.last - span.first + 1);
  const auto scaled = [scale](int pixels) { return Rounded(static_cast<float>(pixels) * scale); };
  fitted->first = span.first + outside_before;
  fitted->count = span.last - outside_behind - fitted->first + 1;
  if (fitted->count < 1) return false;
  fitted->before = scaled(outside_before);
  fitted->before_if_turned = scaled(outside_behind);
  fitted->size = scaled(fitted->count);
  return true;
}

}  // namespace

std::optional<WindowPlace> WindowPlaceOf(const WindowFile::Window& window, int image_height, int image_width,
                                         const WindowForm& form, bool mirrored) {
  const int wide = window.right - window.left + 1, tall = window.bottom - window.top + 1;
  if (form.context_pad == 0 && !form.square) {
    if (window.left < 0 || window.top < 0 || window.right >= image_width || window.bottom >= image_height) return {};
    return WindowPlace{{window.top, window.left, tall, wide}, 0, 0, form.crop, form.crop};
  }
  const float scale = static_cast<float>(form.crop) / static_cast<float>(form.crop - 2 * form.context_pad);
  const float half_height = static_cast<float>(tall) / 2, half_width = static_cast<float>(wide) / 2;
  const float longer = std::max(half_height, half_width);
  const auto widened = [&](int first, float half) {
    const float centre = static_cast<float>(first) + half, reach = (form.square ? longer : half) * scale;
    return Span{Rounded(centre - reach), Rounded(centre + reach)};
  };
  Fitted rows, columns;
  if (!Fit(widened(window.top, half_height), image_height, form.crop, &rows) ||
      !Fit(widened(window.left, half_width), image_width, form.crop, &columns)) {
    return {};
  }
  WindowPlace place;
  place.seen = {rows.first, columns.first, rows.count, columns.count};
  place.top = rows.before;
  place.left = mirrored ? columns.before_if_turned : columns.before;
  // Rounding may make them larger than the item together.
  place.height = std::max(0, std::min(rows.size, form.crop - place.top));
  place.width = std::max(0, std::min(columns.size, form.crop - place.left));
  return place;
}

WindowLoader::WindowLoader(std::shared_ptr<const WindowFile> windows, WindowForm form, const SampleOrder& order,
                           uint64_t batch, uint64_t objects, bool cache)
    : windows_(std::move(windows)),
      form_(std::move(form)),
      order_(order),
      batch_(batch),
      objects_(objects),
      item_shape_{3, form_.crop, form_.crop},
      cache_(cache ? std::make_unique<CachedFile[]>(windows_->images.entries.size()) : nullptr) {
  CREMA_CHECK(objects_ == 0 || !windows_->objects.empty());
  CREMA_CHECK(objects_ == batch_ || !windows_->backgrounds.empty());
}

const WindowFile::Window& WindowLoader::WindowAt(uint64_t position) const {
  const auto& windows = position % batch_ < batch_ - objects_ ? windows_->backgrounds : windows_->objects;
  return windows[order_.RandomAt(position).Below(kWindow, windows.size())];
}

std::string WindowLoader::Describe(uint64_t position) const {
  return "the window of " + Location{windows_->path, WindowAt(position).line, 0}.ToString();
}

std::span<const uint8_t> WindowLoader::BytesOf(const WindowFile::Window& window, ItemScratch& scratch) const {
  const auto image = static_cast<size_t>(window.image);
  try {
    if (!cache_) return ReadImage(windows_->images, image, scratch);
    CachedFile& file = cache_[image];
    file.once.Do([&] {
      const std::span<const uint8_t> bytes = ReadImage(windows_->images, image, scratch);
      file.bytes.assign(bytes.begin(), bytes.end());
    });
    return file.bytes;
  } catch (const UserError& error) {
    Fail(windows_->images.entries[image].line, error.diagnostics().front().message);
  }
}

void WindowLoader::Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const {
  const WindowFile::Window& window = WindowAt(position);
  *label = static_cast<float>(window.label);
  const bool mirrored = form_.mirror && order_.RandomAt(position).Below(kMirror, 2) == 1;
  Image& image = scratch.decoded;
  const std::string problem = DecodeImage(BytesOf(window, scratch), {DecodeOptions::Colors::kColor}, &image);
  const auto image_index = static_cast<size_t>(window.image);
  if (!problem.empty()) {
    Fail(windows_->images.entries[image_index].line,
         "image \"" + windows_->images.PathOf(image_index) + "\" " + problem + kBrokenImageRemedy);
  }
  const std::optional<WindowPlace> place = WindowPlaceOf(window, image.height, image.width, form_, mirrored);
  if (!place) {
    const auto text = [](int x, int y) { return std::to_string(x) + " " + std::to_string(y); };
    Fail(window.line, "the window " + text(window.left, window.top) + " " + text(window.right, window.bottom) +
                          " does not lie within image \"" + windows_->images.PathOf(image_index) + "\", which is " +
                          std::to_string(image.width) + " pixels wide and " + std::to_string(image.height) +
                          " high; write x1 y1 x2 y2 from 0 on");
  }
  std::fill_n(data, item_shape_.count(), 0.0f);
  if (place->height == 0 || place->width == 0) return;
  Image& resized = scratch.transform.resized;
  ResizeBilinear(image, place->seen, place->height, place->width, &scratch.transform.buffers, &resized);
  Write(resized, *place, mirrored, data);
}

void WindowLoader::Write(const Image& image, const WindowPlace& place, bool mirrored, float* data) const {
  const int64_t side = form_.crop, plane = side * side;
  const ColorValues values = form_.mean ? ColorValues{} : form_.values;
  for (int y = 0; y < place.height; ++y) {
    float* to = data + (place.top + y) * side + place.left;
    WriteColorRow(image.row(y), place.width, values, mirrored, {to, to + plane, to + 2 * plane});
    if (!form_.mean) continue;
    const int64_t height = form_.mean->shape[1], width = form_.mean->shape[2], border = (width - side) / 2;
    for (int64_t c = 0; c < 3; ++c) {
      const float* mean =
          form_.mean->values.data() + (c * height + border + place.top + y) * width + border + place.left;
      SubtractRow(mean, place.width, form_.values.factor[static_cast<size_t>(c)], false, to + c * plane);
    }
  }
}

void WindowLoader::Fail(int32_t line, const std::string& message) const {
  throw UserError({windows_->path, line, 0}, message);
}

}  // namespace crema
