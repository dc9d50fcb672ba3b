#include "solver/rules/plain_update.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/parallel.h"
#include "crema/solver.h"
#include "solver/rules/rates.h"

namespace crema {

namespace {

constexpr int64_t kGrain = 1 << 15;

int64_t CountOf(std::span<const Parameter> parameters) {
  int64_t count = 0;
  for (const Parameter& parameter : parameters) count += parameter.trained ? parameter.shape.count() : 0;
  return count;
}

// Those that are trained, in memory of their own.
std::vector<Parameter> Plain(std::span<const Parameter> parameters, std::vector<float>& values,
                             std::vector<float>& gradients) {
  std::vector<Parameter> plain;
  int64_t offset = 0;
  for (const Parameter& parameter : parameters) {
    if (!parameter.trained) continue;
    Parameter& own = plain.emplace_back(parameter);
    const TensorSpec spec{parameter.shape, DType::kF32};
    own.data = Tensor(values.data() + offset, spec);
    own.grad = Tensor(gradients.data() + offset, spec);
    own.layout = nullptr;
    own.device = &CpuDevice();
    offset += parameter.shape.count();
  }
  return plain;
}

void CopyFloats(const float* from, int64_t count, float* to) {
  ParallelFor(count, kGrain, [&](int64_t begin, int64_t end) { std::copy(from + begin, from + end, to + begin); });
}

}  // namespace

PlainUpdate::PlainUpdate(const SolverParameter& solver, std::span<const Parameter> parameters)
    : solver_(solver),
      count_(CountOf(parameters)),
      histories_(Updater::HistoriesOf(solver)),
      values_(static_cast<size_t>(count_)),
      gradients_(static_cast<size_t>(count_)),
      parameters_(Plain(parameters, values_, gradients_)),
      updater_(solver_, parameters_) {}

void PlainUpdate::Apply(int iteration, const float* gradients, float* values, float* history) {
  if (count_ == 0) return;
  const float batches = static_cast<float>(solver_.iter_size());
  // The update divides by it again, and clips what Caffe does, the sum.
  ParallelFor(count_, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) gradients_[static_cast<size_t>(i)] = gradients[i] * batches;
  });
  float scale = 1;
  if (solver_.clip_gradients() > 0) {
    const double norm = updater_.GradientNorm();
    if (!std::isfinite(norm)) {
      throw NotFinite("iteration " + std::to_string(iteration) +
                      ": the norm of the workers' gradients is not finite: lower base_lr or clip_gradients");
    }
    scale = updater_.ClipScale(norm);
  }
  CopyFloats(values, count_, values_.data());
  // Moment behind moment.
  float* const memory = updater_.history(0).f32();
  CopyFloats(history, history_count(), memory);
  updater_.Begin(iteration, LearningRateAt(solver_, iteration), scale);
  updater_.Apply();
  CopyFloats(values_.data(), count_, values);
  CopyFloats(memory, history_count(), history);
}

}  // namespace crema
