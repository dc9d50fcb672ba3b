// The operations that compare what a net makes with what it is to make, by classes or numbers, and that mix batches and
// turn gradients (see operations.h).
#ifndef CREMA_OPS_LOSS_OPERATIONS_H_
#define CREMA_OPS_LOSS_OPERATIONS_H_

#include <cstddef>
#include <cstdint>

#include "base/random.h"
#include "crema/tensor.h"
#include "ops/arrays/embed.h"
#include "ops/losses/class_centers.h"
#include "ops/losses/label_losses.h"
#include "ops/losses/label_margin.h"
#include "ops/losses/length_loss.h"
#include "ops/losses/lifted_structure.h"
#include "ops/losses/mean_discrepancy.h"
#include "ops/losses/soft_targets.h"
#include "ops/losses/softmax.h"
#include "ops/losses/target_losses.h"
#include "ops/sampling/mix_up.h"
#include "ops/updates/gradient_scale.h"

namespace crema {

class LossOperations {
 public:
  virtual ~LossOperations() = default;

  // --- Losses: ops/losses/target_losses.h, ops/losses/label_losses.h, ops/losses/length_loss.h. ---
  virtual void DifferenceLossForward(const DifferenceLoss& loss, const DifferenceInputs& inputs, float* value) = 0;
  virtual void DifferenceLossTerms(const DifferenceLoss& loss, const ClassAxis& axis, const DifferenceInputs& inputs,
                                   float* terms) = 0;
  virtual void DifferenceLossBackward(const DifferenceLoss& loss, const float* value_gradient,
                                      const DifferenceInputs& inputs, const Tensor& da, const Tensor& db) = 0;
  virtual void SigmoidLossForward(const SigmoidLoss& loss, const SigmoidInputs& inputs, const SigmoidTape& tape,
                                  float* value) = 0;
  virtual void SigmoidLossBackward(const SigmoidLoss& loss, const float* value_gradient, const SigmoidTape& tape,
                                   const SigmoidInputs& inputs, const Tensor& dx) = 0;
  virtual void ContrastiveLossForward(const ContrastiveLoss& loss, const float* a, const float* b, const float* similar,
                                      float* squared_distance, float* value) = 0;
  virtual void ContrastiveLossBackward(const ContrastiveLoss& loss, const float* value_gradient, const float* a,
                                       const float* b, const float* similar, const float* squared_distance, float* da,
                                       float* db) = 0;
  virtual void TripletLossForward(const TripletLoss& loss, const Triplets<const float>& x, float* difference,
                                  float* value) = 0;
  virtual void TripletLossBackward(const TripletLoss& loss, const float* value_gradient, const Triplets<const float>& x,
                                   const float* difference, const Triplets<float>& dx) = 0;
  virtual void HingeLossForward(const HingeLoss& loss, const float* scores, const float* label, float* value) = 0;
  virtual void HingeLossBackward(const HingeLoss& loss, const float* value_gradient, const float* scores,
                                 const float* label, float* dx) = 0;
  virtual void LogLossForward(const LogLoss& loss, const float* probability, const float* label, float* value) = 0;
  virtual void LogLossBackward(const LogLoss& loss, const float* value_gradient, const float* probability,
                               const float* label, float* dx) = 0;
  virtual void InfogainLossForward(const InfogainLoss& loss, const float* infogain, const float* probability,
                                   const float* label, float* normalizer, float* value) = 0;
  virtual void InfogainLossBackward(const InfogainLoss& loss, const float* value_gradient, const float* normalizer,
                                    const float* infogain, const float* probability, const float* label,
                                    float* row_sums, float* dx) = 0;

  virtual void LengthLossForward(const LengthLoss& loss, const LengthInputs& inputs, float* normalizer,
                                 float* value) = 0;
  virtual void LengthLossBackward(const LengthLoss& loss, const float* value_gradient, const LengthInputs& inputs,
                                  const float* normalizer, float* da, float* db) = 0;

  // --- All pairs of a batch: ops/losses/lifted_structure.h, ops/losses/mean_discrepancy.h. ---
  virtual void LiftedStructureForward(const LiftedStructure& loss, const float* x, const float* label,
                                      const LiftedTape& tape, float* value) = 0;
  virtual void LiftedStructureBackward(const LiftedStructure& loss, const float* value_gradient, const float* x,
                                       const float* label, const LiftedTape& tape, float* weights, float* dx) = 0;
  virtual void MeanDiscrepancyForward(const MeanDiscrepancy& loss, const float* first, const float* second,
                                      const DiscrepancyTape& tape, float* value) = 0;
  virtual void MeanDiscrepancyBackward(const MeanDiscrepancy& loss, const float* value_gradient, const float* first,
                                       const float* second, const DiscrepancyTape& tape, float* weights,
                                       float* first_gradient, float* second_gradient) = 0;

  // dx = -factor dy; GPUs know the pass by themselves.
  virtual void ReverseGradient(const GradientScale& scale, uint64_t pass, const Tensor& dy, const Tensor& dx) = 0;

  // --- Embeddings: ops/losses/label_margin.h, ops/losses/class_centers.h. GPUs know the pass by themselves. ---
  virtual void ApplyMargin(const LabelMargin& margin, uint64_t pass, const float* label, const float* squares,
                           float* scores, const MarginTape& tape) = 0;
  virtual void MarginGradient(const LabelMargin& margin, const float* label, const MarginTape& tape, float* gradient,
                              float* multiples) = 0;
  virtual void AddScaledRows(int64_t rows, int64_t width, const float* factor, const float* x, float* y) = 0;
  virtual void CenterGradient(const EmbedProblem& problem, float weight, const float* factor, const float* label,
                              const float* x, const float* centers, float* gradient) = 0;

  // --- Batches of mixed images, and what is learnt of them: ops/sampling/mix_up.h, ops/losses/soft_targets.h. GPUs
  // know the pass by themselves. FindBadTarget answers as FindBadLabel does. ---
  virtual void DrawMixes(const MixUpProblem& problem, const RandomStream& random, ImageMix* mixes) = 0;
  virtual void MixImages(const MixUpProblem& problem, const ImageMix* mixes, const Tensor& x, const Tensor& y) = 0;
  virtual void MixLabels(const MixUpProblem& problem, const ImageMix* mixes, const float* label, float* target) = 0;
  virtual int64_t FindBadTarget(int64_t count, const float* target) = 0;
  virtual void SoftTargetLossForward(const SoftmaxLoss& loss, const float* probability, const float* target,
                                     float* value) = 0;
  virtual void SoftTargetLossTerms(const SoftmaxLoss& loss, const float* probability, const float* target,
                                   float* terms) = 0;
  virtual void SoftTargetLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                                      const float* target, float* dx) = 0;
};

}  // namespace crema

#endif  // CREMA_OPS_LOSS_OPERATIONS_H_
