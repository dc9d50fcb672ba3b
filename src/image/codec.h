// Image files to pixels, and JPEG and PNG back. What an image is shows in its first bytes: names do not matter. All
// functions may be called by several threads at once.
#ifndef CREMA_IMAGE_CODEC_H_
#define CREMA_IMAGE_CODEC_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "image/image.h"

namespace crema {

// kPnm: PGM and PPM in binary. WebP and TIFF are read by libcrema_codecs, a library of its own that is loaded when the
// first of them is there; functions below throw EnvironmentError, with what to install, where crema was built without.
enum class ImageFormat { kUnknown, kJpeg, kPng, kBmp, kPnm, kWebp, kTiff };

// By the first bytes.
ImageFormat FormatOf(std::span<const uint8_t> bytes);
// "JPEG"; and the usual ending of such a file's name, "jpg". Of kUnknown "unknown" and "".
const char* NameOf(ImageFormat format);
const char* EndingOf(ImageFormat format);
// Whether a file of this name is taken for an image: one that ends in .jpg, .jpeg, .png, .bmp, .pgm, .ppm, .pnm, .webp,
// .tif or .tiff, in any case.
bool HasImageName(const std::string& path);
// "JPEG, PNG, ..." for messages.
extern const char kReadFormats[];

// What a file's header says.
struct ImageInfo {
  ImageFormat format = ImageFormat::kUnknown;
  int height = 0, width = 0;  // upright, as DecodeImage gives the image
  int channels = 0;           // 1 or 3; transparency is left out
  int orientation = 1;        // Exif's, 1 to 8, which is how it is stored: above 4 with height and width exchanged
};

struct DecodeOptions {
  // kNumbers: of label images, whose pixels are numbers: grey values as stored, or numbers in a palette. PNG alone is
  // read so.
  enum class Colors { kAsStored, kColor, kGray, kNumbers };
  Colors colors = Colors::kColor;
  // 1, 2, 4 or 8: the image is wanted at 1/reduction of its size, rounded up. JPEG decodes it so, which is several
  // times faster and averages pixels; other formats ignore it.
  int reduction = 1;
};

// Both return what is wrong with the bytes, with the remedy: "is cut short (...)"; empty when nothing is. What
// libraries decode only with guesses, such as a file that is cut short, is wrong. Images from phones are turned
// upright, as Exif's orientation says (https://www.cipa.jp/std/documents/e/DC-008-2012_E.pdf) in a JPEG, PNG, WebP or
// TIFF, as OpenCV and so Caffe do.
[[nodiscard]] std::string ReadImageInfo(std::span<const uint8_t> bytes, ImageInfo* info);
[[nodiscard]] std::string DecodeImage(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image);

// Where the point (x, y) of the stored image, in pixels from its upper left corner, lies in the upright one, which has
// these extents.
void TurnPointUpright(int orientation, float height, float width, float* x, float* y);

// Baseline JPEG with halved colour resolution, quality 1 to 100; OpenCV writes 95.
std::vector<uint8_t> EncodeJpeg(const Image& image, int quality = 95);
std::vector<uint8_t> EncodePng(const Image& image);
// Of one channel, numbers of classes: with a palette, in the colours that PASCAL VOC's label images have, so that they
// can be told apart, and read back as numbers.
std::vector<uint8_t> EncodeLabelPng(const Image& numbers);

}  // namespace crema

#endif  // CREMA_IMAGE_CODEC_H_
