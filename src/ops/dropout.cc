#include "ops/dropout.h"

#include "base/multiversion.h"

namespace crema {

namespace {

// A chunk is kChunk elements: word w of counter chunk * kCounters + j decides element w * kCounters + j of it.
constexpr int64_t kCounters = 64, kChunk = 4 * kCounters, kLanes = kDropoutLanes;
static_assert(kDropoutBlock % kChunk == 0 && kCounters % kLanes == 0);

// RandomStream::Bits of kLanes counters from `first` on, side by side.
CREMA_INLINE void LaneBits(uint64_t seed, uint64_t stream, uint64_t first, uint32_t (&c)[4][kLanes]) {
  for (int64_t j = 0; j < kLanes; ++j) {
    const uint64_t counter = first + static_cast<uint64_t>(j);
    c[0][j] = static_cast<uint32_t>(counter);
    c[1][j] = static_cast<uint32_t>(counter >> 32);
    c[2][j] = static_cast<uint32_t>(stream);
    c[3][j] = static_cast<uint32_t>(stream >> 32);
  }
  uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
#pragma omp simd
    for (int j = 0; j < kLanes; ++j) {
      const uint64_t p0 = uint64_t{0xD2511F53} * c[0][j], p1 = uint64_t{0xCD9E8D57} * c[2][j];
      c[0][j] = static_cast<uint32_t>(p1 >> 32) ^ c[1][j] ^ k0;
      c[2][j] = static_cast<uint32_t>(p0 >> 32) ^ c[3][j] ^ k1;
      c[1][j] = static_cast<uint32_t>(p1);
      c[3][j] = static_cast<uint32_t>(p0);
    }
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

CREMA_MULTIVERSION void DrawBlock(uint64_t seed, uint64_t stream, uint64_t first, uint32_t threshold, uint32_t* mask) {
  uint32_t bits[kLanes] = {};
  for (int64_t chunk = 0; chunk < kDropoutBlock / kChunk; ++chunk) {
    for (int64_t part = 0; part < kCounters / kLanes; ++part) {
      uint32_t words[4][kLanes];
      LaneBits(seed, stream, first + static_cast<uint64_t>(chunk * kCounters + part * kLanes), words);
      for (int64_t w = 0; w < 4; ++w) {
        const int64_t bit = (chunk * kChunk + w * kCounters + part * kLanes) / kLanes;
#pragma omp simd
        for (int64_t j = 0; j < kLanes; ++j) bits[j] |= (words[w][j] >= threshold ? 1u : 0u) << bit;
      }
    }
  }
  for (int64_t j = 0; j < kLanes; ++j) mask[j] = bits[j];
}

CREMA_MULTIVERSION void MaskRange(float scale, int64_t n, const uint32_t* mask, const float* x, float* y) {
  uint32_t bits[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) bits[j] = mask[j];
  int64_t b = 0;
  for (; (b + 1) * kLanes <= n; ++b) {
    const float* from = x + b * kLanes;
    float* to = y + b * kLanes;
    const uint32_t bit = 1u << b;
#pragma omp simd
    for (int64_t j = 0; j < kLanes; ++j) {
      const float scaled = from[j] * scale;
      to[j] = (bits[j] & bit) != 0 ? scaled : 0.0f;
    }
  }
  for (int64_t i = b * kLanes; i < n; ++i) y[i] = bits[i % kLanes] >> b & 1 ? x[i] * scale : 0.0f;
}

}  // namespace

void DrawDropoutMask(const RandomStream& stream, float ratio, int64_t block, uint32_t* mask) {
  const uint32_t threshold = static_cast<uint32_t>(static_cast<double>(ratio) * 4294967296.0);
  DrawBlock(stream.seed(), stream.stream(), static_cast<uint64_t>(block * (kDropoutBlock / 4)), threshold, mask);
}

void MaskDropoutBlock(float scale, int64_t n, const uint32_t* mask, const float* x, float* y) {
  MaskRange(scale, n, mask, x, y);
}

}  // namespace crema
