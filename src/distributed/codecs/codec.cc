#include "distributed/codecs/codec.h"

#include <array>
#include <cmath>
#include <sstream>

#include "distributed/codecs/codec_impl.h"

namespace crema {

namespace {

std::string DescribeNonFinite(size_t index, float value) {
  std::ostringstream text;
  text << "value " << index << " is " << value << "; only finite values can be sent";
  return text.str();
}

CREMA_MULTIVERSION int32_t LargestOf(const float* values, int64_t n) {
  constexpr int64_t kBlock = 64;
  int32_t largest = 0;
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int64_t j = 0; j < kBlock; ++j) largest = std::max(largest, MagnitudeBits(values[i + j]));
  }
  for (; i < n; ++i) largest = std::max(largest, MagnitudeBits(values[i]));
  return largest;
}

}  // namespace

int32_t LargestMagnitudeBits(const float* values, int64_t n) { return LargestOf(values, n); }

int32_t LargestMagnitudeBits(std::span<const float> values) {
  int32_t largest = 0;
  ParallelFor(static_cast<int64_t>(values.size()), kCodecGrain, [&](int64_t begin, int64_t end) {
    const int32_t here = LargestOf(values.data() + begin, end - begin);
#pragma omp critical(crema_codec_largest)
    largest = std::max(largest, here);
  });
  return largest;
}

const char* NameOf(CodecKind kind) {
  constexpr std::array kNames = {"FP32", "FP16", "BF16", "INT8", "TOPK", "THRESHOLD", "ONEBIT"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "unknown";
}

NonFiniteValue::NonFiniteValue(size_t index, float value)
    : std::runtime_error(DescribeNonFinite(index, value)), index_(index) {}

void Codec::Encode(std::span<const float> values, Bytes& out) const {
  if (values.empty()) return;
  if (LargestMagnitudeBits(values) >= kInfinityBits) {
    const auto bad = std::ranges::find_if_not(values, [](float value) { return std::isfinite(value); });
    throw NonFiniteValue(static_cast<size_t>(bad - values.begin()), *bad);
  }
  EncodeFinite(values, out);
}

void Codec::Decode(std::span<const std::byte> code, std::span<float> values) const {
  if (values.empty()) {
    if (!code.empty()) Refuse(std::to_string(code.size()) + " bytes for no values");
    return;
  }
  DecodeSome(code, values);
}

void Codec::Refuse(const std::string& what) const {
  throw MalformedCode(std::string("malformed ") + NameOf(kind_) + " code from a peer: " + what);
}

std::unique_ptr<const Codec> MakeCodec(const CodecOptions& options) {
  switch (options.kind) {
    case CodecKind::kFloat32:
      return MakeFloat32Codec();
    case CodecKind::kFloat16:
      return MakeFloat16Codec();
    case CodecKind::kBFloat16:
      return MakeBFloat16Codec();
    case CodecKind::kInt8:
      return MakeInt8Codec();
    case CodecKind::kTopK:
      if (!(options.topk_ratio > 0 && options.topk_ratio <= 1)) {
        throw UserError("topk_ratio must be above 0 and at most 1, and is " + std::to_string(options.topk_ratio) +
                        "; 0.01 sends one value in a hundred");
      }
      return MakeTopKCodec(options.topk_ratio);
    case CodecKind::kThreshold:
      if (!(options.threshold > 0 && std::isfinite(options.threshold))) {
        std::ostringstream text;
        text << "threshold must be finite and above 0, and is " << options.threshold
             << "; about the magnitude of the largest values sent is a good start";
        throw UserError(text.str());
      }
      return MakeThresholdCodec(options.threshold);
    case CodecKind::kOneBit:
      if (options.onebit_column == 0 || options.onebit_column % 64 != 0 || options.onebit_column > 65536) {
        throw UserError("onebit_column must be a multiple of 64 from 64 to 65536, and is " +
                        std::to_string(options.onebit_column) + "; the default is 512");
      }
      return MakeOneBitCodec(options.onebit_column);
  }
  throw UserError("there is no codec number " + std::to_string(static_cast<int>(options.kind)) +
                  "; this version knows 0 to " + std::to_string(static_cast<int>(CodecKind::kOneBit)));
}

}  // namespace crema
