// Items from windows of images.
#ifndef CREMA_DATA_LOADERS_WINDOW_LOADER_H_
#define CREMA_DATA_LOADERS_WINDOW_LOADER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/once.h"
#include "data/databases/mean_file.h"
#include "data/files/window_file.h"
#include "data/loaders/item_loader.h"
#include "data/loaders/sample_order.h"
#include "data/transforms/pixel_values.h"

namespace crema {

// How windows become items.
struct WindowForm {
  int crop = 0;         // side of an item, in pixels
  int context_pad = 0;  // pixels of an item, on each side of the window, that show what lies around it
  bool square = false;  // what is cut out is the smallest square around the window
  bool mirror = false;  // left and right, with probability 1/2
  ColorValues values;   // of the three channels
  // Subtracted from the centre of the item on, whatever its size and mirrored or not, before the factors of `values`;
  // their means are 0 then. 3 channels.
  std::optional<MeanImage> mean;
};

// A part of an image, and the rectangle of the item that it is resized to. It may be empty; what it does not cover
// lies outside of the image.
struct WindowPlace {
  ImageArea seen;
  int top = 0, left = 0, height = 0, width = 0;
};

// As Caffe's WindowDataLayer rounds it. Empty where no pixel of the image is to be seen or, without context, not all of
// the window.
std::optional<WindowPlace> WindowPlaceOf(const WindowFile::Window& window, int image_height, int image_width,
                                         const WindowForm& form, bool mirrored);

// Of each batch of the stream the first items are windows of the background, the last ones of objects; which ones is
// drawn, any number of times the same. Outside of an image is the mean, so the net sees 0. Images have three channels.
class WindowLoader : public ItemLoader {
 public:
  // `objects` of each `batch` items. `cache`: keeps the files of images in memory once they were read. There must be
  // windows of the kinds that are asked for.
  WindowLoader(std::shared_ptr<const WindowFile> windows, WindowForm form, const SampleOrder& order, uint64_t batch,
               uint64_t objects, bool cache);

  const Shape& item_shape() const override { return item_shape_; }
  void Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const override;
  // `the window of windows.txt:17`.
  std::string Describe(uint64_t position) const override;
  bool decodes() const override { return true; }

 private:
  // What was read once.
  struct CachedFile {
    Once once;
    std::vector<uint8_t> bytes;
  };

  const WindowFile::Window& WindowAt(uint64_t position) const;
  std::span<const uint8_t> BytesOf(const WindowFile::Window& window, ItemScratch& scratch) const;
  void Write(const Image& image, const WindowPlace& place, bool mirrored, float* data) const;
  [[noreturn]] void Fail(int32_t line, const std::string& message) const;

  std::shared_ptr<const WindowFile> windows_;
  WindowForm form_;
  SampleOrder order_;
  uint64_t batch_, objects_;
  Shape item_shape_;
  std::unique_ptr<CachedFile[]> cache_;  // one for each image; null: none
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_WINDOW_LOADER_H_
