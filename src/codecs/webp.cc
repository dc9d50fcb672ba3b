// WebP through libwebp (https://developers.google.com/speed/webp).
#include <webp/decode.h>

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

}  // namespace

std::string ReadWebpInfo(std::span<const uint8_t> bytes, ImageInfo* info) {
  WebPBitstreamFeatures features;
  if (const VP8StatusCode status = WebPGetFeatures(bytes.data(), bytes.size(), &features); status != VP8_STATUS_OK) {
    return ProblemOf(status);
  }
  if (features.has_animation) return "is a WebP animation, not one image; convert one picture of it to PNG";
  *info = {ImageFormat::kWebp, features.height, features.width, 3};
  return SizeProblem(features.height, features.width);
}

std::string DecodeWebp(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image) {
  ImageInfo info;
  if (std::string problem = ReadWebpInfo(bytes, &info); !problem.empty()) return problem;
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
