// The operations that go through sequences step by step (see operations.h).
#ifndef CREMA_OPS_SEQUENCE_OPERATIONS_H_
#define CREMA_OPS_SEQUENCE_OPERATIONS_H_

#include <cstddef>
#include <cstdint>

#include "ops/sequences/ctc.h"
#include "ops/sequences/gru.h"
#include "ops/sequences/label_sequences.h"
#include "ops/sequences/lstm.h"
#include "ops/sequences/rnn.h"

namespace crema {

class SequenceOperations {
 public:
  virtual ~SequenceOperations() = default;

  // --- Recurrent layers: ops/sequences/lstm.h, gru.h, rnn.h. ---
  virtual int64_t LstmForwardWorkspace(const LstmProblem& problem) = 0;
  virtual int64_t LstmBackwardWorkspace(const LstmProblem& problem) = 0;
  virtual void LstmForward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                           const LstmTape& tape, float* output, float* workspace) = 0;
  virtual void LstmBackward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters,
                            const LstmTape& tape, const LstmOutputGradients& of_output, const LstmGradients& gradients,
                            float* workspace) = 0;
  virtual void LstmUnitForward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, float* cell,
                               float* output) = 0;
  virtual void LstmUnitBackward(const LstmUnitProblem& problem, const LstmUnitInputs& inputs, const float* cell,
                                const float* output, float* cell_before_gradient, float* sums_gradient) = 0;
  virtual int64_t GruForwardWorkspace(const GruProblem& problem) = 0;
  virtual int64_t GruBackwardWorkspace(const GruProblem& problem) = 0;
  virtual void GruForward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                          const GruTape& tape, float* output, float* workspace) = 0;
  virtual void GruBackward(const GruProblem& problem, const GruInputs& inputs, const GruParameters& parameters,
                           const GruTape& tape, const GruOutputGradients& of_output, const GruGradients& gradients,
                           float* workspace) = 0;
  virtual int64_t RnnForwardWorkspace(const RnnProblem& problem) = 0;
  virtual int64_t RnnBackwardWorkspace(const RnnProblem& problem) = 0;
  virtual void RnnForward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                          const RnnTape& tape, float* output, float* workspace) = 0;
  virtual void RnnBackward(const RnnProblem& problem, const RnnInputs& inputs, const RnnParameters& parameters,
                           const RnnTape& tape, const RnnOutput& output, const RnnGradients& gradients,
                           float* workspace) = 0;

  // --- Sequences of labels: ops/sequences/ctc.h, ops/sequences/label_sequences.h. FindBadSequence answers as
  // FindBadLabel does. ---
  virtual int64_t FindBadSequence(const CtcProblem& problem, const float* labels) = 0;
  virtual size_t CtcForwardWorkspace(const CtcProblem& problem) = 0;
  virtual size_t CtcBackwardWorkspace(const CtcProblem& problem) = 0;
  virtual void CtcLossForward(const CtcProblem& problem, const float* scores, const float* labels, const CtcTape& tape,
                              float* value, std::byte* workspace) = 0;
  virtual void CtcLossBackward(const CtcProblem& problem, const float* value_gradient, const float* scores,
                               const CtcTape& tape, float* dx, std::byte* workspace) = 0;
  virtual void DecodeSequences(const SequenceScores& problem, const float* scores, float* sequences) = 0;
  virtual size_t SequenceComparisonWorkspace(const SequenceComparison& comparison) = 0;
  virtual void CompareSequences(const SequenceComparison& comparison, const float* sequences, const float* labels,
                                float* right, float* labels_right, std::byte* workspace) = 0;
};

}  // namespace crema

#endif  // CREMA_OPS_SEQUENCE_OPERATIONS_H_
