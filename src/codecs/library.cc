#include "codecs/codecs.h"
#include "image/formats.h"

namespace crema::codecs {

namespace {

std::string ReadInfo(ImageFormat format, std::span<const uint8_t> bytes, ImageInfo* info, int* orientation) {
  return format == ImageFormat::kWebp ? ReadWebpInfo(bytes, info, orientation) : ReadTiffInfo(bytes, info, orientation);
}

std::string Decode(ImageFormat format, std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image,
                   int* orientation) {
  return format == ImageFormat::kWebp ? DecodeWebp(bytes, options, image, orientation)
                                      : DecodeTiff(bytes, options, image, orientation);
}

}  // namespace

}  // namespace crema::codecs

extern "C" {
extern const crema::CodecLibrary crema_codec_library;
const crema::CodecLibrary crema_codec_library{crema::kCodecInterface, crema::codecs::ReadInfo, crema::codecs::Decode};
}
