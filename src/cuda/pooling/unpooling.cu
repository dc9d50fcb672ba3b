#include <cstring>

#include "cuda/arrays/lanes.h"
#include "cuda/operations.h"
#include "ops/pooling/unpooling.h"

namespace crema::cuda {

namespace {

// Which element of which plane the one at `at` is, in a tensor with planes of so many pixels.
struct Place {
  int64_t image, channel, pixel;

  __device__ Place(const UnpoolingProblem& p, int64_t at, int64_t pixels) : image(at) {
    if (p.layout == Layout::kChannelsLast) {
      channel = SplitOff(&image, p.channels);
      pixel = SplitOff(&image, pixels);
    } else {
      pixel = SplitOff(&image, pixels);
      channel = SplitOff(&image, p.channels);
    }
  }
  // Where another element of that plane lies, in a tensor whose planes have `pixels`.
  __device__ int64_t At(const UnpoolingProblem& p, int64_t other_pixel, int64_t pixels) const {
    return p.layout == Layout::kChannelsLast ? (image * pixels + other_pixel) * p.channels + channel
                                             : (image * p.channels + channel) * pixels + other_pixel;
  }
};

// Indices that are none were reported; nothing is done with them.
__device__ bool IsPixel(const UnpoolingProblem& p, float index) {
  return index >= 0 && index < static_cast<float>(p.result_pixels);
}

// The result first holds which element each of its own is, -1: none. The last one of several is the largest, in
// whatever order they come.
struct Claim {
  UnpoolingProblem p;
  const float* index;
  int32_t* owner;
  __device__ void operator()(int64_t at) const {
    if (!IsPixel(p, index[at])) return;
    const Place place(p, at, p.pixels);
    const int64_t to = place.At(p, static_cast<int64_t>(index[at]), p.result_pixels);
    atomicMax(owner + to, static_cast<int32_t>(place.pixel));
  }
};

struct Unclaimed {
  int32_t* owner;
  __device__ void operator()(int64_t at) const { owner[at] = -1; }
};

struct TakeOwner {
  UnpoolingProblem p;
  const float* x;
  float* y;
  __device__ void operator()(int64_t at) const {
    int32_t pixel;
    std::memcpy(&pixel, y + at, sizeof pixel);
    y[at] = pixel < 0 ? 0.0f : x[Place(p, at, p.result_pixels).At(p, pixel, p.pixels)];
  }
};

struct Pick {
  UnpoolingProblem p;
  const float *index, *dy;
  float* dx;
  __device__ void operator()(int64_t at) const {
    const Place place(p, at, p.pixels);
    dx[at] = IsPixel(p, index[at]) ? dy[place.At(p, static_cast<int64_t>(index[at]), p.result_pixels)] : 0.0f;
  }
};

}  // namespace

void CudaOperations::UnpoolingForward(const UnpoolingProblem& problem, const float* x, const float* index, float* y) {
  auto* owner = reinterpret_cast<int32_t*>(y);
  ForEach(queue(), problem.outputs(), Unclaimed{owner});
  ForEach(queue(), problem.inputs(), Claim{problem, index, owner});
  ForEach(queue(), problem.outputs(), TakeOwner{problem, x, y});
}

void CudaOperations::UnpoolingBackward(const UnpoolingProblem& problem, const float* index, const float* dy,
                                       float* dx) {
  ForEach(queue(), problem.inputs(), Pick{problem, index, dy, dx});
}

}  // namespace crema::cuda
