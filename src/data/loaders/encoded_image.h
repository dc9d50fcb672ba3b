// Items from compressed images.
#ifndef CREMA_DATA_LOADERS_ENCODED_IMAGE_H_
#define CREMA_DATA_LOADERS_ENCODED_IMAGE_H_

#include <cstdint>
#include <span>
#include <string>

#include "base/random.h"
#include "data/databases/image_size.h"
#include "data/loaders/item_loader.h"
#include "data/transforms/transform.h"

namespace crema {

// What to do where a compressed image is broken, behind what is wrong with it.
constexpr const char* kBrokenImageRemedy =
    "; db_tool verify finds every broken record of a database, convert_imageset leaves broken images out";

// Size of the compressed image as it will be decoded for `transform`, from its header. Returns what is wrong with the
// bytes, with the remedy; empty when nothing is.
[[nodiscard]] std::string EncodedImageSize(std::span<const uint8_t> bytes, const Transform& transform, ImageSize* size);

// Decodes and transforms the image to `out`, which holds item.count() values. Returns what is wrong with the bytes, or
// why the image does not fit, with the remedy; empty when nothing is.
[[nodiscard]] std::string LoadEncodedImage(std::span<const uint8_t> bytes, const Transform& transform,
                                           const RandomStream& random, const ImageSize& item, ItemScratch& scratch,
                                           float* out);

// Why an image does not become an item of the size of all others, with the remedy; empty where it does. with_boxes: it
// has boxes, so that it is resized and never cut.
[[nodiscard]] std::string CheckItemSize(const ImageSize& image, const Transform& transform, Transform::Values values,
                                        const ImageSize& item, bool with_boxes = false);

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_ENCODED_IMAGE_H_
