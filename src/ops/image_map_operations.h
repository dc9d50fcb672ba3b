// The operations that change the size of images, move what is in them, or compare it (see operations.h).
#ifndef CREMA_OPS_IMAGE_MAP_OPERATIONS_H_
#define CREMA_OPS_IMAGE_MAP_OPERATIONS_H_

#include <cstddef>
#include <cstdint>

#include "ops/convolution/correlation.h"
#include "ops/mean_field/mean_field.h"
#include "ops/pooling/unpooling.h"
#include "ops/sampling/interpolation.h"
#include "ops/sampling/resampling.h"
#include "ops/sampling/spatial_transform.h"

namespace crema {

class ImageMapOperations {
 public:
  virtual ~ImageMapOperations() = default;

  // --- Sizes of images, and maps of them: ops/sampling/interpolation.h, ops/sampling/resampling.h,
  // ops/pooling/unpooling.h, ops/sampling/spatial_transform.h. ---
  virtual void InterpolationForward(const Interpolation& problem, const float* x, float* y) = 0;
  virtual void InterpolationBackward(const Interpolation& problem, const float* dy, float* dx) = 0;
  virtual size_t ResamplingWorkspace(const Resampling& problem) = 0;
  virtual void ResamplingForward(const Resampling& problem, const float* x, float* y, std::byte* workspace) = 0;
  virtual void ResamplingBackward(const Resampling& problem, const float* dy, float* dx, std::byte* workspace) = 0;
  virtual void UnpoolingForward(const UnpoolingProblem& problem, const float* x, const float* index, float* y) = 0;
  virtual void UnpoolingBackward(const UnpoolingProblem& problem, const float* index, const float* dy, float* dx) = 0;
  virtual void SpatialTransformForward(const SpatialTransform& problem, const float* x, const float* theta,
                                       float* y) = 0;
  virtual size_t SpatialTransformWorkspace(const SpatialTransform& problem) = 0;
  virtual void SpatialTransformBackward(const SpatialTransform& problem, const float* x, const float* theta,
                                        const float* dy, float* dx, float* dtheta, std::byte* workspace) = 0;
  // ops/convolution/correlation.h.
  virtual size_t CorrelationWorkspace(const CorrelationProblem& problem) = 0;
  virtual void CorrelationForward(const CorrelationProblem& problem, const float* first, const float* second, float* y,
                                  std::byte* workspace) = 0;
  virtual void CorrelationBackward(const CorrelationProblem& problem, const float* first, const float* second,
                                   const float* dy, float* first_gradient, float* second_gradient,
                                   std::byte* workspace) = 0;
  // ops/mean_field/mean_field.h.
  virtual MeanFieldMemory MeanFieldMemoryOf(const MeanField& problem, bool keeps) = 0;
  virtual void MakeSpatialLattice(const MeanField& problem, std::byte* lattice, std::byte* workspace) = 0;
  virtual void MeanFieldForward(const MeanField& problem, const MeanFieldInputs& inputs,
                                const MeanFieldWeights& weights, const MeanFieldTape& tape, float* y,
                                std::byte* workspace) = 0;
  virtual void MeanFieldBackward(const MeanField& problem, const MeanFieldWeights& weights, const MeanFieldTape& tape,
                                 const float* dy, const MeanFieldGradients& gradients, std::byte* workspace) = 0;
};

}  // namespace crema

#endif  // CREMA_OPS_IMAGE_MAP_OPERATIONS_H_
