// A code for each value: FP32, FP16, BF16 and INT8.
#include <atomic>
#include <cmath>

#include "base/bfloat16.h"
#include "distributed/codecs/codec_impl.h"

namespace crema {

namespace {

// In strips: code in local memory is aligned, that in `out` need not be.
constexpr int64_t kStrip = kBFloat16Strip;

class Float32Codec final : public Codec {
 public:
  Float32Codec() : Codec(CodecKind::kFloat32) {}

  size_t EncodedBytesAtMost(size_t count) const override { return count * sizeof(float); }

 private:
  void EncodeFinite(std::span<const float> values, Bytes& out) const override {
    const auto bytes = std::as_bytes(values);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }

  void DecodeSome(std::span<const std::byte> code, std::span<float> values) const override {
    if (code.size() != values.size_bytes()) {
      Refuse(std::to_string(code.size()) + " bytes instead of " + std::to_string(values.size_bytes()));
    }
    ParallelFor(static_cast<int64_t>(values.size()), kCodecGrain, [&](int64_t begin, int64_t end) {
      memcpy(values.data() + begin, code.data() + begin * sizeof(float), (end - begin) * sizeof(float));
    });
    if (LargestMagnitudeBits(values) >= kInfinityBits) Refuse("a value is not finite");
  }
};

CREMA_INLINE uint16_t HalfOf(float value) {
  constexpr int32_t kLargest = 0x477fe000;         // 65504
  constexpr int32_t kSmallestNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kBias = 112u << 23;           // between the exponents of both formats
  const int32_t magnitude = std::min(MagnitudeBits(value), kLargest);
  const auto bits = static_cast<uint32_t>(magnitude);
  const uint32_t normal = (bits - kBias + 0xfff + ((bits >> 13) & 1)) >> 13;
  // Next to 0.5, floats are 2^-24 apart as subnormal halves are: the sum rounds to them.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
  const uint32_t sign = (std::bit_cast<uint32_t>(value) >> 16) & 0x8000u;
  const uint32_t is_subnormal = magnitude < kSmallestNormal ? ~0u : 0u;
  return static_cast<uint16_t>((is_subnormal & subnormal) | (~is_subnormal & normal) | sign);
}

CREMA_INLINE float FloatOfHalf(uint16_t half) {
  const uint32_t shifted = (half & 0x7fffu) << 13;
  const uint32_t normal = shifted + (112u << 23);
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(shifted + (113u << 23)) - 0x1p-14f);
  // By masks: compilers do not vectorise a choice between results of arithmetic on floats.
  const uint32_t is_subnormal = (half & 0x7c00u) == 0 ? ~0u : 0u;
  const uint32_t sign = (half & 0x8000u) << 16;
  return std::bit_cast<float>((is_subnormal & subnormal) | (~is_subnormal & normal) | sign);
}

CREMA_MULTIVERSION void FullStripToHalves(const float* from, uint16_t* to) {
  for (int64_t i = 0; i < kStrip; ++i) to[i] = HalfOf(from[i]);
}

// Returns the largest half without its sign.
CREMA_MULTIVERSION uint16_t FullStripFromHalves(const uint16_t* from, float* to) {
  int16_t largest = 0;
  for (int64_t i = 0; i < kStrip; ++i) largest = std::max(largest, static_cast<int16_t>(from[i] & 0x7fff));
  for (int64_t i = 0; i < kStrip; ++i) to[i] = FloatOfHalf(from[i]);
  return static_cast<uint16_t>(largest);
}

CREMA_MULTIVERSION void FullStripToFiniteBFloats(uint16_t* bits) {
  for (int64_t i = 0; i < kStrip; ++i) bits[i] = static_cast<uint16_t>(bits[i] - ((bits[i] & 0x7fff) == 0x7f80));
}

CREMA_MULTIVERSION uint16_t LargestOfFullStrip(const uint16_t* bits) {
  int16_t largest = 0;
  for (int64_t i = 0; i < kStrip; ++i) largest = std::max(largest, static_cast<int16_t>(bits[i] & 0x7fff));
  return static_cast<uint16_t>(largest);
}

struct Halves {
  static constexpr CodecKind kKind = CodecKind::kFloat16;
  static constexpr uint16_t kInfinity = 0x7c00;
  static constexpr float kScale = 65504;

  static void ToStrip(const float* values, uint16_t* strip) { FullStripToHalves(values, strip); }
  static uint16_t FromStrip(const uint16_t* strip, float* values) { return FullStripFromHalves(strip, values); }
};

struct BFloats {
  static constexpr CodecKind kKind = CodecKind::kBFloat16;
  static constexpr uint16_t kInfinity = 0x7f80;
  static constexpr float kScale = std::numeric_limits<float>::infinity();

  static void ToStrip(const float* values, uint16_t* strip) {
    BFloat16 rounded[kStrip];
    FromFloats(values, kStrip, rounded);
    memcpy(strip, rounded, sizeof rounded);
    FullStripToFiniteBFloats(strip);
  }
  static uint16_t FromStrip(const uint16_t* strip, float* values) {
    BFloat16 rounded[kStrip];
    memcpy(rounded, strip, sizeof rounded);
    ToFloats(rounded, kStrip, values);
    return LargestOfFullStrip(strip);
  }
};

// Two bytes for each value.
template <typename Format>
class ShortFloatCodec final : public Codec {
 public:
  ShortFloatCodec() : Codec(Format::kKind) {}

  size_t EncodedBytesAtMost(size_t count) const override { return count * sizeof(uint16_t); }
  float Scale(std::span<const float>, std::span<const float>) const override { return Format::kScale; }

 private:
  void EncodeFinite(std::span<const float> values, Bytes& out) const override {
    std::byte* const code = Extend(out, values.size() * sizeof(uint16_t));
    ParallelFor(static_cast<int64_t>(values.size()), kCodecGrain, [&](int64_t begin, int64_t end) {
      uint16_t strip[kStrip];
      for (int64_t i = begin; i < end; i += kStrip) {
        const int64_t n = std::min(kStrip, end - i);
        if (n == kStrip) {
          Format::ToStrip(values.data() + i, strip);
        } else {
          float rest[kStrip] = {};
          std::copy_n(values.data() + i, n, rest);
          Format::ToStrip(rest, strip);
        }
        memcpy(code + i * sizeof(uint16_t), strip, n * sizeof(uint16_t));
      }
    });
  }

  void DecodeSome(std::span<const std::byte> code, std::span<float> values) const override {
    if (code.size() != values.size() * sizeof(uint16_t)) {
      Refuse(std::to_string(code.size()) + " bytes instead of " + std::to_string(values.size() * sizeof(uint16_t)));
    }
    std::atomic<bool> finite = true;
    ParallelFor(static_cast<int64_t>(values.size()), kCodecGrain, [&](int64_t begin, int64_t end) {
      uint16_t strip[kStrip], largest = 0;
      for (int64_t i = begin; i < end; i += kStrip) {
        const int64_t n = std::min(kStrip, end - i);
        if (n < kStrip) std::fill(strip, strip + kStrip, 0);
        memcpy(strip, code.data() + i * sizeof(uint16_t), n * sizeof(uint16_t));
        if (n == kStrip) {
          largest = std::max(largest, Format::FromStrip(strip, values.data() + i));
        } else {
          float rest[kStrip];
          largest = std::max(largest, Format::FromStrip(strip, rest));
          std::copy_n(rest, n, values.data() + i);
        }
      }
      if (largest >= Format::kInfinity) finite = false;
    });
    if (!finite) Refuse("a value is not finite");
  }
};

constexpr int64_t kInt8Block = 256;

// The largest scale of a block whose codes, up to 127, all stand for finite values. Said as a number: GCC 14 takes a
// product for finite that a quotient went into, and leaves out the test whether it is.
constexpr float kMostScale = [] {
  constexpr float kMost = std::numeric_limits<float>::max();
  const float scale = kMost / 127;
  return 127.0 * scale > kMost ? std::bit_cast<float>(std::bit_cast<uint32_t>(scale) - 1) : scale;
}();

// Returns the block's scale.
CREMA_MULTIVERSION float QuantizeBlock(const float* values, int8_t* codes) {
  int32_t largest = 0;
  for (int64_t i = 0; i < kInt8Block; ++i) largest = std::max(largest, MagnitudeBits(values[i]));
  const float scale = std::min(std::bit_cast<float>(largest) / 127, kMostScale);
  const float divisor = scale > 0 ? scale : std::numeric_limits<float>::max();
  for (int64_t i = 0; i < kInt8Block; ++i) {
    // Next to 1.5 * 2^23, floats are integers: the sum rounds.
    const int32_t rounded = std::bit_cast<int32_t>(values[i] / divisor + 0x1.8p23f) - 0x4b400000;
    // A scale that is subnormal is coarse, and may be smaller than a 127th.
    codes[i] = static_cast<int8_t>(std::clamp(rounded, -127, 127));
  }
  return scale;
}

// Returns whether all codes are ones that QuantizeBlock makes.
CREMA_MULTIVERSION bool DequantizeBlock(const int8_t* codes, float scale, float* values) {
  int8_t bad = 0;
  for (int64_t i = 0; i < kInt8Block; ++i) bad = static_cast<int8_t>(bad | (codes[i] == -128));
  for (int64_t i = 0; i < kInt8Block; ++i) values[i] = static_cast<float>(codes[i]) * scale;
  return bad == 0;
}

class Int8Codec final : public Codec {
 public:
  Int8Codec() : Codec(CodecKind::kInt8) {}

  size_t EncodedBytesAtMost(size_t count) const override { return Blocks(count) * sizeof(float) + count; }

 private:
  static size_t Blocks(size_t count) { return (count + kInt8Block - 1) / kInt8Block; }

  void EncodeFinite(std::span<const float> values, Bytes& out) const override {
    const auto count = static_cast<int64_t>(values.size()), blocks = static_cast<int64_t>(Blocks(values.size()));
    std::byte* const scales = Extend(out, EncodedBytesAtMost(values.size()));
    auto* const codes = reinterpret_cast<int8_t*>(scales + blocks * sizeof(float));
    ParallelFor(blocks, kCodecGrain / kInt8Block, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kInt8Block, n = std::min(kInt8Block, count - first);
        float scale;
        if (n == kInt8Block) {
          scale = QuantizeBlock(values.data() + first, codes + first);
        } else {
          float rest[kInt8Block] = {};
          int8_t rest_codes[kInt8Block];
          std::copy_n(values.data() + first, n, rest);
          scale = QuantizeBlock(rest, rest_codes);
          std::copy_n(rest_codes, n, codes + first);
        }
        Store(scales + block * sizeof(float), scale);
      }
    });
  }

  void DecodeSome(std::span<const std::byte> code, std::span<float> values) const override {
    const auto count = static_cast<int64_t>(values.size()), blocks = static_cast<int64_t>(Blocks(values.size()));
    if (code.size() != EncodedBytesAtMost(values.size())) {
      Refuse(std::to_string(code.size()) + " bytes instead of " + std::to_string(EncodedBytesAtMost(values.size())));
    }
    const auto* const codes = reinterpret_cast<const int8_t*>(code.data() + blocks * sizeof(float));
    std::atomic<bool> scales_fit = true, codes_fit = true;
    ParallelFor(blocks, kCodecGrain / kInt8Block, [&](int64_t begin, int64_t end) {
      bool fit = true;
      for (int64_t block = begin; block < end; ++block) {
        const int64_t first = block * kInt8Block, n = std::min(kInt8Block, count - first);
        const auto scale = Load<float>(code.data() + block * sizeof(float));
        if (std::signbit(scale) || !(scale <= kMostScale)) {
          scales_fit = false;
          return;
        }
        if (n == kInt8Block) {
          fit &= DequantizeBlock(codes + first, scale, values.data() + first);
        } else {
          int8_t rest_codes[kInt8Block] = {};
          float rest[kInt8Block];
          std::copy_n(codes + first, n, rest_codes);
          fit &= DequantizeBlock(rest_codes, scale, rest);
          std::copy_n(rest, n, values.data() + first);
        }
      }
      if (!fit) codes_fit = false;
    });
    if (!scales_fit) Refuse("a scale is negative or too large");
    if (!codes_fit) Refuse("a value is -128");
  }
};

}  // namespace

std::unique_ptr<const Codec> MakeFloat32Codec() { return std::make_unique<Float32Codec>(); }
std::unique_ptr<const Codec> MakeFloat16Codec() { return std::make_unique<ShortFloatCodec<Halves>>(); }
std::unique_ptr<const Codec> MakeBFloat16Codec() { return std::make_unique<ShortFloatCodec<BFloats>>(); }
std::unique_ptr<const Codec> MakeInt8Codec() { return std::make_unique<Int8Codec>(); }

}  // namespace crema
