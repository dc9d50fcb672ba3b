// PNG through libpng (http://www.libpng.org), which leaves by longjmp, as jpeg.cc says.
#include <png.h>

#include <csetjmp>
#include <cstring>

#include "crema/error.h"
#include "image/formats.h"

namespace crema {

namespace {

struct Reading {
  std::span<const uint8_t> rest;
  char message[256] = "";
};

void OnError(png_structp codec, png_const_charp message) {
  auto* text = static_cast<char*>(png_get_error_ptr(codec));
  std::strncpy(text, message, 255);
  png_longjmp(codec, 1);
}

// A checksum that does not fit is an error; what else the library warns of does not touch pixels.
void OnWarning(png_structp, png_const_charp) {}

void ReadBytes(png_structp codec, png_bytep to, size_t count) {
  auto* reading = static_cast<Reading*>(png_get_io_ptr(codec));
  if (reading->rest.size() < count) png_error(codec, "premature end of file");
  std::memcpy(to, reading->rest.data(), count);
  reading->rest = reading->rest.subspan(count);
}

void WriteBytes(png_structp codec, png_bytep from, size_t count) {
  auto* bytes = static_cast<std::vector<uint8_t>*>(png_get_io_ptr(codec));
  try {
    bytes->insert(bytes->end(), from, from + count);
  } catch (const std::bad_alloc&) {
    png_error(codec, "out of memory");
  }
}

void Flush(png_structp) {}

bool IsGrey(int color_type) { return color_type == PNG_COLOR_TYPE_GRAY || color_type == PNG_COLOR_TYPE_GRAY_ALPHA; }

// Why the pixels are no numbers of one byte; empty where they are.
std::string NumbersProblem(png_structp codec, png_infop header) {
  const int color_type = png_get_color_type(codec, header);
  if (!IsGrey(color_type) && color_type != PNG_COLOR_TYPE_PALETTE) {
    return "has colours without a palette; a label image holds the class of each pixel as a grey value, or as its "
           "number in a palette";
  }
  if (png_get_bit_depth(codec, header) > 8) return "has 16 bits a pixel; write label images with 8";
  return {};
}

// Eight bits a channel, no transparency, in the wanted colours.
void SetTransforms(png_structp codec, png_infop header, DecodeOptions::Colors colors) {
  const int color_type = png_get_color_type(codec, header);
  png_set_strip_16(codec);
  png_set_packing(codec);
  if (colors == DecodeOptions::Colors::kNumbers) return png_set_strip_alpha(codec);
  if (color_type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(codec);
  if (color_type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(codec);
  png_set_strip_alpha(codec);
  if (IsGrey(color_type)) {
    if (colors == DecodeOptions::Colors::kColor) png_set_gray_to_rgb(codec);
  } else if (colors == DecodeOptions::Colors::kGray) {
    png_set_rgb_to_gray_fixed(codec, PNG_ERROR_ACTION_NONE, 29900, 58700);
  }
  png_set_bgr(codec);
}

void ReadRows(png_structp codec, png_infop header, Image* image) {
  const int passes = png_set_interlace_handling(codec);
  png_read_update_info(codec, header);
  const int channels = png_get_channels(codec, header);
  if (channels != 1 && channels != 3) png_error(codec, "unexpected number of channels");
  image->Resize(static_cast<int>(png_get_image_height(codec, header)),
                static_cast<int>(png_get_image_width(codec, header)), channels);
  if (png_get_rowbytes(codec, header) != image->row_bytes()) png_error(codec, "unexpected row size");
  for (int pass = 0; pass < passes; ++pass) {
    for (int y = 0; y < image->height; ++y) png_read_row(codec, image->row(y), nullptr);
  }
}

// Of the chunk eXIf, which may stand behind the pixels, where libpng has not looked yet when it knows the extents.
int OrientationOf(std::span<const uint8_t> bytes) {
  constexpr size_t kSignature = 8, kHeader = 8, kChecksum = 4;
  for (size_t at = kSignature; bytes.size() >= at + kHeader + kChecksum;) {
    const uint8_t* chunk = bytes.data() + at;
    const size_t length = size_t{chunk[0]} << 24 | size_t{chunk[1]} << 16 | size_t{chunk[2]} << 8 | chunk[3];
    if (length > bytes.size() - at - kHeader - kChecksum) return 1;
    if (std::memcmp(chunk + 4, "eXIf", 4) == 0) return ExifOrientation(bytes.subspan(at + kHeader, length));
    at += kHeader + length + kChecksum;
  }
  return 1;
}

std::string Read(std::span<const uint8_t> bytes, const DecodeOptions& options, ImageInfo* info, Image* image) {
  Reading reading{bytes};
  png_structp codec = png_create_read_struct(PNG_LIBPNG_VER_STRING, reading.message, OnError, OnWarning);
  png_infop header = codec ? png_create_info_struct(codec) : nullptr;
  if (!header) {
    png_destroy_read_struct(&codec, nullptr, nullptr);
    throw EnvironmentError("libpng cannot be used: not enough memory, or another version than it was built with");
  }
  if (setjmp(png_jmpbuf(codec)) != 0) {
    png_destroy_read_struct(&codec, &header, nullptr);
    return Damaged(reading.message);
  }
  png_set_read_fn(codec, &reading, ReadBytes);
  png_set_crc_action(codec, PNG_CRC_ERROR_QUIT, PNG_CRC_WARN_DISCARD);
  png_set_user_limits(codec, kMostPixels, kMostPixels);
  png_read_info(codec, header);
  info->format = ImageFormat::kPng;
  info->height = static_cast<int>(png_get_image_height(codec, header));
  info->width = static_cast<int>(png_get_image_width(codec, header));
  info->channels = IsGrey(png_get_color_type(codec, header)) ? 1 : 3;
  if (std::string problem = SizeProblem(info->height, info->width); !problem.empty()) {
    png_destroy_read_struct(&codec, &header, nullptr);
    return problem;
  }
  if (image && options.colors == DecodeOptions::Colors::kNumbers) {
    std::string problem = NumbersProblem(codec, header);
    if (!problem.empty()) {
      png_destroy_read_struct(&codec, &header, nullptr);
      return problem;
    }
  }
  if (image) {
    SetTransforms(codec, header, options.colors);
    ReadRows(codec, header, image);
    png_read_end(codec, nullptr);
  }
  png_destroy_read_struct(&codec, &header, nullptr);
  return {};
}

// The bits of a number, from the lowest on, are dealt out to red, green and blue, whose highest bits they become.
std::vector<png_color> VocColors() {
  std::vector<png_color> colors(256);
  for (int number = 0; number < 256; ++number) {
    int red = 0, green = 0, blue = 0;
    for (int bit = 0; bit < 8; bit += 3) {
      const int place = 7 - bit / 3;
      red |= (number >> bit & 1) << place;
      green |= (number >> (bit + 1) & 1) << place;
      blue |= (number >> (bit + 2) & 1) << place;
    }
    colors[number] = {static_cast<png_byte>(red), static_cast<png_byte>(green), static_cast<png_byte>(blue)};
  }
  return colors;
}

// Returns whether it came to an end; else `message` says why. With a palette the pixels are numbers in it.
bool Write(const Image& image, const std::vector<png_color>& palette, char* message, std::vector<uint8_t>* bytes) {
  png_structp codec = png_create_write_struct(PNG_LIBPNG_VER_STRING, message, OnError, OnWarning);
  png_infop header = codec ? png_create_info_struct(codec) : nullptr;
  if (!header || setjmp(png_jmpbuf(codec)) != 0) {
    png_destroy_write_struct(&codec, &header);
    return false;
  }
  png_set_write_fn(codec, bytes, WriteBytes, Flush);
  png_set_IHDR(codec, header, static_cast<unsigned>(image.width), static_cast<unsigned>(image.height), 8,
               !palette.empty()      ? PNG_COLOR_TYPE_PALETTE
               : image.channels == 1 ? PNG_COLOR_TYPE_GRAY
                                     : PNG_COLOR_TYPE_RGB,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!palette.empty()) png_set_PLTE(codec, header, palette.data(), static_cast<int>(palette.size()));
  png_write_info(codec, header);
  png_set_bgr(codec);
  for (int y = 0; y < image.height; ++y) png_write_row(codec, image.row(y));
  png_write_end(codec, nullptr);
  png_destroy_write_struct(&codec, &header);
  return true;
}

std::vector<uint8_t> Encode(const Image& image, const std::vector<png_color>& palette) {
  std::vector<uint8_t> bytes;
  char message[256] = "";
  if (!Write(image, palette, message, &bytes)) {
    throw EnvironmentError(std::string("an image cannot be written as PNG: ") + message);
  }
  return bytes;
}

}  // namespace

std::string ReadPngInfo(std::span<const uint8_t> bytes, ImageInfo* info, int* orientation) {
  *orientation = OrientationOf(bytes);
  return Read(bytes, {}, info, nullptr);
}

std::string DecodePng(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image, int* orientation) {
  ImageInfo info;
  *orientation = OrientationOf(bytes);
  return Read(bytes, options, &info, image);
}

std::vector<uint8_t> EncodePng(const Image& image) { return Encode(image, {}); }

std::vector<uint8_t> EncodeLabelPng(const Image& numbers) { return Encode(numbers, VocColors()); }

}  // namespace crema
