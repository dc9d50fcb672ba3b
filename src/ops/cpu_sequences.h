// The part of the CPU's operations that go through sequences step by step.
#ifndef CREMA_OPS_CPU_SEQUENCES_H_
#define CREMA_OPS_CPU_SEQUENCES_H_

#include "ops/cpu_detectors.h"

namespace crema {

class CpuSequences : public CpuDetectors {
 public:
  int64_t LstmForwardWorkspace(const LstmProblem& problem) override { return crema::LstmForwardWorkspace(problem); }
  int64_t LstmBackwardWorkspace(const LstmProblem& problem) override { return crema::LstmBackwardWorkspace(problem); }
  void LstmForward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                   const LstmTape& tape, float* output, float* workspace) override {
    crema::LstmForward(problem, inputs, parameters, tape, output, workspace);
  }
  void LstmBackward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                    const LstmTape& tape, const LstmOutputGradients& of_output, const LstmGradients& gradients,
                    float* workspace) override {
    crema::LstmBackward(problem, inputs, parameters, tape, of_output, gradients, workspace);
  }
  void LstmUnitForward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, float* cell,
                       float* output) override {
    crema::LstmUnitForward(problem, inputs, cell, output);
  }
  void LstmUnitBackward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, const float* cell,
                        const float* output, float* cell_before_gradient, float* sums_gradient) override {
    crema::LstmUnitBackward(problem, inputs, cell, output, cell_before_gradient, sums_gradient);
  }
  int64_t GruForwardWorkspace(const GruProblem& problem) override { return crema::GruForwardWorkspace(problem); }
  int64_t GruBackwardWorkspace(const GruProblem& problem) override { return crema::GruBackwardWorkspace(problem); }
  void GruForward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                  const GruTape& tape, float* output, float* workspace) override {
    crema::GruForward(problem, inputs, parameters, tape, output, workspace);
  }
  void GruBackward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                   const GruTape& tape, const GruOutputGradients& of_output, const GruGradients& gradients,
                   float* workspace) override {
    crema::GruBackward(problem, inputs, parameters, tape, of_output, gradients, workspace);
  }
  int64_t RnnForwardWorkspace(const RnnProblem& problem) override { return crema::RnnForwardWorkspace(problem); }
  int64_t RnnBackwardWorkspace(const RnnProblem& problem) override { return crema::RnnBackwardWorkspace(problem); }
  void RnnForward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                  const RnnTape& tape, float* output, float* workspace) override {
    crema::RnnForward(problem, inputs, parameters, tape, output, workspace);
  }
  void RnnBackward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                   const RnnTape& tape, const RnnOutput& output, const RnnGradients& gradients,
                   float* workspace) override {
    crema::RnnBackward(problem, inputs, parameters, tape, output, gradients, workspace);
  }

  int64_t FindBadSequence(const CtcProblem& problem, const float* labels) override {
    return crema::FindBadSequence(problem, labels);
  }
  size_t CtcForwardWorkspace(const CtcProblem& problem) override { return crema::CtcForwardWorkspace(problem); }
  size_t CtcBackwardWorkspace(const CtcProblem& problem) override { return crema::CtcBackwardWorkspace(problem); }
  void CtcLossForward(const CtcProblem& problem, const float* scores, const float* labels, const CtcTape& tape,
                      float* value, std::byte* workspace) override {
    crema::CtcLossForward(problem, scores, labels, tape, value, workspace);
  }
  void CtcLossBackward(const CtcProblem& problem, const float* value_gradient, const float* scores, const CtcTape& tape,
                       float* dx, std::byte* workspace) override {
    crema::CtcLossBackward(problem, value_gradient, scores, tape, dx, workspace);
  }
  void DecodeSequences(const SequenceScores& problem, const float* scores, float* sequences) override {
    crema::DecodeSequences(problem, scores, sequences);
  }
  size_t SequenceComparisonWorkspace(const SequenceComparison& comparison) override {
    return crema::SequenceComparisonWorkspace(comparison);
  }
  void CompareSequences(const SequenceComparison& comparison, const float* sequences, const float* labels, float* right,
                        float* labels_right, std::byte* workspace) override {
    crema::CompareSequences(comparison, sequences, labels, right, labels_right, workspace);
  }
};

}  // namespace crema

#endif  // CREMA_OPS_CPU_SEQUENCES_H_
