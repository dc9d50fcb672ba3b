#include "graph/random_fill.h"

#include <bit>
#include <cmath>

#include "base/multiversion.h"
#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kCountersPerThread = 4096;  // counters worth waking a thread for
constexpr int kBlock = 64;                    // counters drawn at once; ParallelFor's ranges begin at multiples of it

// words[k][i]: word k of counter first + i.
using Words = uint32_t[4][kBlock];

struct Counter {
  uint32_t c0, c1, c2, c3;
};

CREMA_INLINE Counter Round(Counter c, uint32_t k0, uint32_t k1) {
  const uint64_t p0 = uint64_t{0xD2511F53} * c.c0, p1 = uint64_t{0xCD9E8D57} * c.c2;
  return {static_cast<uint32_t>(p1 >> 32) ^ c.c1 ^ k0, static_cast<uint32_t>(p1),
          static_cast<uint32_t>(p0 >> 32) ^ c.c3 ^ k1, static_cast<uint32_t>(p0)};
}

template <int kRounds>
CREMA_INLINE Counter Rounds(Counter c, uint32_t k0, uint32_t k1) {
  if constexpr (kRounds == 0) {
    return c;
  } else {
    return Rounds<kRounds - 1>(Round(c, k0, k1), k0 + 0x9E3779B9, k1 + 0xBB67AE85);
  }
}

// RandomStream::Bits of kBlock counters; `first` is a multiple of kBlock.
CREMA_MULTIVERSION void Draw(uint64_t seed, uint64_t stream, uint64_t first, Words& words) {
  const uint32_t low = static_cast<uint32_t>(first), high = static_cast<uint32_t>(first >> 32);
  const uint32_t stream_low = static_cast<uint32_t>(stream), stream_high = static_cast<uint32_t>(stream >> 32);
  const uint32_t key_low = static_cast<uint32_t>(seed), key_high = static_cast<uint32_t>(seed >> 32);
  for (uint32_t i = 0; i < kBlock; ++i) {
    const Counter c = Rounds<10>({low + i, high, stream_low, stream_high}, key_low, key_high);
    words[0][i] = c.c0;
    words[1][i] = c.c1;
    words[2][i] = c.c2;
    words[3][i] = c.c3;
  }
}

// Exact; a form that every instruction set has in vectors.
CREMA_INLINE double ToDouble(uint64_t below_2_to_52) {
  return std::bit_cast<double>(below_2_to_52 | 0x4330000000000000) - 0x1p52;
}

// ln u for u in (0, 1), to about 1e-15 of it: u = 2^e m with m within sqrt(2) of 1, ln m = 2 artanh((m - 1) / (m + 1)).
CREMA_INLINE double Log(double u) {
  constexpr uint64_t kOne = 0x3FF0000000000000, kRootOfHalf = 0x3FE6A09E667F3BCD;
  const uint64_t shifted = std::bit_cast<uint64_t>(u) + (kOne - kRootOfHalf);
  const double e = ToDouble(shifted >> 52) - 1023;
  const double m = std::bit_cast<double>((shifted & 0x000FFFFFFFFFFFFF) + kRootOfHalf);
  const double s = (m - 1) / (m + 1), z = s * s;
  double sum = 1.0 / 23;
  sum = sum * z + 1.0 / 21;
  sum = sum * z + 1.0 / 19;
  sum = sum * z + 1.0 / 17;
  sum = sum * z + 1.0 / 15;
  sum = sum * z + 1.0 / 13;
  sum = sum * z + 1.0 / 11;
  sum = sum * z + 1.0 / 9;
  sum = sum * z + 1.0 / 7;
  sum = sum * z + 1.0 / 5;
  sum = sum * z + 1.0 / 3;
  return e * 0.6931471805599453 + 2 * (s + s * z * sum);
}

// Taylor's series, for |x| <= pi / 4.
CREMA_INLINE double Sine(double x) {
  const double z = x * x;
  double sum = -1.0 / 1307674368000;
  sum = sum * z + 1.0 / 6227020800;
  sum = sum * z - 1.0 / 39916800;
  sum = sum * z + 1.0 / 362880;
  sum = sum * z - 1.0 / 5040;
  sum = sum * z + 1.0 / 120;
  sum = sum * z - 1.0 / 6;
  return x + x * z * sum;
}

CREMA_INLINE double Cosine(double x) {
  const double z = x * x;
  double sum = 1.0 / 20922789888000;
  sum = sum * z - 1.0 / 87178291200;
  sum = sum * z + 1.0 / 479001600;
  sum = sum * z - 1.0 / 3628800;
  sum = sum * z + 1.0 / 40320;
  sum = sum * z - 1.0 / 720;
  sum = sum * z + 1.0 / 24;
  sum = sum * z - 1.0 / 2;
  return 1 + z * sum;
}

CREMA_INLINE double Choose(uint64_t mask, double a, double b) {
  return std::bit_cast<double>((std::bit_cast<uint64_t>(a) & ~mask) | (std::bit_cast<uint64_t>(b) & mask));
}

CREMA_INLINE double WithSign(double a, uint64_t negative) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(a) ^ (negative << 63));
}

// Rounding `a` to float, and all doubles that the C library may have in its place: equal but for about one number in a
// million.
struct Bounds {
  float low[4][kBlock], high[4][kBlock];
};

CREMA_MULTIVERSION void GaussianBounds(const Words& words, double mean, double std, Bounds& bounds) {
  const double slack = std::fabs(mean) * 0x1p-50;
  for (int k = 0; k < 4; k += 2) {
    for (int i = 0; i < kBlock; ++i) {
      const double radius = std * std::sqrt(-2 * Log((ToDouble(words[k][i]) + 0.5) * 0x1p-32));
      // The angle to the nearest quarter turn, exactly, and which that is.
      const uint64_t turned = uint64_t{words[k + 1][i]} + (1 << 29), quarter = turned >> 30;
      const double x = (ToDouble(turned & ((1 << 30) - 1)) - (1 << 29)) * (6.283185307179586 * 0x1p-32);
      const double sine = Sine(x), cosine = Cosine(x);
      const uint64_t swapped = ~((quarter & 1) - 1);
      const double first = WithSign(Choose(swapped, cosine, sine), (quarter + 1) >> 1 & 1);
      const double second = WithSign(Choose(swapped, sine, cosine), quarter >> 1 & 1);
      const double error = radius * 0x1p-45 + slack, a = mean + radius * first, b = mean + radius * second;
      bounds.low[k][i] = static_cast<float>(a - error);
      bounds.high[k][i] = static_cast<float>(a + error);
      bounds.low[k + 1][i] = static_cast<float>(b - error);
      bounds.high[k + 1][i] = static_cast<float>(b + error);
    }
  }
}

float Gaussian(const Words& words, int k, int i, float mean, float std) {
  const int pair = k & ~1;
  const double radius = std * std::sqrt(-2.0 * std::log((words[pair][i] + 0.5) * 0x1p-32));
  const double angle = 6.283185307179586 * (words[pair + 1][i] * 0x1p-32);
  return static_cast<float>(mean + radius * (k & 1 ? std::sin(angle) : std::cos(angle)));
}

// Those four of a counter that lie within n.
template <typename Value>
void Store(int64_t first, int64_t n, float* values, const Value& value) {
  if (4 * (first + kBlock) <= n) {
    for (int i = 0; i < kBlock; ++i) {
      for (int k = 0; k < 4; ++k) values[4 * (first + i) + k] = value(k, i);
    }
    return;
  }
  for (int64_t at = 4 * first; at < n; ++at) values[at] = value(at & 3, (at >> 2) - first);
}

// make(words, first counter) for every block of counters that n values take.
template <typename Make>
void FillBlocks(const RandomStream& random, int64_t n, const Make& make) {
  ParallelFor((n + 3) / 4, kCountersPerThread, [&](int64_t begin, int64_t end) {
    Words words;
    for (int64_t first = begin; first < end; first += kBlock) {
      Draw(random.seed(), random.stream(), static_cast<uint64_t>(first), words);
      make(words, first);
    }
  });
}

}  // namespace

void FillUniform(const RandomStream& random, float min, float max, int64_t n, float* values) {
  FillBlocks(random, n, [=](const Words& words, int64_t first) {
    Store(first, n, values, [&, width = max - min](int64_t k, int64_t i) {
      return min + width * (static_cast<float>(static_cast<int32_t>(words[k][i] >> 8)) * 0x1p-24f);
    });
  });
}

void FillGaussian(const RandomStream& random, float mean, float std, int64_t n, float* values) {
  FillBlocks(random, n, [=](const Words& words, int64_t first) {
    Bounds bounds;
    GaussianBounds(words, mean, std, bounds);
    const float *low = bounds.low[0], *high = bounds.high[0];
    int doubtful = 0;
    for (int i = 0; i < 4 * kBlock; ++i) doubtful |= low[i] != high[i];
    if (doubtful) {
      for (int k = 0; k < 4; ++k) {
        for (int i = 0; i < kBlock; ++i) {
          if (bounds.low[k][i] != bounds.high[k][i]) bounds.low[k][i] = Gaussian(words, k, i, mean, std);
        }
      }
    }
    Store(first, n, values, [&](int64_t k, int64_t i) { return bounds.low[k][i]; });
  });
}

}  // namespace crema
