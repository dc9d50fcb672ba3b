// The part of the CPU's operations that compare what a net makes with what it is to make, mix batches and turn
// gradients.
#ifndef CREMA_OPS_CPU_LOSSES_H_
#define CREMA_OPS_CPU_LOSSES_H_

#include "ops/cpu_sequences.h"

namespace crema {

class CpuLosses : public CpuSequences {
 public:
  int64_t FindBadTarget(int64_t count, const float* target) override { return crema::FindBadTarget(count, target); }
  void SoftTargetLossForward(const SoftmaxLoss& loss, const float* probability, const float* target,
                             float* value) override {
    crema::SoftTargetLossForward(loss, probability, target, value);
  }
  void SoftTargetLossTerms(const SoftmaxLoss& loss, const float* probability, const float* target,
                           float* terms) override {
    crema::SoftTargetLossTerms(loss, probability, target, terms);
  }
  void SoftTargetLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability,
                              const float* target, float* dx) override {
    crema::SoftTargetLossBackward(loss, value_gradient, probability, target, dx);
  }
  void DifferenceLossForward(const DifferenceLoss& loss, const DifferenceInputs& inputs, float* value) override {
    crema::DifferenceLossForward(loss, inputs, value);
  }
  void DifferenceLossTerms(const DifferenceLoss& loss, const ClassAxis& axis, const DifferenceInputs& inputs,
                           float* terms) override {
    crema::DifferenceLossTerms(loss, axis, inputs, terms);
  }
  void DifferenceLossBackward(const DifferenceLoss& loss, const float* value_gradient, const DifferenceInputs& inputs,
                              const Tensor& da, const Tensor& db) override {
    crema::DifferenceLossBackward(loss, value_gradient, inputs, da, db);
  }
  void SigmoidLossForward(const SigmoidLoss& loss, const SigmoidInputs& inputs, const SigmoidTape& tape,
                          float* value) override {
    crema::SigmoidLossForward(loss, inputs, tape, value);
  }
  void SigmoidLossBackward(const SigmoidLoss& loss, const float* value_gradient, const SigmoidTape& tape,
                           const SigmoidInputs& inputs, const Tensor& dx) override {
    crema::SigmoidLossBackward(loss, value_gradient, tape, inputs, dx);
  }
  void ContrastiveLossForward(const ContrastiveLoss& loss, const float* a, const float* b, const float* similar,
                              float* squared_distance, float* value) override {
    crema::ContrastiveLossForward(loss, a, b, similar, squared_distance, value);
  }
  void ContrastiveLossBackward(const ContrastiveLoss& loss, const float* value_gradient, const float* a, const float* b,
                               const float* similar, const float* squared_distance, float* da, float* db) override {
    crema::ContrastiveLossBackward(loss, value_gradient, a, b, similar, squared_distance, da, db);
  }
  void TripletLossForward(const TripletLoss& loss, const Triplets<const float>& x, float* difference,
                          float* value) override {
    crema::TripletLossForward(loss, x, difference, value);
  }
  void TripletLossBackward(const TripletLoss& loss, const float* value_gradient, const Triplets<const float>& x,
                           const float* difference, const Triplets<float>& dx) override {
    crema::TripletLossBackward(loss, value_gradient, x, difference, dx);
  }
  void HingeLossForward(const HingeLoss& loss, const float* scores, const float* label, float* value) override {
    crema::HingeLossForward(loss, scores, label, value);
  }
  void HingeLossBackward(const HingeLoss& loss, const float* value_gradient, const float* scores, const float* label,
                         float* dx) override {
    crema::HingeLossBackward(loss, value_gradient, scores, label, dx);
  }
  void LogLossForward(const LogLoss& loss, const float* probability, const float* label, float* value) override {
    crema::LogLossForward(loss, probability, label, value);
  }
  void LogLossBackward(const LogLoss& loss, const float* value_gradient, const float* probability, const float* label,
                       float* dx) override {
    crema::LogLossBackward(loss, value_gradient, probability, label, dx);
  }
  void InfogainLossForward(const InfogainLoss& loss, const float* infogain, const float* probability,
                           const float* label, float* normalizer, float* value) override {
    crema::InfogainLossForward(loss, infogain, probability, label, normalizer, value);
  }
  void InfogainLossBackward(const InfogainLoss& loss, const float* value_gradient, const float* normalizer,
                            const float* infogain, const float* probability, const float* label, float* row_sums,
                            float* dx) override {
    crema::InfogainLossBackward(loss, value_gradient, normalizer, infogain, probability, label, row_sums, dx);
  }

  void LengthLossForward(const LengthLoss& loss, const LengthInputs& inputs, float* normalizer, float* value) override {
    crema::LengthLossForward(loss, inputs, normalizer, value);
  }
  void LengthLossBackward(const LengthLoss& loss, const float* value_gradient, const LengthInputs& inputs,
                          const float* normalizer, float* da, float* db) override {
    crema::LengthLossBackward(loss, value_gradient, inputs, normalizer, da, db);
  }
  void LiftedStructureForward(const LiftedStructure& loss, const float* x, const float* label, const LiftedTape& tape,
                              float* value) override {
    crema::LiftedStructureForward(loss, x, label, tape, value);
  }
  void LiftedStructureBackward(const LiftedStructure& loss, const float* value_gradient, const float* x,
                               const float* label, const LiftedTape& tape, float* weights, float* dx) override {
    crema::LiftedStructureBackward(loss, value_gradient, x, label, tape, weights, dx);
  }
  void MeanDiscrepancyForward(const MeanDiscrepancy& loss, const float* first, const float* second,
                              const DiscrepancyTape& tape, float* value) override {
    crema::MeanDiscrepancyForward(loss, first, second, tape, value);
  }
  void MeanDiscrepancyBackward(const MeanDiscrepancy& loss, const float* value_gradient, const float* first,
                               const float* second, const DiscrepancyTape& tape, float* weights, float* first_gradient,
                               float* second_gradient) override {
    crema::MeanDiscrepancyBackward(loss, value_gradient, first, second, tape, weights, first_gradient, second_gradient);
  }

  void ReverseGradient(const GradientScale& scale, uint64_t pass, const Tensor& dy, const Tensor& dx) override {
    Multiply(-scale.FactorOf(pass), dy, dx);
  }

  void ApplyMargin(const LabelMargin& margin, uint64_t pass, const float* label, const float* squares, float* scores,
                   const MarginTape& tape) override {
    crema::ApplyMargin(margin, pass, label, squares, scores, tape);
  }
  void MarginGradient(const LabelMargin& margin, const float* label, const MarginTape& tape, float* gradient,
                      float* multiples) override {
    crema::MarginGradient(margin, label, tape, gradient, multiples);
  }
  void AddScaledRows(int64_t rows, int64_t width, const float* factor, const float* x, float* y) override {
    crema::AddScaledRows(rows, width, factor, x, y);
  }
  void CenterGradient(const EmbedProblem& problem, float weight, const float* factor, const float* label,
                      const float* x, const float* centers, float* gradient) override {
    crema::CenterGradient(problem, weight, factor, label, x, centers, gradient);
  }
  void DrawMixes(const MixUpProblem& problem, const RandomStream& random, ImageMix* mixes) override {
    crema::DrawMixes(problem, random, mixes);
  }
  void MixImages(const MixUpProblem& problem, const ImageMix* mixes, const Tensor& x, const Tensor& y) override {
    crema::MixImages(problem, mixes, x, y);
  }
  void MixLabels(const MixUpProblem& problem, const ImageMix* mixes, const float* label, float* target) override {
    crema::MixLabels(problem, mixes, label, target);
  }
};

}  // namespace crema

#endif  // CREMA_OPS_CPU_LOSSES_H_
