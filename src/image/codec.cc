#include "image/codec.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <utility>

#include "crema/error.h"
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

std::string UnknownFormat(std::span<const uint8_t> bytes) {
  const char* name = bytes.empty()                                        ? "is empty"
                     : Holds(bytes, 0, "RIFF") && Holds(bytes, 8, "WEBP") ? "is a WebP image"
                     : Holds(bytes, 0, "GIF8")                            ? "is a GIF image"
                     : Holds(bytes, 0, "BM")                              ? "is a BMP image"
                     : Holds(bytes, 0, "II*") || Holds(bytes, 0, "MM")    ? "is a TIFF image"
                     : Holds(bytes, 4, "ftyp")                            ? "is a HEIF or AVIF image"
                     : Holds(bytes, 0, "<")                               ? "is text (a web page?), not an image"
                                                                          : "is no image that is known";
  return std::string(name) + "; JPEG and PNG are read, convert it to one of them";
}

}  // namespace

ImageFormat FormatOf(std::span<const uint8_t> bytes) {
  if (StartsWith(bytes, {0xff, 0xd8, 0xff})) return ImageFormat::kJpeg;
  if (StartsWith(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'})) return ImageFormat::kPng;
  return ImageFormat::kUnknown;
}

std::string ReadImageInfo(std::span<const uint8_t> bytes, ImageInfo* info) {
  const ImageFormat format = FormatOf(bytes);
  if (format == ImageFormat::kUnknown) return UnknownFormat(bytes);
  if (format == ImageFormat::kPng) return ReadPngInfo(bytes, info);
  int orientation = 1;
  std::string problem = ReadJpegInfo(bytes, info, &orientation);
  if (SwapsSides(orientation)) std::swap(info->height, info->width);
  return problem;
}

std::string DecodeImage(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image) {
  const ImageFormat format = FormatOf(bytes);
  if (format == ImageFormat::kUnknown) return UnknownFormat(bytes);
  if (format == ImageFormat::kPng) return DecodePng(bytes, options, image);
  if (options.colors == DecodeOptions::Colors::kNumbers) {
    return "is a JPEG, which changes the labels of pixels; write label images as PNG";
  }
  int orientation = 1;
  std::string problem = DecodeJpeg(bytes, options, image, &orientation);
  if (problem.empty()) TurnUpright(orientation, image);
  return problem;
}

std::vector<uint8_t> ReadFileBytes(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw EnvironmentError("cannot open \"" + path + "\": " + std::strerror(errno));
  std::vector<uint8_t> bytes;
  size_t used = 0;
  for (;;) {
    bytes.resize(used + (used == 0 ? size_t{1} << 16 : used));
    const size_t read = std::fread(bytes.data() + used, 1, bytes.size() - used, file.get());
    used += read;
    if (read == 0) break;
  }
  if (std::ferror(file.get())) throw EnvironmentError("cannot read \"" + path + "\": " + std::strerror(errno));
  bytes.resize(used);
  return bytes;
}

}  // namespace crema
