#include "ops/operations.h"

#include <cstring>

#include "base/bfloat16.h"
#include "base/check.h"
#include "base/parallel.h"
#include "ops/activations/rectified_rows.h"
#include "ops/arrays/elementwise.h"
#include "ops/arrays/maximum.h"
#include "ops/arrays/vector_math.h"
#include "ops/cpu_image_maps.h"
#include "ops/reorder.h"

namespace crema {

namespace {

// Calls body with a null pointer to float or to BFloat16; f16 is of GPUs.
template <typename Body>
void WithNumber(DType dtype, const Body& body) {
  if (dtype == DType::kBF16) return body(static_cast<BFloat16*>(nullptr));
  body(static_cast<float*>(nullptr));
}

template <typename Number>
Number* As(const Tensor& tensor, Number*) {
  return static_cast<Number*>(tensor.raw());
}

template <typename Number>
Rows<const Number> As(ByteRows rows, Number*) {
  return {static_cast<const Number*>(rows.first), rows.stride / static_cast<int64_t>(sizeof(Number))};
}

template <typename Number>
Rows<Number> As(MutableByteRows rows, Number*) {
  return {static_cast<Number*>(rows.first), rows.stride / static_cast<int64_t>(sizeof(Number))};
}

class CpuOperations final : public CpuImageMaps {
 public:
  void Fill(float value, const Tensor& y) override { Map(formula::Constant{value}, y); }
  void FillTimes(float value, const float* factor, const Tensor& y) override { Fill(value * *factor, y); }
  void Activate(const Activation& activation, const Tensor& x, const Tensor& y) override {
    RunActivation(activation, x, y);
  }
  void ActivationGradient(const Activation& activation, const Tensor& known, const Tensor& dy,
                          const Tensor& dx) override {
    RunActivationGradient(activation, known, dy, dx);
  }
  void WeightedSum(float a_weight, const Tensor& a, float b_weight, const Tensor& b, const Tensor& y) override {
    if (a_weight == 1 && b_weight == 1) return Map(formula::Sum{}, y, a, b);
    Map(formula::WeightedSum{a_weight, b_weight}, y, a, b);
  }
  void Multiply(float factor, const Tensor& x, const Tensor& y) override { Map(formula::Multiple{factor}, y, x); }
  void Product(const Tensor& a, const Tensor& b, const Tensor& y) override { Map(formula::Product{}, y, a, b); }
  void Maximum(const Tensor& a, const Tensor& b, const Tensor& y) override { Map(formula::Maximum{}, y, a, b); }
  void SumRelu(const Tensor& a, const Tensor& b, const Tensor& y) override { Map(formula::SumRelu{}, y, a, b); }
  void QuotientGradient(const Tensor& dy, const Tensor& y, const Tensor& x, const Tensor& dx) override {
    Map(formula::QuotientGradient{}, dx, dy, y, x);
  }
  void MaximumOfTwo(const Tensor& a, const Tensor& b, const Tensor& y, uint8_t* from) override {
    WithNumber(y.dtype(), [&](auto n) { crema::MaximumOfTwo(y.count(), As(a, n), As(b, n), As(y, n), from); });
  }
  void MaximumWith(const Tensor& x, uint8_t index, const Tensor& y, uint8_t* from) override {
    WithNumber(y.dtype(), [&](auto n) { crema::MaximumWith(y.count(), As(x, n), index, As(y, n), from); });
  }
  void MaximumBackward(const Tensor& dy, const uint8_t* from, uint8_t index, const Tensor& dx) override {
    WithNumber(dx.dtype(), [&](auto n) { crema::MaximumBackward(dx.count(), As(dy, n), from, index, As(dx, n)); });
  }
  void ChainForward(const ElementwiseChain& chain, std::span<const RandomStream> streams, const Tensor& x,
                    const Tensor& y, uint32_t* masks) override {
    chain.Forward(streams, x, y, masks);
  }
  void ChainForwardWithBias(const ElementwiseChain& chain, std::span<const RandomStream> streams, const float* bias,
                            int64_t rows, int64_t columns, float* y, uint32_t* masks) override {
    chain.ForwardWithBias(streams, bias, rows, columns, y, masks);
  }
  void ChainBackward(const ElementwiseChain& chain, const void* known, const uint32_t* masks, const Tensor& dy,
                     const Tensor& dx) override {
    chain.Backward(known, masks, dy, dx);
  }

  void Copy(const void* from, void* to, size_t bytes) override {
    constexpr int64_t kGrain = 1 << 16;  // bytes worth waking a thread for
    ParallelFor(static_cast<int64_t>(bytes), kGrain, [=](int64_t begin, int64_t end) {
      std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin, end - begin);
    });
  }
  void CopyRows(int64_t rows, int64_t width, ByteRows from, MutableByteRows to) override {
    CopyByteRows(rows, width, from.first, from.stride, to.first, to.stride);
  }
  void CopyRectified(DType dtype, int64_t rows, int64_t width, ByteRows from, MutableByteRows to) override {
    WithNumber(dtype, [&]<typename Number>(Number* n) {
      crema::CopyRectified<Number>(rows, width / static_cast<int64_t>(sizeof(Number)), As(from, n), As(to, n));
    });
  }
  void CopyRectifiedGradient(DType dtype, int64_t rows, int64_t width, ByteRows gradient, ByteRows rectified,
                             MutableByteRows to) override {
    CREMA_CHECK(gradient.stride == rectified.stride) << "rows of a gradient and of what it is of lie differently";
    WithNumber(dtype, [&]<typename Number>(Number* n) {
      crema::CopyRectifiedGradient<Number>(rows, width / static_cast<int64_t>(sizeof(Number)), As(gradient, n).first,
                                           As(rectified, n).first, As(gradient, n).stride, As(to, n));
    });
  }
  void CopyOut(const Box& box, const float* whole, float* part) override { box.CopyOut(whole, part); }
  void CopyIn(const Box& box, const float* part, float* whole) override { box.CopyIn(part, whole); }
  void Reorder(const Tensor& from, const Tensor& to) override { ReorderImage(from, to); }
  void PermuteAxes(const AxisPermutation& permutation, const Tensor& from, const Tensor& to) override {
    crema::PermuteAxes(permutation, from, to);
  }
  void ReverseAxis(const AxisReversal& reversal, const float* x, float* y) override {
    crema::ReverseAxis(reversal, x, y);
  }
  void Im2col(const Im2colProblem& problem, const float* image, float* columns) override {
    crema::Im2col(problem, image, columns);
  }
  void Col2im(const Im2colProblem& problem, const float* columns, float* image) override {
    crema::Col2im(problem, columns, image);
  }
  void DeformableIm2col(const DeformableIm2colProblem& problem, const float* image, const float* offsets,
                        const float* factors, float* columns) override {
    crema::DeformableIm2col(problem, image, offsets, factors, columns);
  }
  size_t DeformableCol2imWorkspace(const DeformableIm2colProblem&) override { return 0; }
  void DeformableCol2im(const DeformableIm2colProblem& problem, const float* columns, const float* offsets,
                        const float* factors, float* image, std::byte*) override {
    crema::DeformableCol2im(problem, columns, offsets, factors, image);
  }
  void DeformableOffsetGradient(const DeformableIm2colProblem& problem, const float* columns, const float* image,
                                const float* offsets, const float* factors, float* offset_gradient,
                                float* factor_gradient) override {
    crema::DeformableOffsetGradient(problem, columns, image, offsets, factors, offset_gradient, factor_gradient);
  }

  void Axpy(int64_t n, float a, const float* x, float* y) override { crema::Axpy(n, a, x, y); }
  void AddBias(const BiasExtents& extents, const float* x, const float* bias, float* y) override {
    crema::AddBias(extents, x, bias, y);
  }
  void SumToBias(const BiasExtents& extents, const float* dy, float* gradient) override {
    crema::SumToBias(extents, dy, gradient);
  }
  void Reduce(const Reduction& reduction, const float* x, float* y) override { crema::Reduce(reduction, x, y); }
  void ReduceGradient(const Reduction& reduction, const float* dy, const float* x, float* dx) override {
    crema::ReduceGradient(reduction, dy, x, dx);
  }

  size_t ChannelWorkspace(const ChannelGrid& grid) override { return crema::ChannelWorkspace(grid); }
  void ChannelAffine(const ChannelGrid& grid, const crema::ChannelAffine& map, std::byte* workspace) override {
    RunChannelAffine(grid, map, workspace);
  }
  void ChannelGradientSums(const ChannelGrid& grid, const ChannelGradient& g, const void* x, const float* mean,
                           float* sum, float* product, std::byte* workspace) override {
    crema::ChannelGradientSums(grid, g, x, mean, sum, product, workspace);
  }
  void ChannelGradientMap(const ChannelGrid& grid, const crema::ChannelGradientMap& map,
                          std::byte* workspace) override {
    RunChannelGradientMap(grid, map, workspace);
  }
  void BatchNormFromBatch(const ChannelGrid& grid, const void* x, const BatchNormScalars& norm,
                          const BatchNormForward& arrays, std::byte* workspace) override {
    crema::BatchNormFromBatch(grid, x, norm, arrays, workspace);
  }
  void BatchNormFromRunning(const BatchNormScalars& norm, const BatchNormForward& arrays) override {
    crema::BatchNormFromRunning(norm, arrays);
  }
  void BatchNormGradients(const ChannelGrid& grid, const ChannelGradient& g, const void* x,
                          const BatchNormScalars& norm, const BatchNormBackward& arrays,
                          std::byte* workspace) override {
    crema::BatchNormGradients(grid, g, x, norm, arrays, workspace);
  }
  void FoldNormalization(const BatchNormScalars& norm, const FoldedArrays& arrays) override {
    crema::FoldNormalization(norm, arrays);
  }
  size_t PreluWorkspace(const ChannelGrid& grid) override { return crema::PreluWorkspace(grid); }
  void PreluForward(const ChannelGrid& grid, const void* x, const float* slope, void* y,
                    std::byte* workspace) override {
    crema::PreluForward(grid, x, slope, y, workspace);
  }
  void PreluBackward(const ChannelGrid& grid, const void* x, const float* slope, const void* dy, void* dx,
                     float* slope_gradient, std::byte* workspace) override {
    crema::PreluBackward(grid, x, slope, dy, dx, slope_gradient, workspace);
  }

  void SoftmaxForward(const ClassAxis& axis, const float* x, float* y) override { crema::SoftmaxForward(axis, x, y); }
  void SoftmaxBackward(const ClassAxis& axis, const float* y, const float* dy, float* dx) override {
    crema::SoftmaxBackward(axis, y, dy, dx);
  }
  void SoftmaxLossForward(const SoftmaxLoss& loss, const float* probability, const float* label,
                          float* value) override {
    crema::SoftmaxLossForward(loss, probability, label, value);
  }
  void SoftmaxLossTerms(const SoftmaxLoss& loss, const float* probability, const float* label, float* terms) override {
    crema::SoftmaxLossTerms(loss, probability, label, terms);
  }
  void SoftmaxLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                           const float* label, float* dx) override {
    crema::SoftmaxLossBackward(loss, value_gradient, probability, label, dx);
  }
  void MeasureMultiLabel(int64_t count, const float* scores, const float* label, float* measures) override {
    crema::MeasureMultiLabel(count, scores, label, measures);
  }
  void Accuracy(const AccuracyProblem& problem, const float* scores, const float* label, float* share, float* of_class,
                float* labels_of_class) override {
    crema::Accuracy(problem, scores, label, share, of_class, labels_of_class);
  }
  int64_t FindBadLabel(const LabelRule& rule, int64_t classes, int64_t labels, const float* label) override {
    return crema::FindBadLabel(rule, classes, labels, label);
  }
  int64_t FindBadIndex(const EmbedProblem& problem, const float* index) override {
    return crema::FindBadIndex(problem, index);
  }
  void ArgMax(const ArgMaxProblem& problem, const float* x, float* y) override { crema::ArgMax(problem, x, y); }
  void CountPixels(const PixelCounting& counting, const float* scores, const float* label, const ClassPixels* before,
                   ClassPixels* after, std::byte* workspace) override {
    crema::CountPixels(counting, scores, label, before, after, workspace);
  }
  void MeasureSegmentation(int64_t classes, const ClassPixels* pixels, float* measures) override {
    crema::MeasureSegmentation(classes, pixels, measures);
  }
  void MeasureClass(const ClassPixels* pixels, float* measures) override { crema::MeasureClass(pixels, measures); }

  void EmbedForward(const EmbedProblem& problem, const float* index, const float* table, const float* bias,
                    float* y) override {
    crema::EmbedForward(problem, index, table, bias, y);
  }
  size_t EmbedWorkspace(const EmbedProblem&) override { return 0; }
  void EmbedBackward(const EmbedProblem& problem, const float* index, const float* dy, float* table_gradient,
                     std::byte*) override {
    crema::EmbedBackward(problem, index, dy, table_gradient);
  }
  void MvnForward(const MvnProblem& problem, const float* x, float* y, float* inverse) override {
    crema::MvnForward(problem, x, y, inverse);
  }
  void MvnBackward(const MvnProblem& problem, const float* y, const float* inverse, const float* dy,
                   float* dx) override {
    crema::MvnBackward(problem, y, inverse, dy, dx);
  }
  void NormalizeForward(const NormalizeProblem& problem, const float* x, const float* scale, float* y,
                        float* inverse) override {
    crema::NormalizeForward(problem, x, scale, y, inverse);
  }
  void NormalizeBackward(const NormalizeProblem& problem, const float* x, const float* scale, const float* inverse,
                         const float* dy, float* dx, float* scale_gradient) override {
    crema::NormalizeBackward(problem, x, scale, inverse, dy, dx, scale_gradient);
  }
  void GroupNormForward(const GroupNormProblem& problem, const float* x, const float* scale, const float* shift,
                        float* y, RowMoments* moments) override {
    crema::GroupNormForward(problem, x, scale, shift, y, moments);
  }
  size_t GroupNormBackwardWorkspace(const GroupNormProblem& problem) override {
    return crema::GroupNormBackwardWorkspace(problem);
  }
  void GroupNormBackward(const GroupNormProblem& problem, const float* x, const float* scale, const RowMoments* moments,
                         const float* dy, const GroupNormGradients& gradients, std::byte* workspace) override {
    crema::GroupNormBackward(problem, x, scale, moments, dy, gradients, workspace);
  }
  void ChannelLengthForward(const ClassAxis& axis, const float* x, float* y) override {
    crema::ChannelLengthForward(axis, x, y);
  }
  void ChannelLengthBackward(const ClassAxis& axis, const float* x, const float* y, const float* dy,
                             float* dx) override {
    crema::ChannelLengthBackward(axis, x, y, dy, dx);
  }
  void ExpBelowPeak(const ClassAxis& axis, const float* x, float* y) override { crema::ExpBelowPeak(axis, x, y); }

  std::unique_ptr<ConvolutionKernel> MakeConvolution(const ConvolutionProblem& problem, KernelChoice* choice,
                                                     std::string_view only) override {
    return crema::MakeConvolution(problem, CpuDevice(), choice, only);
  }
  std::unique_ptr<InnerProductKernel> MakeInnerProduct(const InnerProductProblem& problem, KernelChoice* choice,
                                                       std::string_view only) override {
    return crema::MakeInnerProduct(problem, CpuDevice(), choice, only);
  }
  std::unique_ptr<BatchedProductKernel> MakeBatchedProduct(const BatchedProductProblem& problem, KernelChoice* choice,
                                                           std::string_view only) override {
    return crema::MakeBatchedProduct(problem, CpuDevice(), choice, only);
  }
  std::unique_ptr<PoolingKernel> MakePooling(const PoolingProblem& problem, KernelChoice* choice,
                                             std::string_view only) override {
    return crema::MakePooling(problem, CpuDevice(), choice, only);
  }
  std::unique_ptr<LrnKernel> MakeLrn(const LrnProblem& problem, KernelChoice* choice, std::string_view only) override {
    return crema::MakeLrn(problem, CpuDevice(), choice, only);
  }

  void AddLoss(float weight, int64_t n, const float* x, bool add, double* total) override {
    *total = weight * Sum(n, x) + (add ? *total : 0);
  }
  bool HasNonFinite(int64_t n, const float* x) override { return crema::HasNonFinite(n, x); }
};

}  // namespace

Operations& OperationsOf(Device& device) {
  if (Operations* of_gpu = device.operations()) return *of_gpu;
  static CpuOperations cpu;
  return cpu;
}

}  // namespace crema
