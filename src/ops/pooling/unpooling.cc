#include "ops/pooling/unpooling.h"

#include <algorithm>

#include "base/parallel.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 16384;  // elements worth waking a thread for
constexpr int64_t kChannels = 16;  // that lie side by side and are one thread's

// Calls body(first input, inputs, first output, how far apart the numbers of a channel are) for planes, or, where
// channels lie side by side, for each of some channels of all pixels of an image; each plane is one thread's.
template <typename Body>
void ForEachPlane(const UnpoolingProblem& p, const Body& body) {
  const bool channels_last = p.layout == Layout::kChannelsLast;
  const int64_t together = channels_last ? kChannels : 1;
  const int64_t groups = (p.channels + together - 1) / together;
  const int64_t work = together * (p.pixels + p.result_pixels);
  ParallelFor(p.images * groups, std::max<int64_t>(1, kGrain / (work + 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t image = i / groups, channel = i % groups * together;
      const int64_t count = std::min(together, p.channels - channel);
      if (channels_last) {
        body(image * p.pixels * p.channels + channel, image * p.result_pixels * p.channels + channel, count,
             p.channels);
      } else {
        body(i * p.pixels, i * p.result_pixels, 1, 1);
      }
    }
  });
}

}  // namespace

void UnpoolingForward(const UnpoolingProblem& p, const float* x, const float* index, float* y) {
  ForEachPlane(p, [&](int64_t from, int64_t to, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < p.result_pixels; ++i) std::fill_n(y + to + i * stride, count, 0.0f);
    for (int64_t i = 0; i < p.pixels; ++i) {
      for (int64_t at = from + i * stride, c = 0; c < count; ++c) {
        y[to + static_cast<int64_t>(index[at + c]) * stride + c] = x[at + c];
      }
    }
  });
}

void UnpoolingBackward(const UnpoolingProblem& p, const float* index, const float* dy, float* dx) {
  ForEachPlane(p, [&](int64_t from, int64_t to, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < p.pixels; ++i) {
      for (int64_t at = from + i * stride, c = 0; c < count; ++c) {
        dx[at + c] = dy[to + static_cast<int64_t>(index[at + c]) * stride + c];
      }
    }
  });
}

}  // namespace crema
