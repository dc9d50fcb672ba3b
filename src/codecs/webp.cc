// WebP through libwebp (https://developers.google.com/speed/webp).
#include <webp/decode.h>

#include <cstring>

#include "codecs/codecs.h"
#include "image/formats.h"

namespace crema::codecs {

namespace {

std::string ProblemOf(VP8StatusCode status) {
  const char* why = status == VP8_STATUS_NOT_ENOUGH_DATA       ? "it ends early"
                    : status == VP8_STATUS_OUT_OF_MEMORY       ? "not enough memory"
                    : status == VP8_STATUS_UNSUPPORTED_FEATURE ? "of a newer kind"
                                                               : "its bytes are no such image";
  return Damaged(std::string("WebP: ") + why);
}

// Of the chunk EXIF (https://developers.google.com/speed/webp/docs/riff_container), behind the pixels.
int OrientationOf(std::span<const uint8_t> bytes) {
  constexpr size_t kForm = 12, kHeader = 8;  // "RIFF", length, "WEBP"; name and length of a chunk
  for (size_t at = kForm; bytes.size() >= at + kHeader;) {
    const uint8_t* chunk = bytes.data() + at;
    const size_t length = size_t{chunk[7]} << 24 | size_t{chunk[6]} << 16 | size_t{chunk[5]} << 8 | chunk[4];
    if (length > bytes.size() - at - kHeader) return 1;
    if (std::memcmp(chunk, "EXIF", 4) == 0) return ExifOrientation(bytes.subspan(at + kHeader, length));
    at += kHeader + length + length % 2;
  }
  return 1;
}

}  // namespace

std::string ReadWebpInfo(std::span<const uint8_t> bytes, ImageInfo* info, int* orientation) {
  WebPBitstreamFeatures features;
  if (const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features); status != VP8_STATUS_OK) {
    return ProblemOf(status);
  }
  if (features.has_animation) return "is a WebP animation, not one image; convert one picture of it to PNG";
  *info = {ImageFormat::kWebp, features.height, features.width, 3};
  *orientation = OrientationOf(bytes);
  return SizeProblem(features.height, features.width);
}

std::string DecodeWebp(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image, int* orientation) {
  ImageInfo info;
  if (std::string problem = ReadWebpInfo(bytes, &info, orientation); !problem.empty()) return problem;
  image->Resize(info.height, info.width, 3);
  WebPDecoderConfig config;
  if (!WebPInitDecoderConfig(&config)) return "cannot be read: libwebp is of another version than crema was built with";
  config.output.colorspace = MODE_BGR;
  config.output.is_external_memory = 1;
  config.output.u.RGBA = {image->pixels.data(), static_cast<int>(image->row_bytes()), image->size()};
  const VP8StatusCode status = WebPDecode(bytes.data(), bytes.size(), &config);
  WebPFreeDecBuffer(&config.output);
  if (status != VP8_STATUS_OK) return ProblemOf(status);
  if (ChannelsFor(options.colors, 3) == 1) MakeGrey(image);
  return {};
}

}  // namespace crema::codecs
