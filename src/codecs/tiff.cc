// TIFF through libtiff (https://libtiff.gitlab.io/libtiff), by its interface that makes 8 bits of whatever is stored.
#include <tiffio.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>

#include "codecs/codecs.h"
#include "image/formats.h"

namespace crema::codecs {

namespace {

// The file, and the first thing that libtiff said of it.
struct Source {
  std::span<const uint8_t> bytes;
  size_t at = 0;
  char message[256] = "";
};

tmsize_t Read(thandle_t handle, void* to, tmsize_t count) {
  auto* source = static_cast<Source*>(handle);
  const size_t taken = std::min(static_cast<size_t>(count), source->bytes.size() - source->at);
  std::memcpy(to, source->bytes.data() + source->at, taken);
  source->at += taken;
  return static_cast<tmsize_t>(taken);
}

tmsize_t Write(thandle_t, void*, tmsize_t) { return -1; }

toff_t Seek(thandle_t handle, toff_t offset, int from) {
  auto* source = static_cast<Source*>(handle);
  const toff_t base = from == SEEK_CUR ? source->at : from == SEEK_END ? source->bytes.size() : 0;
  source->at = static_cast<size_t>(std::min<toff_t>(base + offset, source->bytes.size()));
  return source->at;
}

int Close(thandle_t) { return 0; }
toff_t Size(thandle_t handle) { return static_cast<Source*>(handle)->bytes.size(); }

int Map(thandle_t handle, void** base, toff_t* size) {
  auto* source = static_cast<Source*>(handle);
  *base = const_cast<uint8_t*>(source->bytes.data());
  *size = source->bytes.size();
  return 1;
}

void Unmap(thandle_t, void*, toff_t) {}

// Calls of libtiff without a file have no handle.
void OnError(thandle_t handle, const char*, const char* format, va_list arguments) {
  auto* source = static_cast<Source*>(handle);
  if (source && source->message[0] == 0) std::vsnprintf(source->message, sizeof source->message, format, arguments);
}

std::unique_ptr<TIFF, void (*)(TIFF*)> Open(Source* source) {
  static std::once_flag once;
  // Of the whole process, in which nobody else uses libtiff. What it warns of does not touch pixels.
  std::call_once(once, [] {
    TIFFSetErrorHandler(nullptr);
    TIFFSetErrorHandlerExt(OnError);
    TIFFSetWarningHandler(nullptr);
  });
  return {TIFFClientOpen("image", "rm", source, Read, Write, Seek, Close, Size, Map, Unmap), TIFFClose};
}

std::string ProblemOf(const Source& source) {
  return Damaged(std::string("TIFF: ") + (source.message[0] != 0 ? source.message : "no image can be read of it"));
}

// Of a strip or tile that the directory does not name, libtiff reads the beginning of the file instead.
std::string MissingPart(TIFF* tiff) {
  const bool tiled = TIFFIsTiled(tiff) != 0;
  const uint32_t parts = tiled ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff);
  for (uint32_t part = 0; part < parts; ++part) {
    if (TIFFGetStrileOffset(tiff, part) > 0) continue;
    return Damaged(std::string("TIFF: ") + (tiled ? "tile " : "strip ") + std::to_string(part) + " of " +
                   std::to_string(parts) + " is missing");
  }
  return {};
}

std::string ReadHeader(TIFF* tiff, const Source& source, ImageInfo* info, int* orientation) {
  uint32_t height = 0, width = 0;
  uint16_t samples = 1, photometric = PHOTOMETRIC_RGB, turned = ORIENTATION_TOPLEFT;
  if (!tiff || !TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height) || !TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width)) {
    return ProblemOf(source);
  }
  TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
  TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ORIENTATION, &turned);
  const bool grey = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
  if (std::string problem = SizeProblem(height, width); !problem.empty()) return problem;
  *info = {ImageFormat::kTiff, static_cast<int>(height), static_cast<int>(width), grey ? 1 : 3};
  *orientation = turned >= 1 && turned <= 8 ? turned : 1;
  return {};
}

}  // namespace

std::string ReadTiffInfo(std::span<const uint8_t> bytes, ImageInfo* info, int* orientation) {
  Source source{bytes};
  const auto tiff = Open(&source);
  return ReadHeader(tiff.get(), source, info, orientation);
}

std::string DecodeTiff(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image, int* orientation) {
  Source source{bytes};
  const auto tiff = Open(&source);
  ImageInfo info;
  if (std::string problem = ReadHeader(tiff.get(), source, &info, orientation); !problem.empty()) return problem;
  char message[1024] = "";
  if (!TIFFRGBAImageOK(tiff.get(), message)) {
    return std::string("is a TIFF image of a rare kind (") + message + "); convert it to PNG";
  }
  if (std::string problem = MissingPart(tiff.get()); !problem.empty()) return problem;
  // Transparency is left out: colours that are not multiplied by it would be, here.
  uint16_t extra = 0, *kinds = nullptr;
  if (TIFFGetField(tiff.get(), TIFFTAG_EXTRASAMPLES, &extra, &kinds) && extra > 0 &&
      kinds[0] == EXTRASAMPLE_UNASSALPHA) {
    std::vector<uint16_t> as_they_are(kinds, kinds + extra);
    as_they_are[0] = EXTRASAMPLE_ASSOCALPHA;
    TIFFSetField(tiff.get(), TIFFTAG_EXTRASAMPLES, extra, as_they_are.data());
  }
  TIFFRGBAImage reading;
  constexpr int kStopOnError = 1;
  if (!TIFFRGBAImageBegin(&reading, tiff.get(), kStopOnError, message)) {
    if (source.message[0] == 0) std::memcpy(source.message, message, sizeof source.message - 1);
    return ProblemOf(source);
  }
  // As it is stored: the caller turns it upright.
  reading.orientation = reading.req_orientation = ORIENTATION_TOPLEFT;
  std::vector<uint32_t> pixels(static_cast<size_t>(info.height) * static_cast<size_t>(info.width));
  const int whole =
      TIFFRGBAImageGet(&reading, pixels.data(), static_cast<uint32_t>(info.width), static_cast<uint32_t>(info.height));
  TIFFRGBAImageEnd(&reading);
  if (!whole) return ProblemOf(source);
  image->Resize(info.height, info.width, ChannelsFor(options.colors, info.channels));
  std::vector<uint8_t> row(static_cast<size_t>(info.width) * static_cast<size_t>(info.channels));
  const uint32_t* pixel = pixels.data();
  for (int y = 0; y < info.height; ++y) {
    for (size_t at = 0; at < row.size(); at += static_cast<size_t>(info.channels), ++pixel) {
      row[at] = static_cast<uint8_t>(TIFFGetB(*pixel));
      if (info.channels == 1) continue;
      row[at + 1] = static_cast<uint8_t>(TIFFGetG(*pixel));
      row[at + 2] = static_cast<uint8_t>(TIFFGetR(*pixel));
    }
    WriteRowAs(row.data(), info.channels, info.width, image->channels, image->row(y));
  }
  return {};
}

}  // namespace crema::codecs
