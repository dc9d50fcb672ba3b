// The formats of libcrema_codecs, as the functions of image/formats.h.
#ifndef CREMA_CODECS_CODECS_H_
#define CREMA_CODECS_CODECS_H_

#include <cstdint>
#include <span>
#include <string>

#include "image/codec.h"

namespace crema::codecs {

std::string ReadWebpInfo(std::span<const uint8_t> bytes, ImageInfo* info, int* orientation);
std::string DecodeWebp(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image, int* orientation);
// The first image of the file.
std::string ReadTiffInfo(std::span<const uint8_t> bytes, ImageInfo* info, int* orientation);
std::string DecodeTiff(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image, int* orientation);

}  // namespace crema::codecs

#endif  // CREMA_CODECS_CODECS_H_
