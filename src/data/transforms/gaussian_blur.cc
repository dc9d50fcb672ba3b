#include "data/transforms/gaussian_blur.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/multiversion.h"

namespace crema {

namespace {

constexpr int kWeightBits = 16;
constexpr int kBetweenBits = 8;  // behind the point, of what columns become before rows are blurred

// That of the middle first; those of both sides and it are 1 together.
void FindWeights(double sigma, std::vector<uint32_t>* weights) {
  const auto reach = static_cast<size_t>(std::ceil(3 * sigma));
  const auto density = [sigma](size_t i) {
    const double x = static_cast<double>(i) / sigma;
    return std::exp(-0.5 * x * x);
  };
  double sum = 1;
  for (size_t i = 1; i <= reach; ++i) sum += 2 * density(i);
  weights->resize(reach + 1);
  uint32_t others = 0;
  for (size_t i = 1; i <= reach; ++i) {
    (*weights)[i] = static_cast<uint32_t>(std::lrint(density(i) / sum * (1 << kWeightBits)));
    others += 2 * (*weights)[i];
  }
  (*weights)[0] = (1 << kWeightBits) - others;
  while (weights->size() > 1 && weights->back() == 0) weights->pop_back();
}

// Of `count` pixels, that number i from the first one lies at.
int Mirrored(int i, int count) {
  if (count == 1) return 0;
  const int period = 2 * (count - 1);
  i = std::abs(i) % period;
  return std::min(i, period - i);
}

template <typename Value>
CREMA_INLINE void Begin(const Value* from, int n, uint32_t weight, uint32_t* __restrict sums) {
  for (int i = 0; i < n; ++i) sums[i] = from[i] * weight;
}

template <typename Value>
CREMA_INLINE void AddPair(const Value* one, const Value* other, int n, uint32_t weight, uint32_t* __restrict sums) {
  for (int i = 0; i < n; ++i) sums[i] += (uint32_t{one[i]} + other[i]) * weight;
}

CREMA_MULTIVERSION void BeginColumns(const uint8_t* from, int n, uint32_t weight, uint32_t* sums) {
  Begin(from, n, weight, sums);
}

CREMA_MULTIVERSION void AddRows(const uint8_t* one, const uint8_t* other, int n, uint32_t weight, uint32_t* sums) {
  AddPair(one, other, n, weight, sums);
}

CREMA_MULTIVERSION void EndColumns(const uint32_t* sums, int n, uint16_t* __restrict to) {
  constexpr int kShift = kWeightBits - kBetweenBits;
  for (int i = 0; i < n; ++i) to[i] = static_cast<uint16_t>((sums[i] + (1 << (kShift - 1))) >> kShift);
}

// `from`: the first of n values, with values to both sides.
CREMA_MULTIVERSION void BlurRow(const uint16_t* from, int n, int channels, const uint32_t* weights, int reach,
                                uint32_t* sums, uint8_t* __restrict to) {
  Begin(from, n, weights[0], sums);
  for (int k = 1; k <= reach; ++k) AddPair(from - k * channels, from + k * channels, n, weights[k], sums);
  constexpr int kShift = kWeightBits + kBetweenBits;
  for (int i = 0; i < n; ++i) to[i] = static_cast<uint8_t>((sums[i] + (1U << (kShift - 1))) >> kShift);
}

}  // namespace

void BlurGaussian(const Image& from, double sigma, BlurBuffers* buffers, Image* to) {
  CREMA_CHECK(&from != to && sigma > 0 && sigma <= GaussianBlur::kMostSigma);
  FindWeights(sigma, &buffers->weights);
  const int reach = static_cast<int>(buffers->weights.size()) - 1, channels = from.channels;
  const auto bytes = static_cast<int>(from.row_bytes());
  to->Resize(from.height, from.width, channels);
  buffers->sums.resize(from.row_bytes());
  buffers->row.resize(static_cast<size_t>((from.width + 2 * reach) * channels));
  uint32_t* const sums = buffers->sums.data();
  uint16_t* const row = buffers->row.data() + reach * channels;
  for (int y = 0; y < from.height; ++y) {
    BeginColumns(from.row(y), bytes, buffers->weights[0], sums);
    for (int k = 1; k <= reach; ++k) {
      AddRows(from.row(Mirrored(y - k, from.height)), from.row(Mirrored(y + k, from.height)), bytes,
              buffers->weights[static_cast<size_t>(k)], sums);
    }
    EndColumns(sums, bytes, row);
    for (int k = 1; k <= reach; ++k) {
      const int right = from.width - 1 + k;
      std::copy_n(row + Mirrored(-k, from.width) * channels, channels, row - k * channels);
      std::copy_n(row + Mirrored(right, from.width) * channels, channels, row + right * channels);
    }
    BlurRow(row, bytes, channels, buffers->weights.data(), reach, sums, to->row(y));
  }
}

}  // namespace crema
