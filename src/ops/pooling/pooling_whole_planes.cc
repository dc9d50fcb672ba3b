// Means and sums of whole planes, as global pooling takes them.
#include <algorithm>

#include "base/multiversion.h"
#include "ops/arrays/packs.h"
#include "ops/pooling/pooling_kernels.h"

namespace crema {

namespace {

constexpr int kLanes = 16, kPacks = 4;
constexpr int64_t kBlock = 4096;  // numbers, of which sums stay short enough for floats

// Of n <= kBlock numbers.
CREMA_INLINE float SumOfBlock(int64_t n, const float* x) {
  using Floats = Pack<kLanes>::Floats;
  Floats sums[kPacks] = {}, values;
  int64_t i = 0;
  for (; i + kPacks * kLanes <= n; i += kPacks * kLanes) {
    for (int k = 0; k < kPacks; ++k) {
      LoadPack(x + i + k * kLanes, &values);
      sums[k] += values;
    }
  }
  for (; i + kLanes <= n; i += kLanes) {
    LoadPack(x + i, &values);
    sums[0] += values;
  }
  float lanes[kLanes], rest = 0;
  StorePack((sums[0] + sums[1]) + (sums[2] + sums[3]), lanes);
  for (; i < n; ++i) rest += x[i];
  for (int width = kLanes / 2; width > 0; width /= 2) {
    for (int lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0] + rest;
}

CREMA_MULTIVERSION void SumPlanes(int64_t planes, int64_t extent, double divisor, const float* x, float* y) {
  for (int64_t plane = 0; plane < planes; ++plane, x += extent) {
    double sum = 0;
    for (int64_t i = 0; i < extent; i += kBlock) sum += SumOfBlock(std::min(kBlock, extent - i), x + i);
    y[plane] = static_cast<float>(sum / divisor);
  }
}

CREMA_MULTIVERSION void FillPlanes(int64_t planes, int64_t extent, float divisor, const float* dy, float* dx) {
  for (int64_t plane = 0; plane < planes; ++plane, dx += extent) {
    const float share = dy[plane] / divisor;
#pragma omp simd
    for (int64_t i = 0; i < extent; ++i) dx[i] = share;
  }
}

bool HoldsAll(const WindowRanges& axis, int64_t extent) {
  return axis.begin.size() == 1 && axis.begin[0] == 0 && axis.end[0] == extent;
}

class WholePlanePooling final : public PoolingKernel {
 public:
  WholePlanePooling(const PoolingProblem& problem, int64_t divisor) : problem_(problem), divisor_(divisor) {}

  void Forward(const void* source, void* destination, void*, float*, const RandomStream*) override {
    const auto* const x = static_cast<const float*>(source);
    auto* const y = static_cast<float*>(destination);
    ForPlanes([&](int64_t begin, int64_t end) {
      const int64_t extent = problem_.input_plane();
      SumPlanes(end - begin, extent, static_cast<double>(divisor_), x + begin * extent, y + begin);
    });
  }

  void Backward(const void*, const void* destination_gradient, const void*, void* source_gradient) override {
    const auto* const dy = static_cast<const float*>(destination_gradient);
    auto* const dx = static_cast<float*>(source_gradient);
    ForPlanes([&](int64_t begin, int64_t end) {
      const int64_t extent = problem_.input_plane();
      FillPlanes(end - begin, extent, static_cast<float>(divisor_), dy + begin, dx + begin * extent);
    });
  }

 private:
  template <typename Body>
  void ForPlanes(const Body& body) const {
    constexpr int64_t kGrain = 16384;  // input elements worth waking a thread for
    ParallelFor(problem_.planes(), std::max<int64_t>(1, kGrain / problem_.input_plane()), body);
  }

  PoolingProblem problem_;
  int64_t divisor_;
};

}  // namespace

std::unique_ptr<PoolingKernel> MakeWholePlanePooling(const PoolingProblem& problem, const Device& device,
                                                     std::string* why_not) {
  const PoolingProblem& p = problem;
  const bool divides = p.method == PoolingMethod::kAverage;
  const WindowRanges slices(p.input_depth, p.depth, p.output_depth, divides),
      rows(p.input_height, p.vertical, p.output_height, divides),
      columns(p.input_width, p.horizontal, p.output_width, divides);
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (!p.sums()) {
    *why_not = "takes averages and sums only";
  } else if (p.layout != Layout::kPlain) {
    *why_not = "takes plain images only";
  } else if (!HoldsAll(slices, p.input_depth) || !HoldsAll(rows, p.input_height) || !HoldsAll(columns, p.input_width) ||
             p.input_plane() == 0) {
    *why_not = "takes windows that hold all of a plane only";
  } else {
    return std::make_unique<WholePlanePooling>(p, slices.padded[0] * rows.padded[0] * columns.padded[0]);
  }
  return nullptr;
}

}  // namespace crema
