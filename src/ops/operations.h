// The operations that layers are made of, on one device. CPU: the functions of the other headers of this folder, which
// say what each computes; GPU: kernels of the GPU library (src/cuda), issued in order and done later.
//
// All memory is the device's; tensors and arrays are dense unless a stride is named, and may be written over each other
// only where said. Nothing is allocated. One thread at a time.
#ifndef CREMA_OPS_OPERATIONS_H_
#define CREMA_OPS_OPERATIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "base/random.h"
#include "crema/tensor.h"
#include "device/device.h"
#include "ops/activations/activation.h"
#include "ops/activations/elementwise_chain.h"
#include "ops/activations/prelu.h"
#include "ops/arrays/arg_max.h"
#include "ops/arrays/axis_permutation.h"
#include "ops/arrays/box.h"
#include "ops/arrays/embed.h"
#include "ops/arrays/reduction.h"
#include "ops/convolution/convolution.h"
#include "ops/convolution/deformable_im2col.h"
#include "ops/convolution/im2col.h"
#include "ops/detector_operations.h"
#include "ops/image_map_operations.h"
#include "ops/kernel_choice.h"
#include "ops/loss_operations.h"
#include "ops/losses/classification.h"
#include "ops/losses/multi_label.h"
#include "ops/losses/segmentation.h"
#include "ops/losses/softmax.h"
#include "ops/matrices/batched_product.h"
#include "ops/matrices/inner_product.h"
#include "ops/normalization/batch_norm.h"
#include "ops/normalization/bias.h"
#include "ops/normalization/channel_length.h"
#include "ops/normalization/channel_peaks.h"
#include "ops/normalization/channels.h"
#include "ops/normalization/group_norm.h"
#include "ops/normalization/lrn.h"
#include "ops/normalization/normalization.h"
#include "ops/pooling/pooling.h"
#include "ops/sequence_operations.h"
#include "ops/updates/update.h"

namespace crema {

// A matrix in memory, counted in bytes: where it begins and how far its rows lie apart.
struct ByteRows {
  const void* first;
  int64_t stride;
};
struct MutableByteRows {
  void* first;
  int64_t stride;
};

class Operations : public DetectorOperations,
                   public ImageMapOperations,
                   public LossOperations,
                   public SequenceOperations {
 public:
  // --- Elementwise: tensors of equal count, all f32, all bf16 or, on GPUs, all f16; y may be one of the inputs. ---
  virtual void Fill(float value, const Tensor& y) = 0;
  // y = value * *factor
  virtual void FillTimes(float value, const float* factor, const Tensor& y) = 0;
  virtual void Activate(const Activation& activation, const Tensor& x, const Tensor& y) = 0;
  virtual void ActivationGradient(const Activation& activation, const Tensor& known, const Tensor& dy,
                                  const Tensor& dx) = 0;
  // y = a_weight * a + b_weight * b
  virtual void WeightedSum(float a_weight, const Tensor& a, float b_weight, const Tensor& b, const Tensor& y) = 0;
  // y = factor * x
  virtual void Multiply(float factor, const Tensor& x, const Tensor& y) = 0;
  virtual void Product(const Tensor& a, const Tensor& b, const Tensor& y) = 0;
  virtual void Maximum(const Tensor& a, const Tensor& b, const Tensor& y) = 0;
  // y = max(0, a + b)
  virtual void SumRelu(const Tensor& a, const Tensor& b, const Tensor& y) = 0;
  // dx = dy * y / x
  virtual void QuotientGradient(const Tensor& dy, const Tensor& y, const Tensor& x, const Tensor& dx) = 0;
  // ops/arrays/maximum.h.
  virtual void MaximumOfTwo(const Tensor& a, const Tensor& b, const Tensor& y, uint8_t* from) = 0;
  virtual void MaximumWith(const Tensor& x, uint8_t index, const Tensor& y, uint8_t* from) = 0;
  virtual void MaximumBackward(const Tensor& dy, const uint8_t* from, uint8_t index, const Tensor& dx) = 0;
  // ops/activations/elementwise_chain.h.
  virtual void ChainForward(const ElementwiseChain& chain, std::span<const RandomStream> streams, const Tensor& x,
                            const Tensor& y, uint32_t* masks) = 0;
  virtual void ChainForwardWithBias(const ElementwiseChain& chain, std::span<const RandomStream> streams,
                                    const float* bias, int64_t rows, int64_t columns, float* y, uint32_t* masks) = 0;
  virtual void ChainBackward(const ElementwiseChain& chain, const void* known, const uint32_t* masks, const Tensor& dy,
                             const Tensor& dx) = 0;

  // --- Moving. ---
  virtual void Copy(const void* from, void* to, size_t bytes) = 0;
  // `rows` rows of `width` bytes.
  virtual void CopyRows(int64_t rows, int64_t width, ByteRows from, MutableByteRows to) = 0;
  // ops/activations/rectified_rows.h; widths and strides count bytes all the same, of numbers of that type.
  virtual void CopyRectified(DType dtype, int64_t rows, int64_t width, ByteRows from, MutableByteRows to) = 0;
  virtual void CopyRectifiedGradient(DType dtype, int64_t rows, int64_t width, ByteRows gradient, ByteRows rectified,
                                     MutableByteRows to) = 0;
  virtual void CopyOut(const Box& box, const float* whole, float* part) = 0;
  virtual void CopyIn(const Box& box, const float* part, float* whole) = 0;
  // ops/reorder.h.
  virtual void Reorder(const Tensor& from, const Tensor& to) = 0;
  // ops/arrays/axis_permutation.h, between tensors of one type.
  virtual void PermuteAxes(const AxisPermutation& permutation, const Tensor& from, const Tensor& to) = 0;
  virtual void ReverseAxis(const AxisReversal& reversal, const float* x, float* y) = 0;
  // ops/convolution/im2col.h.
  virtual void Im2col(const Im2colProblem& problem, const float* image, float* columns) = 0;
  virtual void Col2im(const Im2colProblem& problem, const float* columns, float* image) = 0;
  // ops/convolution/deformable_im2col.h.
  virtual void DeformableIm2col(const DeformableIm2colProblem& problem, const float* image, const float* offsets,
                                const float* factors, float* columns) = 0;
  virtual size_t DeformableCol2imWorkspace(const DeformableIm2colProblem& problem) = 0;
  virtual void DeformableCol2im(const DeformableIm2colProblem& problem, const float* columns, const float* offsets,
                                const float* factors, float* image, std::byte* workspace) = 0;
  virtual void DeformableOffsetGradient(const DeformableIm2colProblem& problem, const float* columns,
                                        const float* image, const float* offsets, const float* factors,
                                        float* offset_gradient, float* factor_gradient) = 0;

  // --- Sums. ---
  // y = a * x + y, n floats.
  virtual void Axpy(int64_t n, float a, const float* x, float* y) = 0;
  virtual void AddBias(const BiasExtents& extents, const float* x, const float* bias, float* y) = 0;
  virtual void SumToBias(const BiasExtents& extents, const float* dy, float* gradient) = 0;
  // ops/arrays/reduction.h.
  virtual void Reduce(const Reduction& reduction, const float* x, float* y) = 0;
  virtual void ReduceGradient(const Reduction& reduction, const float* dy, const float* x, float* dx) = 0;

  // --- By channel: ops/normalization/channels.h, ops/normalization/batch_norm.h, ops/activations/prelu.h. ---
  virtual size_t ChannelWorkspace(const ChannelGrid& grid) = 0;
  virtual void ChannelAffine(const ChannelGrid& grid, const crema::ChannelAffine& map, std::byte* workspace) = 0;
  virtual void ChannelGradientSums(const ChannelGrid& grid, const ChannelGradient& g, const void* x, const float* mean,
                                   float* sum, float* product, std::byte* workspace) = 0;
  virtual void ChannelGradientMap(const ChannelGrid& grid, const crema::ChannelGradientMap& map,
                                  std::byte* workspace) = 0;
  virtual void BatchNormFromBatch(const ChannelGrid& grid, const void* x, const BatchNormScalars& norm,
                                  const BatchNormForward& arrays, std::byte* workspace) = 0;
  virtual void BatchNormFromRunning(const BatchNormScalars& norm, const BatchNormForward& arrays) = 0;
  virtual void BatchNormGradients(const ChannelGrid& grid, const ChannelGradient& g, const void* x,
                                  const BatchNormScalars& norm, const BatchNormBackward& arrays,
                                  std::byte* workspace) = 0;
  virtual void FoldNormalization(const BatchNormScalars& norm, const FoldedArrays& arrays) = 0;
  virtual size_t PreluWorkspace(const ChannelGrid& grid) = 0;
  virtual void PreluForward(const ChannelGrid& grid, const void* x, const float* slope, void* y,
                            std::byte* workspace) = 0;
  virtual void PreluBackward(const ChannelGrid& grid, const void* x, const float* slope, const void* dy, void* dx,
                             float* slope_gradient, std::byte* workspace) = 0;

  // --- Classes: ops/losses/softmax.h, ops/losses/classification.h. ---
  virtual void SoftmaxForward(const ClassAxis& axis, const float* x, float* y) = 0;
  virtual void SoftmaxBackward(const ClassAxis& axis, const float* y, const float* dy, float* dx) = 0;
  virtual void SoftmaxLossForward(const SoftmaxLoss& loss, const float* probability, const float* label,
                                  float* value) = 0;
  virtual void SoftmaxLossTerms(const SoftmaxLoss& loss, const float* probability, const float* label,
                                float* terms) = 0;
  virtual void SoftmaxLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                                   const float* label, float* dx) = 0;
  virtual void MeasureMultiLabel(int64_t count, const float* scores, const float* label, float* measures) = 0;
  virtual void Accuracy(const AccuracyProblem& problem, const float* scores, const float* label, float* share,
                        float* of_class, float* labels_of_class) = 0;
  // Looks for the first value that is unusable. The CPU answers at once, with its position or -1 when all are fine.
  // A GPU answers -1 and remembers: Gpu::TakeFault tells when the pass is over.
  virtual int64_t FindBadLabel(const LabelRule& rule, int64_t classes, int64_t labels, const float* label) = 0;
  virtual int64_t FindBadIndex(const EmbedProblem& problem, const float* index) = 0;
  // ops/arrays/arg_max.h.
  virtual void ArgMax(const ArgMaxProblem& problem, const float* x, float* y) = 0;
  // ops/losses/segmentation.h.
  virtual void CountPixels(const PixelCounting& counting, const float* scores, const float* label,
                           const ClassPixels* before, ClassPixels* after, std::byte* workspace) = 0;
  virtual void MeasureSegmentation(int64_t classes, const ClassPixels* pixels, float* measures) = 0;
  virtual void MeasureClass(const ClassPixels* pixels, float* measures) = 0;

  // --- Tables: ops/arrays/embed.h. ---
  virtual void EmbedForward(const EmbedProblem& problem, const float* index, const float* table, const float* bias,
                            float* y) = 0;
  // Scratch bytes of EmbedBackward; 0 on the CPU.
  virtual size_t EmbedWorkspace(const EmbedProblem& problem) = 0;
  virtual void EmbedBackward(const EmbedProblem& problem, const float* index, const float* dy, float* table_gradient,
                             std::byte* workspace) = 0;

  // --- Each record by itself: ops/normalization/normalization.h, ops/normalization/group_norm.h,
  // ops/normalization/channel_length.h, ops/normalization/channel_peaks.h. ---
  virtual void MvnForward(const MvnProblem& problem, const float* x, float* y, float* inverse) = 0;
  virtual void MvnBackward(const MvnProblem& problem, const float* y, const float* inverse, const float* dy,
                           float* dx) = 0;
  virtual void NormalizeForward(const NormalizeProblem& problem, const float* x, const float* scale, float* y,
                                float* inverse) = 0;
  virtual void NormalizeBackward(const NormalizeProblem& problem, const float* x, const float* scale,
                                 const float* inverse, const float* dy, float* dx, float* scale_gradient) = 0;
  virtual void GroupNormForward(const GroupNormProblem& problem, const float* x, const float* scale, const float* shift,
                                float* y, RowMoments* moments) = 0;
  virtual size_t GroupNormBackwardWorkspace(const GroupNormProblem& problem) = 0;
  virtual void GroupNormBackward(const GroupNormProblem& problem, const float* x, const float* scale,
                                 const RowMoments* moments, const float* dy, const GroupNormGradients& gradients,
                                 std::byte* workspace) = 0;

  virtual void ChannelLengthForward(const ClassAxis& axis, const float* x, float* y) = 0;
  virtual void ChannelLengthBackward(const ClassAxis& axis, const float* x, const float* y, const float* dy,
                                     float* dx) = 0;
  virtual void ExpBelowPeak(const ClassAxis& axis, const float* x, float* y) = 0;

  // --- Kernels chosen once for a problem (the Make... functions of their headers call these). ---
  virtual std::unique_ptr<ConvolutionKernel> MakeConvolution(const ConvolutionProblem& problem, KernelChoice* choice,
                                                             std::string_view only) = 0;
  virtual std::unique_ptr<InnerProductKernel> MakeInnerProduct(const InnerProductProblem& problem, KernelChoice* choice,
                                                               std::string_view only) = 0;
  virtual std::unique_ptr<BatchedProductKernel> MakeBatchedProduct(const BatchedProductProblem& problem,
                                                                   KernelChoice* choice, std::string_view only) = 0;
  virtual std::unique_ptr<PoolingKernel> MakePooling(const PoolingProblem& problem, KernelChoice* choice,
                                                     std::string_view only) = 0;
  virtual std::unique_ptr<LrnKernel> MakeLrn(const LrnProblem& problem, KernelChoice* choice,
                                             std::string_view only) = 0;

  // Null where parameters are updated chunk by chunk.
  virtual MultiUpdater* multi_updater() { return nullptr; }

  // --- Looking at results. ---
  // *total = weight * the sum of n floats, + *total where `add`; accumulated in double.
  virtual void AddLoss(float weight, int64_t n, const float* x, bool add, double* total) = 0;
  // Whether any of n floats is a NaN or an infinity. Waits for the device.
  virtual bool HasNonFinite(int64_t n, const float* x) = 0;
};

// Those of a device, which must outlive their use.
Operations& OperationsOf(Device& device);

}  // namespace crema

#endif  // CREMA_OPS_OPERATIONS_H_
