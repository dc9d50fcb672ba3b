#include "ops/dropout.h"

#include <algorithm>

#include "base/bfloat16.h"
#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

// A chunk is kChunk elements: word w of counter chunk * kCounters + j decides element w * kCounters + j of it.
constexpr int64_t kCounters = 64, kChunk = 4 * kCounters;
constexpr int64_t kGrain = 32;  // chunks worth waking a thread for

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

CREMA_MULTIVERSION void KeepRange(int64_t n, const uint32_t* words, uint32_t threshold, uint8_t* keep) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) keep[i] = words[i] >= threshold ? 1 : 0;
}

template <typename Number>
CREMA_MULTIVERSION void MaskRange(int64_t n, float scale, const uint8_t* keep, const Number* x, Number* y) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const float scaled = x[i] * scale;
    y[i] = keep[i] ? scaled : 0.0f;
  }
}

}  // namespace

template <typename Number>
void DropoutForward(const RandomStream& stream, float ratio, int64_t n, const Number* x, uint8_t* keep, Number* y) {
  const uint32_t threshold = static_cast<uint32_t>(static_cast<double>(ratio) * 4294967296.0);
  const float scale = 1.0f / (1.0f - ratio);
  ParallelFor((n + kChunk - 1) / kChunk, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      uint32_t words[kChunk];
      ChunkBits(stream.seed(), stream.stream(), static_cast<uint64_t>(chunk * kCounters), words);
      const int64_t offset = chunk * kChunk, width = std::min(kChunk, n - offset);
      KeepRange(width, words, threshold, keep + offset);
      MaskRange(width, scale, keep + offset, x + offset, y + offset);
    }
  });
}

template <typename Number>
void DropoutBackward(float ratio, int64_t n, const Number* dy, const uint8_t* keep, Number* dx) {
  const float scale = 1.0f / (1.0f - ratio);
  ParallelFor(n, kGrain * kChunk,
              [&](int64_t begin, int64_t end) { MaskRange(end - begin, scale, keep + begin, dy + begin, dx + begin); });
}

template void DropoutForward(const RandomStream&, float, int64_t, const float*, uint8_t*, float*);
template void DropoutForward(const RandomStream&, float, int64_t, const BFloat16*, uint8_t*, BFloat16*);
template void DropoutBackward(float, int64_t, const float*, const uint8_t*, float*);
template void DropoutBackward(float, int64_t, const BFloat16*, const uint8_t*, BFloat16*);

}  // namespace crema
