#include "data/datum.h"

#include <bit>
#include <cstring>

#include "data/wire_bytes.h"

namespace crema {

namespace {

using enum WireBytes::Type;

constexpr uint32_t Tag(uint32_t field, WireBytes::Type type) { return WireBytes::Tag(field, type); }

// Calls floats(bytes) for every piece of float_data, packed or not.
template <typename Floats>
const char* Walk(std::span<const std::byte> record, DatumView* datum, const Floats& floats) {
  WireBytes reader(record);
  while (!reader.done()) {
    const uint32_t tag = reader.ReadTag();
    if (reader.error()) break;
    switch (tag) {
      case Tag(1, kVarint):
        datum->size.channels = static_cast<int32_t>(reader.Varint());
        break;
      case Tag(2, kVarint):
        datum->size.height = static_cast<int32_t>(reader.Varint());
        break;
      case Tag(3, kVarint):
        datum->size.width = static_cast<int32_t>(reader.Varint());
        break;
      case Tag(4, kBytes):
        datum->data = reader.LengthDelimited();
        break;
      case Tag(5, kVarint):
        datum->label = static_cast<int32_t>(reader.Varint());
        break;
      case Tag(6, kFixed32):
        floats(reader.Take(4));
        break;
      case Tag(6, kBytes): {
        const std::span<const uint8_t> packed = reader.LengthDelimited();
        if (packed.size() % 4 != 0) return "the length of float_data is no multiple of 4";
        floats(packed);
        break;
      }
      case Tag(7, kVarint):
        datum->encoded = reader.Varint() != 0;
        break;
      default:
        reader.Skip(tag);
    }
  }
  return reader.error();
}

}  // namespace

const char* ParseDatum(std::span<const std::byte> record, DatumView* datum) {
  *datum = DatumView();
  datum->record = record;
  return Walk(record, datum, [datum](std::span<const uint8_t> bytes) { datum->float_count += bytes.size() / 4; });
}

void DatumView::CopyFloats(float* to) const {
  DatumView ignored;
  Walk(record, &ignored, [&to](std::span<const uint8_t> bytes) {
    static_assert(std::endian::native == std::endian::little, "the wire format's floats are copied as they are");
    if (bytes.empty()) return;
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size() / 4;
  });
}

std::string CheckDatum(const DatumView& datum) {
  if (datum.encoded) {
    if (!datum.data.empty()) return {};
    return "is damaged: it says it holds a compressed image (encoded: true), but it holds no bytes";
  }
  const auto [channels, height, width] = datum.size;
  if (channels <= 0 || height <= 0 || width <= 0) {
    return "is damaged: it says its image is " + datum.size.ToString() + " (channels x height x width)";
  }
  // Each factor is below 2^31; the product of all three may exceed 64 bits.
  const uint64_t plane = uint64_t(height) * uint64_t(width);
  const uint64_t available = datum.bytes() ? datum.data.size() : datum.float_count;
  if (plane > available || plane * uint64_t(channels) != available) {
    return "is damaged: it says its image is " + datum.size.ToString() + " (channels x height x width), but it holds " +
           std::to_string(available) + (datum.bytes() ? " bytes" : " values");
  }
  return {};
}

}  // namespace crema
