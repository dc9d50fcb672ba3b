// The formats, one source file each.
#ifndef CREMA_IMAGE_FORMATS_H_
#define CREMA_IMAGE_FORMATS_H_

#include <cstdint>
#include <span>
#include <string>

#include "image/codec.h"

namespace crema {

// More pixels are taken for damage or an attack.
constexpr int64_t kMostPixels = int64_t{1} << 28;

// As the functions of codec.h; of JPEG before it is turned upright, whose Exif orientation (1 to 8) goes to
// `orientation`.
std::string ReadJpegInfo(std::span<const uint8_t> bytes, ImageInfo* info, int* orientation);
std::string DecodeJpeg(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image, int* orientation);
std::string ReadPngInfo(std::span<const uint8_t> bytes, ImageInfo* info);
std::string DecodePng(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image);

// 1 to 8 of the bytes of a JPEG's APP1 segment; 1, upright, where it holds no orientation.
int ExifOrientation(std::span<const uint8_t> segment);
// Turns the image upright; true for orientations that exchange height and width.
bool SwapsSides(int orientation);
void TurnUpright(int orientation, Image* image);

}  // namespace crema

#endif  // CREMA_IMAGE_FORMATS_H_
