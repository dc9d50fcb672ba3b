// The formats, one source file each; those of CodecLibrary are in src/codecs.
#ifndef CREMA_IMAGE_FORMATS_H_
#define CREMA_IMAGE_FORMATS_H_

#include <cstdint>
#include <span>
#include <string>

#include "image/codec.h"

namespace crema {

// More pixels are taken for damage or an attack.
constexpr int64_t kMostPixels = int64_t{1} << 28;

// As the functions of codec.h; of JPEG and PNG before they are turned upright, whose Exif orientation (1 to 8) goes to
// `orientation`.
std::string ReadJpegInfo(std::span<const uint8_t> bytes, ImageInfo* info, int* orientation);
std::string DecodeJpeg(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image, int* orientation);
std::string ReadPngInfo(std::span<const uint8_t> bytes, ImageInfo* info, int* orientation);
std::string DecodePng(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image, int* orientation);
std::string ReadBmpInfo(std::span<const uint8_t> bytes, ImageInfo* info);
std::string DecodeBmp(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image);
std::string ReadPnmInfo(std::span<const uint8_t> bytes, ImageInfo* info);
std::string DecodePnm(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image);

// What libcrema_codecs exports under the name "crema_codec_library": formats whose libraries are loaded when the first
// such image is there. `orientation` as of JPEG.
constexpr int kCodecInterface = 2;
struct CodecLibrary {
  int interface_version;
  std::string (*read_info)(ImageFormat format, std::span<const uint8_t> bytes, ImageInfo* info, int* orientation);
  std::string (*decode)(ImageFormat format, std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image,
                        int* orientation);
};

// 1 to 8 of the bytes of a JPEG's APP1 segment, a PNG's eXIf or a WebP's EXIF chunk; 1, upright, where these hold no
// orientation.
int ExifOrientation(std::span<const uint8_t> exif);
// Turns the image upright; true for orientations that exchange height and width.
bool SwapsSides(int orientation);
void TurnUpright(int orientation, Image* image);

// What is said of a file whose bytes are no image: "is damaged or cut short (it ends early) ...".
std::string Damaged(const std::string& why);
// Why an image of this size is not read, empty where it is: "claims 90000x90000 pixels ...".
std::string SizeProblem(int64_t height, int64_t width);
// A row of `width` pixels of `from_channels` (1, or 3: blue, green, red) as one of 1 or 3 channels, which may lie over
// it where these are no more; grey is luminance as OpenCV rounds it.
void WriteRowAs(const uint8_t* from, int from_channels, int64_t width, int channels, uint8_t* to);
// Of an image of 3 channels, where it lies.
void MakeGrey(Image* image);
// 1 or 3: what an image of `stored` channels is decoded to.
int ChannelsFor(DecodeOptions::Colors colors, int stored);

}  // namespace crema

#endif  // CREMA_IMAGE_FORMATS_H_
