#include "data/databases/datum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/number_text.h"
#include "data/databases/wire_walker.h"

namespace crema {

namespace {

using enum WireWalker::Type;

constexpr uint32_t kLabels = 10000;

constexpr uint32_t Tag(uint32_t field, WireWalker::Type type) { return WireWalker::Tag(field, type); }

// Calls floats(bytes) for every piece of float_data, packed or not, and labels(bytes) likewise.
template <typename Floats, typename Labels>
const char* Walk(std::span<const std::byte> record, DatumView* datum, Floats floats, Labels labels) {
  WireWalker reader(record);
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
      case Tag(kLabels, kFixed32):
        labels(reader.Take(4));
        break;
      case Tag(kLabels, kBytes): {
        const std::span<const uint8_t> packed = reader.LengthDelimited();
        if (packed.size() % 4 != 0) return "the length of labels is no multiple of 4";
        labels(packed);
        break;
      }
      default:
        reader.Skip(tag);
    }
  }
  return reader.error();
}

// For Walk: puts the pieces behind each other.
auto AppendTo(float* to) {
  return [to](std::span<const uint8_t> bytes) mutable {
    static_assert(std::endian::native == std::endian::little, "the wire format's floats are copied as they are");
    if (bytes.empty()) return;
    std::memcpy(to, bytes.data(), bytes.size());
    to += bytes.size() / 4;
  };
}

void Ignore(std::span<const uint8_t>) {}

std::string CountText(size_t count) {
  return count == 0 ? "no labels" : count == 1 ? "1 label" : std::to_string(count) + " labels";
}

}  // namespace

const char* ParseDatum(std::span<const std::byte> record, DatumView* datum) {
  *datum = DatumView();
  datum->record = record;
  const auto counts_to = [](size_t* count) {
    return [count](std::span<const uint8_t> bytes) { *count += bytes.size() / 4; };
  };
  return Walk(record, datum, counts_to(&datum->float_count), counts_to(&datum->label_count));
}

void DatumView::CopyFloats(float* to) const {
  DatumView ignored;
  Walk(record, &ignored, AppendTo(to), Ignore);
}

void DatumView::CopyLabels(float* to) const {
  DatumView ignored;
  Walk(record, &ignored, Ignore, AppendTo(to));
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

std::string ReadDatumLabels(const DatumView& datum, size_t count, float* to) {
  if (datum.label_count != count) {
    return "has " + CountText(datum.label_count) + ", but the first record has " + CountText(count) +
           "; all records of a database must have equally many, make it anew";
  }
  if (count == 0) return {};
  datum.CopyLabels(to);
  const float* const wrong = std::find_if_not(to, to + count, [](float label) { return std::isfinite(label); });
  if (wrong == to + count) return {};
  return "has a label that is no finite number (" + FormatNumber(*wrong) + ", number " + std::to_string(wrong - to) +
         " counted from 0); correct it, and make the database anew";
}

}  // namespace crema
