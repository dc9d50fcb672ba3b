#include "ops/activations/dropout.h"

#include "base/multiversion.h"

namespace crema {

namespace {

constexpr int64_t kCounters = kDropoutCounters, kChunk = kDropoutChunk, kLanes = kDropoutLanes;

// RandomStream::Bits of kCounters counters from `first` on, side by side.
CREMA_MULTIVERSION void ChunkBits(uint64_t seed, uint64_t stream, uint64_t first, uint32_t* words) {
  for (int64_t base = 0; base < kCounters; base += 16) {
    uint32_t c0[16], c1[16], c2[16], c3[16];
    for (int j = 0; j < 16; ++j) {
      const uint64_t counter = first + static_cast<uint64_t>(base + j);
      c0[j] = static_cast<uint32_t>(counter);
      c1[j] = static_cast<uint32_t>(counter >> 32);
      c2[j] = static_cast<uint32_t>(stream);
      c3[j] = static_cast<uint32_t>(stream >> 32);
    }
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
#pragma omp simd
      for (int j = 0; j < 16; ++j) {
        const uint64_t p0 = uint64_t{0xD2511F53} * c0[j], p1 = uint64_t{0xCD9E8D57} * c2[j];
        c0[j] = static_cast<uint32_t>(p1 >> 32) ^ c1[j] ^ k0;
        c2[j] = static_cast<uint32_t>(p0 >> 32) ^ c3[j] ^ k1;
        c1[j] = static_cast<uint32_t>(p1);
        c3[j] = static_cast<uint32_t>(p0);
      }
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    for (int j = 0; j < 16; ++j) {
      words[base + j] = c0[j];
      words[kCounters + base + j] = c1[j];
      words[2 * kCounters + base + j] = c2[j];
      words[3 * kCounters + base + j] = c3[j];
    }
  }
}

// Bit b of mask[j] tells whether words[kLanes * b + j] >= threshold.
CREMA_MULTIVERSION void PackBlock(const uint32_t* words, uint32_t threshold, uint32_t* mask) {
  uint32_t bits[kLanes] = {};
  for (int64_t b = 0; b < kDropoutBlock / kLanes; ++b) {
    const uint32_t* row = words + b * kLanes;
#pragma omp simd
    for (int64_t j = 0; j < kLanes; ++j) bits[j] |= static_cast<uint32_t>(row[j] >= threshold) << b;
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
  const uint32_t threshold = DropoutThreshold(ratio);
  uint32_t words[kDropoutBlock];
  constexpr int64_t kChunks = kDropoutBlock / kChunk;
  for (int64_t chunk = 0; chunk < kChunks; ++chunk) {
    const auto counter = static_cast<uint64_t>((block * kChunks + chunk) * kCounters);
    ChunkBits(stream.seed(), stream.stream(), counter, words + chunk * kChunk);
  }
  PackBlock(words, threshold, mask);
}

void MaskDropoutBlock(float scale, int64_t n, const uint32_t* mask, const float* x, float* y) {
  MaskRange(scale, n, mask, x, y);
}

}  // namespace crema
