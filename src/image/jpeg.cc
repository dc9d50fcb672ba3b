// JPEG through libjpeg-turbo (https://libjpeg-turbo.org), whose C interface leaves by longjmp: functions here that call
// it after setjmp hold no objects with destructors.
#include <cstdio>
// clang-format off: jpeglib.h asks for FILE, and jerror.h for jpeglib.h.
#include <jerror.h>
#include <jpeglib.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <memory>

#include "crema/error.h"
#include "image/formats.h"

namespace crema {

namespace {

struct ErrorManager {
  jpeg_error_mgr base;  // first, so that the library's pointer to it is one to this
  std::jmp_buf leave;
  char message[JMSG_LENGTH_MAX] = "";
};

ErrorManager& ManagerOf(j_common_ptr codec) { return *reinterpret_cast<ErrorManager*>(codec->err); }

[[noreturn]] void Leave(j_common_ptr codec) {
  ErrorManager& manager = ManagerOf(codec);
  manager.base.format_message(codec, manager.message);
  std::longjmp(manager.leave, 1);
}

// Warnings after which the library fills in pixels by guesses are errors here.
void OnMessage(j_common_ptr codec, int level) {
  if (level >= 0) return;
  const int code = codec->err->msg_code;
  if (code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM && code != JWRN_JFIF_MAJOR) Leave(codec);
}

void OnOutput(j_common_ptr) {}

jpeg_error_mgr* Prepare(ErrorManager* manager) {
  jpeg_std_error(&manager->base);
  manager->base.error_exit = Leave;
  manager->base.emit_message = OnMessage;
  manager->base.output_message = OnOutput;
  return &manager->base;
}

// How images are asked for: CMYK comes as it is, everything else in the wanted colours.
J_COLOR_SPACE OutputSpace(const jpeg_decompress_struct& codec, DecodeOptions::Colors colors) {
  if (codec.jpeg_color_space == JCS_CMYK || codec.jpeg_color_space == JCS_YCCK) return JCS_CMYK;
  const bool grey = colors == DecodeOptions::Colors::kGray ||
                    (colors == DecodeOptions::Colors::kAsStored && codec.jpeg_color_space == JCS_GRAYSCALE);
  return grey ? JCS_GRAYSCALE : JCS_EXT_BGR;
}

int OrientationOf(const jpeg_decompress_struct& codec) {
  for (const jpeg_marker_struct* marker = codec.marker_list; marker; marker = marker->next) {
    const int orientation = ExifOrientation({marker->data, marker->data_length});
    if (orientation != 1) return orientation;
  }
  return 1;
}

// Adobe's CMYK, which is stored inverted, in place of four bytes three.
void CmykToBgr(uint8_t* row, int width) {
  const uint8_t* from = row;
  for (int x = 0; x < width; ++x, from += 4, row += 3) {
    const int cyan = from[0], magenta = from[1], yellow = from[2], key = from[3];
    row[0] = static_cast<uint8_t>(key - ((255 - yellow) * key >> 8));
    row[1] = static_cast<uint8_t>(key - ((255 - magenta) * key >> 8));
    row[2] = static_cast<uint8_t>(key - ((255 - cyan) * key >> 8));
  }
}

// The rows as they come, four channels of CMYK in a buffer of the library's.
void ReadRows(jpeg_decompress_struct* codec, Image* image) {
  const bool cmyk = codec->out_color_space == JCS_CMYK;
  const int width = static_cast<int>(codec->output_width);
  JSAMPARRAY buffer = nullptr;
  if (cmyk) {
    buffer = codec->mem->alloc_sarray(reinterpret_cast<j_common_ptr>(codec), JPOOL_IMAGE, codec->output_width * 4, 1);
  }
  while (codec->output_scanline < codec->output_height) {
    uint8_t* row = image->row(static_cast<int>(codec->output_scanline));
    JSAMPROW target = cmyk ? buffer[0] : row;
    if (jpeg_read_scanlines(codec, &target, 1) != 1) ERREXIT(codec, JERR_INPUT_EMPTY);
    if (!cmyk) continue;
    CmykToBgr(target, width);
    std::copy(target, target + size_t{3} * codec->output_width, row);
  }
}

// What both functions of the interface do; `image` null: the header only.
std::string Read(std::span<const uint8_t> bytes, const DecodeOptions& options, ImageInfo* info, Image* image,
                 int* orientation) {
  jpeg_decompress_struct codec;
  ErrorManager manager;
  codec.err = Prepare(&manager);
  if (setjmp(manager.leave) != 0) {
    jpeg_destroy_decompress(&codec);
    return Damaged(manager.message);
  }
  jpeg_create_decompress(&codec);
  jpeg_save_markers(&codec, JPEG_APP0 + 1, 0xffff);
  jpeg_mem_src(&codec, bytes.data(), bytes.size());
  jpeg_read_header(&codec, TRUE);
  *orientation = OrientationOf(codec);
  info->format = ImageFormat::kJpeg;
  info->height = static_cast<int>(codec.image_height);
  info->width = static_cast<int>(codec.image_width);
  info->channels = codec.jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
  const bool too_large = int64_t{info->height} * info->width > kMostPixels;
  if (image && !too_large) {
    codec.out_color_space = OutputSpace(codec, options.colors);
    codec.scale_num = 1;
    codec.scale_denom = static_cast<unsigned>(options.reduction);
    jpeg_start_decompress(&codec);
    image->Resize(static_cast<int>(codec.output_height), static_cast<int>(codec.output_width),
                  codec.out_color_space == JCS_GRAYSCALE ? 1 : 3);
    ReadRows(&codec, image);
    if (codec.out_color_space == JCS_CMYK && options.colors == DecodeOptions::Colors::kGray) MakeGrey(image);
    jpeg_finish_decompress(&codec);
  }
  jpeg_destroy_decompress(&codec);
  return too_large ? SizeProblem(info->height, info->width) : "";
}

// malloc's memory, which outlives the jumps.
struct JpegBytes {
  unsigned char* data = nullptr;
  unsigned long length = 0;
};

// Returns whether it came to an end; else manager->message says why.
bool Write(const Image& image, int quality, ErrorManager* manager, JpegBytes* bytes) {
  jpeg_compress_struct codec;
  codec.err = Prepare(manager);
  if (setjmp(manager->leave) != 0) {
    jpeg_destroy_compress(&codec);
    return false;
  }
  jpeg_create_compress(&codec);
  jpeg_mem_dest(&codec, &bytes->data, &bytes->length);
  codec.image_height = static_cast<unsigned>(image.height);
  codec.image_width = static_cast<unsigned>(image.width);
  codec.input_components = image.channels;
  codec.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_EXT_BGR;
  jpeg_set_defaults(&codec);
  jpeg_set_quality(&codec, quality, TRUE);
  jpeg_start_compress(&codec, TRUE);
  while (codec.next_scanline < codec.image_height) {
    JSAMPROW row = const_cast<uint8_t*>(image.row(static_cast<int>(codec.next_scanline)));
    jpeg_write_scanlines(&codec, &row, 1);
  }
  jpeg_finish_compress(&codec);
  jpeg_destroy_compress(&codec);
  return true;
}

}  // namespace

std::string ReadJpegInfo(std::span<const uint8_t> bytes, ImageInfo* info, int* orientation) {
  return Read(bytes, {}, info, nullptr, orientation);
}

std::string DecodeJpeg(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image, int* orientation) {
  ImageInfo info;
  return Read(bytes, options, &info, image, orientation);
}

std::vector<uint8_t> EncodeJpeg(const Image& image, int quality) {
  ErrorManager manager;
  JpegBytes bytes;
  const bool written = Write(image, quality, &manager, &bytes);
  const std::unique_ptr<unsigned char, void (*)(void*)> owner(bytes.data, std::free);
  if (!written) throw EnvironmentError(std::string("an image cannot be written as JPEG: ") + manager.message);
  return {bytes.data, bytes.data + bytes.length};
}

}  // namespace crema
