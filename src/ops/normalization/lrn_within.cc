// LRN over a window of each channel: one plane at a time, box sums along columns, then along rows.
#include <algorithm>

#include "base/parallel.h"
#include "ops/normalization/lrn_kernels.h"
#include "ops/normalization/lrn_rows.h"

namespace crema {

namespace {

class WithinChannel final : public LrnKernel {
 public:
  explicit WithinChannel(const LrnProblem& problem)
      : p_(problem),
        planes_(problem.batch * problem.channels),
        pixels_(problem.height * problem.width),
        slots_(std::min<int64_t>(omp_get_max_threads(), planes_)) {}

  size_t forward_workspace() const override { return Bytes(3); }
  size_t backward_workspace() const override { return p_.backward ? Bytes(4) : 0; }

  void Forward(const void* given, void* made, std::byte* workspace) override {
    const float* source = static_cast<const float*>(given);
    float* destination = static_cast<float*>(made);
    ForEachPlane(workspace, 3, [&](int64_t plane, float* scratch) {
      float* scale = scratch + 2 * pixels_;
      Scale(source + plane * pixels_, scratch, scale);
      NegativePower(scale, p_.beta, pixels_, scale);
      MultiplyRows(source + plane * pixels_, scale, pixels_, destination + plane * pixels_);
    });
  }

  void Backward(const void* given, const void* given_gradient, void* made, std::byte* workspace) override {
    const float *source = static_cast<const float*>(given),
                *destination_gradient = static_cast<const float*>(given_gradient);
    float* source_gradient = static_cast<float*>(made);
    ForEachPlane(workspace, 4, [&](int64_t plane, float* scratch) {
      const float* x = source + plane * pixels_;
      float* dx = source_gradient + plane * pixels_;
      float *ratio = scratch, *sum = scratch + pixels_, *scale = scratch + 2 * pixels_, *power = scratch + 3 * pixels_;
      Scale(x, scratch, scale);
      NegativePower(scale, p_.beta, pixels_, power);
      GradientTerms(destination_gradient + plane * pixels_, power, scale, x, pixels_, dx, ratio);
      BoxSum(ratio, sum, scale);
      SubtractProducts(2 * p_.beta * Weight(), x, scale, pixels_, dx);
    });
  }

 private:
  float Weight() const { return p_.alpha / static_cast<float>(p_.size * p_.size); }
  size_t Bytes(int64_t planes) const { return static_cast<size_t>(slots_ * planes * pixels_) * sizeof(float); }

  // By slots, not threads: each owns `scratch_planes` planes of the workspace, however many threads there are by now.
  template <typename Body>
  void ForEachPlane(std::byte* workspace, int64_t scratch_planes, const Body& body) const {
    ParallelFor(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        float* scratch = reinterpret_cast<float*>(workspace) + slot * scratch_planes * pixels_;
        for (int64_t plane = planes_ * slot / slots_; plane < planes_ * (slot + 1) / slots_; ++plane) {
          body(plane, scratch);
        }
      }
    });
  }

  // scratch: two planes.
  void Scale(const float* x, float* scratch, float* scale) const {
    MultiplyRows(x, x, pixels_, scratch);
    BoxSum(scratch, scratch + pixels_, scale);
    ScaleFromSquares(1, Weight(), pixels_, scale);
  }

  // sum[h][w] = sum of from over the window around (h, w), clipped to the plane.
  void BoxSum(const float* from, float* columns, float* sum) const {
    const int64_t half = p_.size / 2, height = p_.height, width = p_.width;
    std::fill_n(columns, pixels_, 0.0f);
    std::fill_n(sum, pixels_, 0.0f);
    for (int64_t h = 0; h < height; ++h) {
      for (int64_t i = std::max<int64_t>(h - half, 0); i <= std::min(h + half, height - 1); ++i) {
        AddRow(from + i * width, width, columns + h * width);
      }
      for (int64_t shift = -std::min(half, width - 1); shift <= std::min(half, width - 1); ++shift) {
        const int64_t begin = std::max<int64_t>(-shift, 0), end = std::min(width - shift, width);
        AddRow(columns + h * width + begin + shift, end - begin, sum + h * width + begin);
      }
    }
  }

  LrnProblem p_;
  int64_t planes_, pixels_, slots_;
};

}  // namespace

std::unique_ptr<LrnKernel> MakeLrnWithinVectorised(const LrnProblem& problem, const Device& device,
                                                   std::string* why_not) {
  if (device.type() != DeviceType::kCpu) {
    *why_not = "runs on the CPU only";
  } else if (problem.layout != Layout::kPlain) {
    *why_not = "takes plain images only";
  } else if (problem.region != LrnProblem::Region::kWithinChannel) {
    *why_not = "region is across channels";
  } else {
    return std::make_unique<WithinChannel>(problem);
  }
  return nullptr;
}

}  // namespace crema
