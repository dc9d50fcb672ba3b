// The part of the CPU's operations that change the size of images, move what is in them, or compare it.
#ifndef CREMA_OPS_CPU_IMAGE_MAPS_H_
#define CREMA_OPS_CPU_IMAGE_MAPS_H_

#include "ops/cpu_losses.h"

namespace crema {

class CpuImageMaps : public CpuLosses {
 public:
  void InterpolationForward(const Interpolation& problem, const float* x, float* y) override {
    crema::InterpolationForward(problem, x, y);
  }
  void InterpolationBackward(const Interpolation& problem, const float* dy, float* dx) override {
    crema::InterpolationBackward(problem, dy, dx);
  }
  size_t ResamplingWorkspace(const Resampling& problem) override { return crema::ResamplingWorkspace(problem); }
  void ResamplingForward(const Resampling& problem, const float* x, float* y, std::byte* workspace) override {
    crema::ResamplingForward(problem, x, y, workspace);
  }
  void ResamplingBackward(const Resampling& problem, const float* dy, float* dx, std::byte* workspace) override {
    crema::ResamplingBackward(problem, dy, dx, workspace);
  }
  void UnpoolingForward(const UnpoolingProblem& problem, const float* x, const float* index, float* y) override {
    crema::UnpoolingForward(problem, x, index, y);
  }
  void UnpoolingBackward(const UnpoolingProblem& problem, const float* index, const float* dy, float* dx) override {
    crema::UnpoolingBackward(problem, index, dy, dx);
  }
  void SpatialTransformForward(const SpatialTransform& problem, const float* x, const float* theta, float* y) override {
    crema::SpatialTransformForward(problem, x, theta, y);
  }
  size_t SpatialTransformWorkspace(const SpatialTransform& problem) override {
    return crema::SpatialTransformWorkspace(problem);
  }
  void SpatialTransformBackward(const SpatialTransform& problem, const float* x, const float* theta, const float* dy,
                                float* dx, float* dtheta, std::byte* workspace) override {
    crema::SpatialTransformBackward(problem, x, theta, dy, dx, dtheta, workspace);
  }
  size_t CorrelationWorkspace(const CorrelationProblem& problem) override {
    return crema::CorrelationWorkspace(problem);
  }
  void CorrelationForward(const CorrelationProblem& problem, const float* first, const float* second, float* y,
                          std::byte* workspace) override {
    crema::CorrelationForward(problem, first, second, y, workspace);
  }
  void CorrelationBackward(const CorrelationProblem& problem, const float* first, const float* second, const float* dy,
                           float* first_gradient, float* second_gradient, std::byte* workspace) override {
    crema::CorrelationBackward(problem, first, second, dy, first_gradient, second_gradient, workspace);
  }
  MeanFieldMemory MeanFieldMemoryOf(const MeanField& problem, bool keeps) override {
    return crema::MeanFieldMemoryOf(problem, keeps);
  }
  void MakeSpatialLattice(const MeanField& problem, std::byte* lattice, std::byte* workspace) override {
    crema::MakeSpatialLattice(problem, lattice, workspace);
  }
  void MeanFieldForward(const MeanField& problem, const MeanFieldInputs& inputs, const MeanFieldWeights& weights,
                        const MeanFieldTape& tape, float* y, std::byte* workspace) override {
    crema::MeanFieldForward(problem, inputs, weights, tape, y, workspace);
  }
  void MeanFieldBackward(const MeanField& problem, const MeanFieldWeights& weights, const MeanFieldTape& tape,
                         const float* dy, const MeanFieldGradients& gradients, std::byte* workspace) override {
    crema::MeanFieldBackward(problem, weights, tape, dy, gradients, workspace);
  }
};

}  // namespace crema

#endif  // CREMA_OPS_CPU_IMAGE_MAPS_H_
