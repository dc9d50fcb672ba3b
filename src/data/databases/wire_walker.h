// Walks over an encoded protobuf message in memory without copying it
// (https://protobuf.dev/programming-guides/encoding/).
#ifndef CREMA_DATA_DATABASES_WIRE_WALKER_H_
#define CREMA_DATA_DATABASES_WIRE_WALKER_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace crema {

// Accepts what protobuf does. From the first mistake on done() is true, error() says what is wrong, and values are 0.
class WireWalker {
 public:
  enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kStartGroup = 3, kEndGroup = 4, kFixed32 = 5 };

  static constexpr uint32_t Tag(uint32_t field, Type type) { return field << 3 | type; }

  explicit WireWalker(std::span<const std::byte> bytes)
      : at_(reinterpret_cast<const uint8_t*>(bytes.data())), end_(at_ + bytes.size()) {}

  bool done() const { return at_ == end_; }
  const char* error() const { return error_; }

  uint32_t ReadTag() {
    const uint8_t* begin = at_;
    const auto tag = static_cast<uint32_t>(Varint());  // protobuf drops what is too much, too
    if (error_) return 0;
    if (at_ - begin > 5 || tag >> 3 == 0) return static_cast<uint32_t>(Fail("a field has no number"));
    return tag;
  }

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

  float Float() {
    static_assert(std::endian::native == std::endian::little, "the wire format's floats are copied as they are");
    const std::span<const uint8_t> bytes = Take(4);
    float value = 0;
    if (!bytes.empty()) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
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
  static constexpr int kMaxGroupDepth = 100;
  static constexpr const char* kCutShort = "the record ends in the middle of a field";

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

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_WIRE_WALKER_H_
