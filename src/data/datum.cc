#include "data/datum.h"

#include <bit>
#include <cstring>

namespace crema {

namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kStartGroup = 3, kEndGroup = 4, kFixed32 = 5 };
constexpr int kMaxGroupDepth = 100;
constexpr const char* kCutShort = "the record ends in the middle of a field";

constexpr uint32_t Tag(uint32_t field, WireType type) { return field << 3 | type; }

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes)
      : at_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}

  bool done() const { return at_ == end_; }
  const char* error() const { return error_; }

  uint64_t Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) return Fail(kCutShort);
      const uint8_t byte = *at_++;
      value |= shift < 64 ? uint64_t{byte & 0x7fu} << shift : 0;
      if (byte < 0x80) return value;
    }
    return Fail("a number is longer than 10 bytes");
  }

  uint32_t ReadTag() {
    const uint8_t* begin = at_;
    const uint64_t tag = Varint();
    if (error_) return 0;
    if (at_ - begin > 5 || tag > UINT32_MAX || tag >> 3 == 0)
      return static_cast<uint32_t>(Fail("a field has no number"));
    return static_cast<uint32_t>(tag);
  }

  std::span<const uint8_t> Take(uint64_t bytes) {
    if (bytes > static_cast<uint64_t>(end_ - at_)) {
      Fail(kCutShort);
      return {};
    }
    const std::span<const uint8_t> taken(at_, bytes);
    at_ += bytes;
    return taken;
  }

  std::span<const uint8_t> LengthDelimited() {
    const uint64_t bytes = Varint();
    return error_ ? std::span<const uint8_t>() : Take(bytes);
  }

  void Skip(uint32_t tag, int depth = 0) {
    switch (tag & 7) {
      case kVarint:
        Varint();
        return;
      case kFixed64:
        Take(8);
        return;
      case kBytes:
        LengthDelimited();
        return;
      case kFixed32:
        Take(4);
        return;
      case kStartGroup:
        SkipGroup(tag >> 3, depth + 1);
        return;
      default:
        Fail("a field has an unknown encoding");
    }
  }

 private:
  uint64_t Fail(const char* error) {
    if (!error_) error_ = error;
    at_ = end_;
    return 0;
  }

  void SkipGroup(uint32_t field, int depth) {
    if (depth > kMaxGroupDepth) {
      Fail("groups are nested too deep");
      return;
    }
    while (!error_) {
      const uint32_t tag = ReadTag();
      if (error_ || tag == Tag(field, kEndGroup)) return;
      Skip(tag, depth);
    }
  }

  const uint8_t* at_;
  const uint8_t* end_;
  const char* error_ = nullptr;
};

// Calls floats(bytes) for every piece of float_data, packed or not.
template <typename Floats>
const char* Walk(std::span<const std::byte> record, DatumView* datum, const Floats& floats) {
  WireReader reader(record);
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
