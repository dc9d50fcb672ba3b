#include "image/codec.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/lower_case.h"
#include "base/plugin.h"
#include "image/formats.h"

namespace crema {

namespace {

bool StartsWith(std::span<const uint8_t> bytes, std::initializer_list<uint8_t> magic) {
  return bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), bytes.begin());
}

bool Holds(std::span<const uint8_t> bytes, size_t at, const char* text) {
  const size_t length = std::strlen(text);
  return bytes.size() >= at + length && std::memcmp(bytes.data() + at, text, length) == 0;
}

// As far as the beginning tells.
bool IsText(std::span<const uint8_t> bytes) {
  const auto begin = bytes.first(std::min<size_t>(bytes.size(), 512));
  return std::none_of(begin.begin(), begin.end(),
                      [](uint8_t byte) { return (byte < 0x20 && (byte < '\t' || byte > '\r')) || byte == 0x7f; });
}

std::string UnknownFormat(std::span<const uint8_t> bytes) {
  if (bytes.empty()) return "is empty";
  const char* name =
      Holds(bytes, 0, "GIF8")       ? "is a GIF image"
      : Holds(bytes, 4, "ftyp")     ? "is a HEIF or AVIF image"
      : Holds(bytes, 0, "\xff\x0a") ? "is a JPEG XL image"
      : bytes.size() > 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' && std::isspace(bytes[2]) != 0
          ? "is a PNM image of another kind than binary PGM and PPM (P5, P6)"
          : nullptr;
  const std::string read = "; " + std::string(kReadFormats) + " are read";
  if (name == nullptr && IsText(bytes)) {
    return "is text" + std::string(bytes[0] == '<' ? " (a web page?)" : "") + ", not an image" + read;
  }
  return (name != nullptr ? name : "is no image that is known") + read + ", convert it to one of them";
}

// The second character of "P5" and what follows it.
bool IsPnm(std::span<const uint8_t> bytes) {
  return bytes.size() > 2 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6') &&
         (bytes[2] == '#' || std::isspace(bytes[2]) != 0);
}

// "BM" alone may begin a text.
bool IsBmp(std::span<const uint8_t> bytes) {
  return Holds(bytes, 0, "BM") && bytes.size() > 17 && bytes[15] < 4 && bytes[16] == 0 && bytes[17] == 0;
}

const CodecLibrary& Codecs(ImageFormat format) {
  // Tried again where it failed: this is only reached when something needs it.
  static const auto& library =
      *static_cast<const CodecLibrary*>(LoadTable({"CREMA_CODEC_LIBRARY", "libcrema_codecs.so", "libwebp and libtiff",
                                                   "libwebp-dev libtiff-dev", "crema_codec_library", kCodecInterface},
                                                  std::string("read ") + NameOf(format) + " images"));
  return library;
}

struct FormatName {
  const char *name, *ending;
};

// By ImageFormat.
constexpr FormatName kFormatNames[] = {{"unknown", ""}, {"JPEG", "jpg"},  {"PNG", "png"}, {"BMP", "bmp"},
                                       {"PNM", "pnm"},  {"WebP", "webp"}, {"TIFF", "tif"}};

}  // namespace

const char kReadFormats[] = "JPEG, PNG, BMP, PGM, PPM, WebP and TIFF";

ImageFormat FormatOf(std::span<const uint8_t> bytes) {
  if (StartsWith(bytes, {0xff, 0xd8, 0xff})) return ImageFormat::kJpeg;
  if (StartsWith(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'})) return ImageFormat::kPng;
  if (IsBmp(bytes)) return ImageFormat::kBmp;
  if (IsPnm(bytes)) return ImageFormat::kPnm;
  if (Holds(bytes, 0, "RIFF") && Holds(bytes, 8, "WEBP")) return ImageFormat::kWebp;
  if (StartsWith(bytes, {'I', 'I', 42, 0}) || StartsWith(bytes, {'M', 'M', 0, 42}) ||
      StartsWith(bytes, {'I', 'I', 43, 0}) || StartsWith(bytes, {'M', 'M', 0, 43})) {
    return ImageFormat::kTiff;
  }
  return ImageFormat::kUnknown;
}

const char* NameOf(ImageFormat format) { return kFormatNames[static_cast<int>(format)].name; }
const char* EndingOf(ImageFormat format) { return kFormatNames[static_cast<int>(format)].ending; }

bool HasImageName(const std::string& path) {
  const std::string extension = LowerCase(std::filesystem::path(path).extension().string());
  static constexpr const char* kEndings[] = {".jpg", ".jpeg", ".png",  ".bmp", ".pgm",
                                             ".ppm", ".pnm",  ".webp", ".tif", ".tiff"};
  return std::find(std::begin(kEndings), std::end(kEndings), extension) != std::end(kEndings);
}

std::string ReadImageInfo(std::span<const uint8_t> bytes, ImageInfo* info) {
  std::string problem;
  int orientation = 1;
  switch (const ImageFormat format = FormatOf(bytes)) {
    case ImageFormat::kUnknown:
      return UnknownFormat(bytes);
    case ImageFormat::kJpeg:
      problem = ReadJpegInfo(bytes, info, &orientation);
      break;
    case ImageFormat::kPng:
      problem = ReadPngInfo(bytes, info, &orientation);
      break;
    case ImageFormat::kBmp:
      return ReadBmpInfo(bytes, info);
    case ImageFormat::kPnm:
      return ReadPnmInfo(bytes, info);
    case ImageFormat::kWebp:
    case ImageFormat::kTiff:
      problem = Codecs(format).read_info(format, bytes, info, &orientation);
      break;
  }
  info->orientation = orientation;
  if (SwapsSides(orientation)) std::swap(info->height, info->width);
  return problem;
}

std::string DecodeImage(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image) {
  const ImageFormat format = FormatOf(bytes);
  if (options.colors == DecodeOptions::Colors::kNumbers && format != ImageFormat::kPng &&
      format != ImageFormat::kUnknown) {
    return std::string("is a ") + NameOf(format) +
           (format == ImageFormat::kJpeg ? ", which changes" : ", not a PNG, for") +
           " the labels of pixels; write label images as PNG";
  }
  std::string problem;
  int orientation = 1;
  switch (format) {
    case ImageFormat::kUnknown:
      return UnknownFormat(bytes);
    case ImageFormat::kJpeg:
      problem = DecodeJpeg(bytes, options, image, &orientation);
      break;
    case ImageFormat::kPng:
      problem = DecodePng(bytes, options, image, &orientation);
      break;
    case ImageFormat::kBmp:
      return DecodeBmp(bytes, options, image);
    case ImageFormat::kPnm:
      return DecodePnm(bytes, options, image);
    case ImageFormat::kWebp:
    case ImageFormat::kTiff:
      problem = Codecs(format).decode(format, bytes, options, image, &orientation);
      break;
  }
  if (problem.empty()) TurnUpright(orientation, image);
  return problem;
}

}  // namespace crema
