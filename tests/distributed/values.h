// Values to encode, and codecs to do it with.
#ifndef CREMA_TESTS_DISTRIBUTED_VALUES_H_
#define CREMA_TESTS_DISTRIBUTED_VALUES_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "base/random.h"
#include "distributed/codecs/codec.h"

namespace crema {

inline constexpr float kMost = std::numeric_limits<float>::max(), kLeast = std::numeric_limits<float>::denorm_min();

inline std::vector<float> Gaussians(size_t n, uint64_t stream, float scale = 1) {
  const RandomStream random(17, stream);
  std::vector<float> values(n);
  for (size_t i = 0; i < n; ++i) values[i] = scale * random.Gaussian(i);
  return values;
}

inline Bytes BytesOf(std::initializer_list<int> bytes) {
  Bytes result;
  for (const int byte : bytes) result.push_back(static_cast<std::byte>(byte));
  return result;
}

inline Bytes Encoded(const Codec& codec, const std::vector<float>& values) {
  Bytes code;
  codec.Encode(values, code);
  return code;
}

// Decodes into memory that held something else.
inline std::vector<float> Decoded(const Codec& codec, const Bytes& code, size_t count) {
  std::vector<float> values(count, 12345.0f);
  codec.Decode(code, values);
  return values;
}

inline std::vector<float> ThroughCode(const Codec& codec, const std::vector<float>& values) {
  return Decoded(codec, Encoded(codec, values), values.size());
}

inline std::vector<CodecOptions> AllCodecs() {
  std::vector<CodecOptions> all;
  for (int kind = 0; kind <= static_cast<int>(CodecKind::kOneBit); ++kind) {
    all.push_back({.kind = static_cast<CodecKind>(kind), .topk_ratio = 0.05, .threshold = 0.5f, .onebit_column = 128});
  }
  // Sparse, and of columns longer than most buckets here.
  all.push_back({.kind = CodecKind::kThreshold, .threshold = 2.5f});
  all.push_back({.kind = CodecKind::kOneBit});
  return all;
}

inline std::string NameOfOptions(const testing::TestParamInfo<CodecOptions>& info) {
  return std::string(NameOf(info.param.kind)) + "_" + std::to_string(info.index);
}

inline void PrintTo(const CodecOptions& options, std::ostream* os) { *os << NameOf(options.kind); }

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_VALUES_H_
