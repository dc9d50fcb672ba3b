#include "ops/sampling/mix_up.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"
#include "ops/arrays/elementwise.h"
#include "ops/sampling/mix_up_formulas.h"

namespace crema {

namespace {

constexpr int64_t kChunk = 16384;  // elements of an image that a thread takes at a time

void Blend(float share, int64_t n, const float* own, const float* other, float* y) {
  internal::MapRange(formula::WeightedSum{share, 1.0f - share}, n, y, own, other);
}
void Blend(float share, int64_t n, const BFloat16* own, const BFloat16* other, BFloat16* y) {
  internal::MapBFloat16(formula::WeightedSum{share, 1.0f - share}, 0, n, y, internal::BFloat16Input(own),
                        internal::BFloat16Input(other));
}

// Elements [begin, end) of an image that is a rectangle of the other's and itself around it.
template <typename Number>
void Cut(const MixUpProblem& p, const ImageMix& mix, int64_t begin, int64_t end, const Number* own, const Number* other,
         Number* y) {
  std::memcpy(y + begin, own + begin, static_cast<size_t>(end - begin) * sizeof(Number));
  const int64_t row_size = p.width * p.channels;
  for (int64_t row = begin / row_size; row * row_size < end; ++row) {
    const int64_t line = row % p.height;
    if (line < mix.top || line >= mix.bottom) continue;
    const int64_t from = std::max(begin, row * row_size + mix.left * p.channels);
    const int64_t to = std::min(end, row * row_size + mix.right * p.channels);
    if (from < to) std::memcpy(y + from, other + from, static_cast<size_t>(to - from) * sizeof(Number));
  }
}

template <typename Number>
void MixAll(const MixUpProblem& p, const ImageMix* mixes, const Number* x, Number* y) {
  const int64_t size = p.image_size(), chunks = (size + kChunk - 1) / kChunk;
  const int64_t grain = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, size));
  // Chunks begin at the same elements on any number of threads, so that all are vectorised alike.
  ParallelFor(p.images * chunks, grain, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      const int64_t image = chunk / chunks, begin = chunk % chunks * kChunk, end = std::min(size, begin + kChunk);
      const ImageMix& mix = mixes[image];
      const Number *own = x + image * size, *other = x + mix.other * size;
      Number* const to = y + image * size;
      if (mix.share == 1) {
        std::memcpy(to + begin, own + begin, static_cast<size_t>(end - begin) * sizeof(Number));
      } else if (mix.cuts()) {
        Cut(p, mix, begin, end, own, other, to);
      } else {
        Blend(mix.share, end - begin, own + begin, other + begin, to + begin);
      }
    }
  });
}

}  // namespace

void DrawMixes(const MixUpProblem& problem, const RandomStream& random, ImageMix* mixes) {
  for (int64_t image = 0; image < problem.images; ++image) mixes[image] = mix_up::DrawMix(problem, random, image);
}

void MixImages(const MixUpProblem& problem, const ImageMix* mixes, const Tensor& x, const Tensor& y) {
  if (x.dtype() == DType::kBF16) return MixAll(problem, mixes, x.bf16(), y.bf16());
  MixAll(problem, mixes, x.f32(), y.f32());
}

void MixLabels(const MixUpProblem& problem, const ImageMix* mixes, const float* label, float* target) {
  for (int64_t image = 0; image < problem.images; ++image) {
    const float own = label[image], other = mixes ? label[mixes[image].other] : own;
    float* const row = target + image * problem.classes;
    std::fill(row, row + problem.classes, 0.0f);
    for (const float named : {own, other}) {
      const auto c = static_cast<int64_t>(named);
      row[c] = mix_up::TargetOf(mixes ? mixes[image].share : 1.0f, own, other, c);
    }
  }
}

}  // namespace crema
