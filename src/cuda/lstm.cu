#include "base/check.h"
#include "cuda/operations.h"

namespace crema::cuda {

int64_t CudaOperations::LstmForwardWorkspace(const LstmProblem& problem) {
  CREMA_CHECK(false) << "LstmForwardWorkspace is not there yet";
  return {};
}

int64_t CudaOperations::LstmBackwardWorkspace(const LstmProblem& problem) {
  CREMA_CHECK(false) << "LstmBackwardWorkspace is not there yet";
  return {};
}

void CudaOperations::LstmForward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters, const LstmTape& tape, float* output, float* workspace) {
  CREMA_CHECK(false) << "LstmForward is not there yet";
}

void CudaOperations::LstmBackward(const LstmProblem& problem, const LstmInputs& inputs, const LstmParameters& parameters, const LstmTape& tape, const LstmOutputGradients& of_output, const LstmGradients& gradients, float* workspace) {
  CREMA_CHECK(false) << "LstmBackward is not there yet";
}

}  // namespace crema::cuda
