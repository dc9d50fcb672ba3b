// PGM and PPM in binary (https://netpbm.sourceforge.net/doc/pnm.html): "P5" or "P6", width, height and the largest
// value in decimals, one blank, and the rows.

#include <utility>

#include "image/formats.h"

namespace crema {

namespace {

struct Pnm {
  int height = 0, width = 0, channels = 0;
  uint32_t largest = 0;
  std::span<const uint8_t> values;
};

bool IsBlank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Takes a number, and blanks and comments before it, from the front; 0 where there is none up to the limit.
uint32_t TakeNumber(std::span<const uint8_t>* bytes, uint32_t limit) {
  size_t at = 0;
  while (at < bytes->size() && (IsBlank((*bytes)[at]) || (*bytes)[at] == '#')) {
    if ((*bytes)[at++] != '#') continue;
    while (at < bytes->size() && (*bytes)[at] != '\n') ++at;
  }
  uint32_t number = 0;
  for (; at < bytes->size() && (*bytes)[at] >= '0' && (*bytes)[at] <= '9'; ++at) {
    number = number * 10 + ((*bytes)[at] - '0');
    if (number > limit) return 0;
  }
  *bytes = bytes->subspan(at);
  return number;
}

std::string ReadHeader(std::span<const uint8_t> bytes, Pnm* pnm) {
  pnm->channels = bytes[1] == '5' ? 1 : 3;
  std::span<const uint8_t> rest = bytes.subspan(2);
  const uint32_t width = TakeNumber(&rest, 1u << 28), height = TakeNumber(&rest, 1u << 28);
  pnm->largest = TakeNumber(&rest, 65535);
  if (width == 0 || height == 0 || pnm->largest == 0 || rest.empty() || !IsBlank(rest[0])) {
    return Damaged("no whole header");
  }
  if (std::string problem = SizeProblem(height, width); !problem.empty()) return problem;
  pnm->height = static_cast<int>(height);
  pnm->width = static_cast<int>(width);
  pnm->values = rest.subspan(1);
  const size_t needed = size_t{height} * width * static_cast<size_t>(pnm->channels) * (pnm->largest > 255 ? 2 : 1);
  // Lines that end as in Windows: one blank would be the rule.
  if (rest.size() == needed + 2 && rest[0] == '\r' && rest[1] == '\n') pnm->values = rest.subspan(2);
  return pnm->values.size() < needed ? Damaged("its rows of pixels end early") : "";
}

}  // namespace

std::string ReadPnmInfo(std::span<const uint8_t> bytes, ImageInfo* info) {
  Pnm pnm;
  std::string problem = ReadHeader(bytes, &pnm);
  if (problem.empty()) *info = {ImageFormat::kPnm, pnm.height, pnm.width, pnm.channels};
  return problem;
}

std::string DecodePnm(std::span<const uint8_t> bytes, const DecodeOptions& options, Image* image) {
  Pnm pnm;
  if (std::string problem = ReadHeader(bytes, &pnm); !problem.empty()) return problem;
  image->Resize(pnm.height, pnm.width, ChannelsFor(options.colors, pnm.channels));
  const size_t count = static_cast<size_t>(pnm.width) * static_cast<size_t>(pnm.channels);
  std::vector<uint8_t> row(count);
  const uint8_t* from = pnm.values.data();
  for (int y = 0; y < pnm.height; ++y) {
    for (uint8_t& value : row) {
      uint32_t stored = *from++;
      if (pnm.largest > 255) stored = stored << 8 | *from++;
      if (stored > pnm.largest) return Damaged("a value is above the largest that it names");
      value = static_cast<uint8_t>(pnm.largest == 255 ? stored : (stored * 255 + pnm.largest / 2) / pnm.largest);
    }
    // Red, green, blue.
    for (size_t x = 0; pnm.channels == 3 && x < count; x += 3) std::swap(row[x], row[x + 2]);
    WriteRowAs(row.data(), pnm.channels, pnm.width, image->channels, image->row(y));
  }
  return {};
}

}  // namespace crema
