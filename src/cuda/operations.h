// The operations on a GPU: own kernels, one source file for each header of src/ops, and cuBLAS and cuDNN.
#ifndef CREMA_CUDA_OPERATIONS_H_
#define CREMA_CUDA_OPERATIONS_H_

#include "base/check.h"
#include "cuda/device/gpu.h"
#include "cuda/matrices/matrix_product.h"
#include "ops/operations.h"

namespace crema::cuda {

class CudaOperations final : public Operations, public MultiUpdater {
 public:
  explicit CudaOperations(CudaGpu& gpu) : gpu_(gpu), products_(gpu), scratch_(gpu, kScratchBytes) {}

  void Fill(float value, const Tensor& y) override;
  void FillTimes(float value, const float* factor, const Tensor& y) override;
  void Activate(const Activation& activation, const Tensor& x, const Tensor& y) override;
  void ActivationGradient(const Activation& activation, const Tensor& known, const Tensor& dy,
                          const Tensor& dx) override;
  void WeightedSum(float a_weight, const Tensor& a, float b_weight, const Tensor& b, const Tensor& y) override;
  void Multiply(float factor, const Tensor& x, const Tensor& y) override;
  void Product(const Tensor& a, const Tensor& b, const Tensor& y) override;
  void Maximum(const Tensor& a, const Tensor& b, const Tensor& y) override;
  void SumRelu(const Tensor& a, const Tensor& b, const Tensor& y) override;
  void QuotientGradient(const Tensor& dy, const Tensor& y, const Tensor& x, const Tensor& dx) override;
  void MaximumOfTwo(const Tensor& a, const Tensor& b, const Tensor& y, uint8_t* from) override;
  void MaximumWith(const Tensor& x, uint8_t index, const Tensor& y, uint8_t* from) override;
  void MaximumBackward(const Tensor& dy, const uint8_t* from, uint8_t index, const Tensor& dx) override;
  void ChainForward(const ElementwiseChain& chain, std::span<const RandomStream> streams, const Tensor& x,
                    const Tensor& y, uint32_t* masks) override;
  void ChainForwardWithBias(const ElementwiseChain& chain, std::span<const RandomStream> streams, const float* bias,
                            int64_t rows, int64_t columns, float* y, uint32_t* masks) override;
  void ChainBackward(const ElementwiseChain& chain, const void* known, const uint32_t* masks, const Tensor& dy,
                     const Tensor& dx) override;
  void Copy(const void* from, void* to, size_t bytes) override;
  void CopyRows(int64_t rows, int64_t width, ByteRows from, MutableByteRows to) override;
  void CopyRectified(DType dtype, int64_t rows, int64_t width, ByteRows from, MutableByteRows to) override;
  void CopyRectifiedGradient(DType dtype, int64_t rows, int64_t width, ByteRows gradient, ByteRows rectified,
                             MutableByteRows to) override;
  void CopyOut(const Box& box, const float* whole, float* part) override;
  void CopyIn(const Box& box, const float* part, float* whole) override;
  void Reorder(const Tensor& from, const Tensor& to) override;
  void PermuteAxes(const AxisPermutation& permutation, const Tensor& from, const Tensor& to) override;
  void ReverseAxis(const AxisReversal& reversal, const float* x, float* y) override;
  void Im2col(const Im2colProblem& problem, const float* image, float* columns) override;
  void Col2im(const Im2colProblem& problem, const float* columns, float* image) override;
  void DeformableIm2col(const DeformableIm2colProblem& problem, const float* image, const float* offsets,
                        const float* factors, float* columns) override;
  size_t DeformableCol2imWorkspace(const DeformableIm2colProblem& problem) override;
  void DeformableCol2im(const DeformableIm2colProblem& problem, const float* columns, const float* offsets,
                        const float* factors, float* image, std::byte* workspace) override;
  void DeformableOffsetGradient(const DeformableIm2colProblem& problem, const float* columns, const float* image,
                                const float* offsets, const float* factors, float* offset_gradient,
                                float* factor_gradient) override;
  void Axpy(int64_t n, float a, const float* x, float* y) override;
  void AddBias(const BiasExtents& extents, const float* x, const float* bias, float* y) override;
  void SumToBias(const BiasExtents& extents, const float* dy, float* gradient) override;
  void Reduce(const Reduction& reduction, const float* x, float* y) override;
  void ReduceGradient(const Reduction& reduction, const float* dy, const float* x, float* dx) override;
  size_t ChannelWorkspace(const ChannelGrid& grid) override;
  void ChannelAffine(const ChannelGrid& grid, const crema::ChannelAffine& map, std::byte* workspace) override;
  void ChannelGradientSums(const ChannelGrid& grid, const ChannelGradient& g, const void* x, const float* mean,
                           float* sum, float* product, std::byte* workspace) override;
  void ChannelGradientMap(const ChannelGrid& grid, const crema::ChannelGradientMap& map, std::byte* workspace) override;
  void BatchNormFromBatch(const ChannelGrid& grid, const void* x, const BatchNormScalars& norm,
                          const BatchNormForward& arrays, std::byte* workspace) override;
  void BatchNormFromRunning(const BatchNormScalars& norm, const BatchNormForward& arrays) override;
  void BatchNormGradients(const ChannelGrid& grid, const ChannelGradient& g, const void* x,
                          const BatchNormScalars& norm, const BatchNormBackward& arrays, std::byte* workspace) override;
  void FoldNormalization(const BatchNormScalars& norm, const FoldedArrays& arrays) override;
  size_t PreluWorkspace(const ChannelGrid& grid) override;
  void PreluForward(const ChannelGrid& grid, const void* x, const float* slope, void* y, std::byte* workspace) override;
  void PreluBackward(const ChannelGrid& grid, const void* x, const float* slope, const void* dy, void* dx,
                     float* slope_gradient, std::byte* workspace) override;
  void SoftmaxForward(const ClassAxis& axis, const float* x, float* y) override;
  void SoftmaxBackward(const ClassAxis& axis, const float* y, const float* dy, float* dx) override;
  void SoftmaxLossForward(const SoftmaxLoss& loss, const float* probability, const float* label, float* value) override;
  void SoftmaxLossTerms(const SoftmaxLoss& loss, const float* probability, const float* label, float* terms) override;
  void SoftmaxLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                           const float* label, float* dx) override;
  int64_t FindBadTarget(int64_t count, const float* target) override;
  void SoftTargetLossForward(const SoftmaxLoss& loss, const float* probability, const float* target,
                             float* value) override;
  void SoftTargetLossTerms(const SoftmaxLoss& loss, const float* probability, const float* target,
                           float* terms) override;
  void SoftTargetLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                              const float* target, float* dx) override;
  void MeasureMultiLabel(int64_t count, const float* scores, const float* label, float* measures) override;
  void Accuracy(const AccuracyProblem& problem, const float* scores, const float* label, float* share, float* of_class,
                float* labels_of_class) override;
  int64_t FindBadLabel(const LabelRule& rule, int64_t classes, int64_t labels, const float* label) override;
  int64_t FindBadIndex(const EmbedProblem& problem, const float* index) override;
  void ArgMax(const ArgMaxProblem& problem, const float* x, float* y) override;
  void CountPixels(const PixelCounting& counting, const float* scores, const float* label, const ClassPixels* before,
                   ClassPixels* after, std::byte* workspace) override;
  void MeasureSegmentation(int64_t classes, const ClassPixels* pixels, float* measures) override;
  void MeasureClass(const ClassPixels* pixels, float* measures) override;
  void DifferenceLossForward(const DifferenceLoss& loss, const DifferenceInputs& inputs, float* value) override;
  void DifferenceLossTerms(const DifferenceLoss& loss, const ClassAxis& axis, const DifferenceInputs& inputs,
                           float* terms) override;
  void DifferenceLossBackward(const DifferenceLoss& loss, const float* value_gradient, const DifferenceInputs& inputs,
                              const Tensor& da, const Tensor& db) override;
  void SigmoidLossForward(const SigmoidLoss& loss, const SigmoidInputs& inputs, const SigmoidTape& tape,
                          float* value) override;
  void SigmoidLossBackward(const SigmoidLoss& loss, const float* value_gradient, const SigmoidTape& tape,
                           const SigmoidInputs& inputs, const Tensor& dx) override;
  void ContrastiveLossForward(const ContrastiveLoss& loss, const float* a, const float* b, const float* similar,
                              float* squared_distance, float* value) override;
  void ContrastiveLossBackward(const ContrastiveLoss& loss, const float* value_gradient, const float* a, const float* b,
                               const float* similar, const float* squared_distance, float* da, float* db) override;
  void TripletLossForward(const TripletLoss& loss, const Triplets<const float>& x, float* difference,
                          float* value) override;
  void TripletLossBackward(const TripletLoss& loss, const float* value_gradient, const Triplets<const float>& x,
                           const float* difference, const Triplets<float>& dx) override;
  void HingeLossForward(const HingeLoss& loss, const float* scores, const float* label, float* value) override;
  void HingeLossBackward(const HingeLoss& loss, const float* value_gradient, const float* scores, const float* label,
                         float* dx) override;
  void LogLossForward(const LogLoss& loss, const float* probability, const float* label, float* value) override;
  void LogLossBackward(const LogLoss& loss, const float* value_gradient, const float* probability, const float* label,
                       float* dx) override;
  void InfogainLossForward(const InfogainLoss& loss, const float* infogain, const float* probability,
                           const float* label, float* normalizer, float* value) override;
  void InfogainLossBackward(const InfogainLoss& loss, const float* value_gradient, const float* normalizer,
                            const float* infogain, const float* probability, const float* label, float* row_sums,
                            float* dx) override;
  void LengthLossForward(const LengthLoss& loss, const LengthInputs& inputs, float* normalizer, float* value) override;
  void LengthLossBackward(const LengthLoss& loss, const float* value_gradient, const LengthInputs& inputs,
                          const float* normalizer, float* da, float* db) override;
  void LiftedStructureForward(const LiftedStructure& loss, const float* x, const float* label, const LiftedTape& tape,
                              float* value) override;
  void LiftedStructureBackward(const LiftedStructure& loss, const float* value_gradient, const float* x,
                               const float* label, const LiftedTape& tape, float* weights, float* dx) override;
  void MeanDiscrepancyForward(const MeanDiscrepancy& loss, const float* first, const float* second,
                              const DiscrepancyTape& tape, float* value) override;
  void MeanDiscrepancyBackward(const MeanDiscrepancy& loss, const float* value_gradient, const float* first,
                               const float* second, const DiscrepancyTape& tape, float* weights, float* first_gradient,
                               float* second_gradient) override;
  void ReverseGradient(const GradientScale& scale, uint64_t pass, const Tensor& dy, const Tensor& dx) override;
  void ApplyMargin(const LabelMargin& margin, uint64_t pass, const float* label, const float* squares, float* scores,
                   const MarginTape& tape) override;
  void MarginGradient(const LabelMargin& margin, const float* label, const MarginTape& tape, float* gradient,
                      float* multiples) override;
  void AddScaledRows(int64_t rows, int64_t width, const float* factor, const float* x, float* y) override;
  void CenterGradient(const EmbedProblem& problem, float weight, const float* factor, const float* label,
                      const float* x, const float* centers, float* gradient) override;
  void EmbedForward(const EmbedProblem& problem, const float* index, const float* table, const float* bias,
                    float* y) override;
  size_t EmbedWorkspace(const EmbedProblem& problem) override;
  void EmbedBackward(const EmbedProblem& problem, const float* index, const float* dy, float* table_gradient,
                     std::byte* workspace) override;
  int64_t LstmForwardWorkspace(const LstmProblem& problem) override;
  int64_t LstmBackwardWorkspace(const LstmProblem& problem) override;
  void LstmForward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                   const LstmTape& tape, float* output, float* workspace) override;
  void LstmUnitForward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, float* cell,
                       float* output) override;
  void LstmUnitBackward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, const float* cell,
                        const float* output, float* cell_before_gradient, float* sums_gradient) override;
  void LstmBackward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                    const LstmTape& tape, const LstmOutputGradients& of_output, const LstmGradients& gradients,
                    float* workspace) override;
  int64_t GruForwardWorkspace(const GruProblem& problem) override;
  int64_t GruBackwardWorkspace(const GruProblem& problem) override;
  void GruForward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                  const GruTape& tape, float* output, float* workspace) override;
  void GruBackward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                   const GruTape& tape, const GruOutputGradients& of_output, const GruGradients& gradients,
                   float* workspace) override;
  int64_t RnnForwardWorkspace(const RnnProblem& problem) override;
  int64_t RnnBackwardWorkspace(const RnnProblem& problem) override;
  void RnnForward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                  const RnnTape& tape, float* output, float* workspace) override;
  void RnnBackward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                   const RnnTape& tape, const RnnOutput& output, const RnnGradients& gradients,
                   float* workspace) override;
  void MvnForward(const MvnProblem& problem, const float* x, float* y, float* inverse) override;
  void MvnBackward(const MvnProblem& problem, const float* y, const float* inverse, const float* dy,
                   float* dx) override;
  void NormalizeForward(const NormalizeProblem& problem, const float* x, const float* scale, float* y,
                        float* inverse) override;
  void NormalizeBackward(const NormalizeProblem& problem, const float* x, const float* scale, const float* inverse,
                         const float* dy, float* dx, float* scale_gradient) override;
  void GroupNormForward(const GroupNormProblem& problem, const float* x, const float* scale, const float* shift,
                        float* y, RowMoments* moments) override;
  size_t GroupNormBackwardWorkspace(const GroupNormProblem&) override { return 0; }
  void GroupNormBackward(const GroupNormProblem& problem, const float* x, const float* scale, const RowMoments* moments,
                         const float* dy, const GroupNormGradients& gradients, std::byte* workspace) override;
  int64_t FindBadSequence(const CtcProblem& problem, const float* labels) override;
  size_t CtcForwardWorkspace(const CtcProblem& problem) override;
  size_t CtcBackwardWorkspace(const CtcProblem& problem) override;
  void CtcLossForward(const CtcProblem& problem, const float* scores, const float* labels, const CtcTape& tape,
                      float* value, std::byte* workspace) override;
  void CtcLossBackward(const CtcProblem& problem, const float* value_gradient, const float* scores, const CtcTape& tape,
                       float* dx, std::byte* workspace) override;
  void DecodeSequences(const SequenceScores& problem, const float* scores, float* sequences) override;
  size_t SequenceComparisonWorkspace(const SequenceComparison& comparison) override;
  void CompareSequences(const SequenceComparison& comparison, const float* sequences, const float* labels, float* right,
                        float* labels_right, std::byte* workspace) override;
  void DrawMixes(const MixUpProblem& problem, const RandomStream& random, ImageMix* mixes) override;
  void MixImages(const MixUpProblem& problem, const ImageMix* mixes, const Tensor& x, const Tensor& y) override;
  void MixLabels(const MixUpProblem& problem, const ImageMix* mixes, const float* label, float* target) override;
  int64_t FindBadRegion(const RoiPoolingProblem& problem, const float* regions) override;
  void RoiPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions, float* y,
                         int32_t* from) override;
  void RoiPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const int32_t* from, const float* dy,
                          float* dx) override;
  void PositionPoolingForward(const RoiPoolingProblem& problem, const float* x, const float* regions,
                              float* y) override;
  void PositionPoolingBackward(const RoiPoolingProblem& problem, const float* regions, const float* dy,
                               float* dx) override;
  void RoiAlignForward(const RoiAlignProblem& problem, const float* x, const float* regions, float* y) override;
  void RoiAlignBackward(const RoiAlignProblem& problem, const float* regions, const float* dy, float* dx) override;
  void InterpolationForward(const Interpolation& problem, const float* x, float* y) override;
  void InterpolationBackward(const Interpolation& problem, const float* dy, float* dx) override;
  size_t ResamplingWorkspace(const Resampling& problem) override;
  void ResamplingForward(const Resampling& problem, const float* x, float* y, std::byte* workspace) override;
  void ResamplingBackward(const Resampling& problem, const float* dy, float* dx, std::byte* workspace) override;
  void ChannelLengthForward(const ClassAxis& axis, const float* x, float* y) override;
  void ChannelLengthBackward(const ClassAxis& axis, const float* x, const float* y, const float* dy,
                             float* dx) override;
  void ExpBelowPeak(const ClassAxis& axis, const float* x, float* y) override;
  void UnpoolingForward(const UnpoolingProblem& problem, const float* x, const float* index, float* y) override;
  void UnpoolingBackward(const UnpoolingProblem& problem, const float* index, const float* dy, float* dx) override;
  void SpatialTransformForward(const SpatialTransform& problem, const float* x, const float* theta, float* y) override;
  size_t SpatialTransformWorkspace(const SpatialTransform& problem) override;
  void SpatialTransformBackward(const SpatialTransform& problem, const float* x, const float* theta, const float* dy,
                                float* dx, float* dtheta, std::byte* workspace) override;
  size_t CorrelationWorkspace(const CorrelationProblem& problem) override;
  void CorrelationForward(const CorrelationProblem& problem, const float* first, const float* second, float* y,
                          std::byte* workspace) override;
  void CorrelationBackward(const CorrelationProblem& problem, const float* first, const float* second, const float* dy,
                           float* first_gradient, float* second_gradient, std::byte* workspace) override;
  MeanFieldMemory MeanFieldMemoryOf(const MeanField& problem, bool keeps) override;
  void MakeSpatialLattice(const MeanField& problem, std::byte* lattice, std::byte* workspace) override;
  void MeanFieldForward(const MeanField& problem, const MeanFieldInputs& inputs, const MeanFieldWeights& weights,
                        const MeanFieldTape& tape, float* y, std::byte* workspace) override;
  void MeanFieldBackward(const MeanField& problem, const MeanFieldWeights& weights, const MeanFieldTape& tape,
                         const float* dy, const MeanFieldGradients& gradients, std::byte* workspace) override;
  size_t DetectionWorkspace(const DetectionProblem& problem) override;
  void DetectObjects(const DetectionProblem& problem, const DetectionInputs& inputs, float* objects,
                     std::byte* workspace) override;
  int64_t FindBadObject(const ObjectRows& objects, const float* values) override;
  void MatchPriors(const MultiBoxProblem& problem, const float* priors, const float* objects, uint64_t* best,
                   int32_t* match, float* overlap) override;
  void RankNegatives(const MultiBoxProblem& problem, const float* scores, const int32_t* match, const float* overlap,
                     uint64_t* rank) override;
  void MakeMultiBoxTargets(const MultiBoxProblem& problem, const MultiBoxMatches& matches,
                           const MultiBoxTargets& targets) override;
  void LearnYolo(const YoloLoss& loss, uint64_t pass, const float* predictions, const float* objects, float* gradient,
                 float* losses) override;
  void DecodeYolo(const YoloGrid& grid, const float* predictions, const YoloBoxes& boxes) override;
  void EvaluateDetections(const DetectionEvaluation& evaluation, const float* found, const float* objects,
                          std::byte* workspace, float* results) override;

  size_t ProposalWorkspace(const ProposalProblem& problem) override;
  void ProposeRegions(const ProposalProblem& problem, const ProposalInputs& inputs, float* regions, float* scores,
                      std::byte* workspace) override;
  int64_t FindBadRegionObject(const RegionObjects& objects, const float* values) override;
  size_t AnchorTargetWorkspace(const AnchorTargetProblem& problem) override;
  void MakeAnchorTargets(const AnchorTargetProblem& problem, const RandomStream& random, const float* info,
                         const float* objects, const AnchorTargets& targets, std::byte* workspace) override;
  size_t RegionTargetWorkspace(const RegionTargetProblem& problem) override;
  void MakeRegionTargets(const RegionTargetProblem& problem, const RandomStream& random, const float* proposals,
                         const float* objects, const RegionTargets& targets, std::byte* workspace) override;
  size_t HardRegionWorkspace(const HardRegionProblem& problem) override;
  void KeepHardRegions(const HardRegionProblem& problem, const HardRegionInputs& inputs, float* labels, float* weights,
                       std::byte* workspace) override;
  void DrawDetectNetChanges(const DetectNetTransform& problem, const RandomStream& random,
                            DetectNetChange* changes) override;
  void ChangeDetectNetColors(const DetectNetTransform& problem, const DetectNetChange* changes, const float* mean,
                             const float* x, float* y) override;
  void PlaceDetectNetImages(const DetectNetTransform& problem, const DetectNetChange* changes, const float* x,
                            float* y) override;
  void MakeDetectNetLabels(const DetectNetTransform& problem, const DetectNetLabels& labels,
                           const DetectNetChange* changes, const int32_t* place_of, const float* objects,
                           float* y) override;
  int64_t FindBadDetectNetObject(const DetectNetTransform& problem, const DetectNetLabels& labels,
                                 const float* objects) override;
  size_t DetectNetGroupWorkspace(const DetectNetGrid& grid) override;
  void GroupDetectNetBoxes(const DetectNetGrid& grid, const DetectNetGrouping& grouping, const float* coverage,
                           const float* boxes, float* objects, std::byte* workspace) override;
  void ListDetectNetBoxes(const DetectNetGrid& grid, const float* coverage, const float* boxes, float* objects,
                          std::byte* workspace) override;
  size_t DetectNetScoreWorkspace(const DetectNetScoring& scoring) override;
  void ScoreDetectNetBoxes(const DetectNetScoring& scoring, const float* truths, const float* found, float* scored,
                           std::byte* workspace) override;
  void MeasureDetectNetBoxes(int64_t rows, const float* scored, const DetectNetMeasures& measures) override;
  std::unique_ptr<ConvolutionKernel> MakeConvolution(const ConvolutionProblem& problem, KernelChoice* choice,
                                                     std::string_view only) override;
  std::unique_ptr<InnerProductKernel> MakeInnerProduct(const InnerProductProblem& problem, KernelChoice* choice,
                                                       std::string_view only) override;
  std::unique_ptr<BatchedProductKernel> MakeBatchedProduct(const BatchedProductProblem& problem, KernelChoice* choice,
                                                           std::string_view only) override;
  std::unique_ptr<PoolingKernel> MakePooling(const PoolingProblem& problem, KernelChoice* choice,
                                             std::string_view only) override;
  std::unique_ptr<LrnKernel> MakeLrn(const LrnProblem& problem, KernelChoice* choice, std::string_view only) override;
  void AddLoss(float weight, int64_t n, const float* x, bool add, double* total) override;
  bool HasNonFinite(int64_t n, const float* x) override;

  MultiUpdater* multi_updater() override { return this; }
  void Update(const UpdateFormula& formula, const MultiUpdate& update) override;
  void DivideByLossScale(const MultiUpdate& update) override;

 private:
  // Parts of sums of operations that are given no workspace, of one operation at a time.
  static constexpr size_t kScratchBytes = size_t{4} << 20;

  // What recurrent layers share (ops/sequences/recurrent.h).
  void SumInputs(const RecurrentProblem& problem, int64_t sums, const RecurrentInputs& inputs,
                 const RecurrentParameters& parameters, float* to, float* fixed);
  void InputGradients(const RecurrentProblem& problem, int64_t sums, const RecurrentInputs& inputs,
                      const RecurrentParameters& parameters, const float* hidden_before, const float* gradient,
                      float* total, const RecurrentGradients& gradients);

  const Queue& queue() const { return gpu_.queue(); }
  template <typename Number>
  Number* Scratch(size_t bytes) const {
    CREMA_CHECK(bytes <= kScratchBytes) << bytes << " bytes of parts";
    return reinterpret_cast<Number*>(scratch_.data());
  }

  CudaGpu& gpu_;
  MatrixProducts products_;
  Buffer scratch_;
};

}  // namespace crema::cuda

#endif  // CREMA_CUDA_OPERATIONS_H_
