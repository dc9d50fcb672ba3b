#include "base/check.h"
#include "cuda/operations.h"

namespace crema::cuda {

void CudaOperations::SoftmaxLossForward(const SoftmaxLoss& loss, const float* probability, const float* label, float* value) {
  CREMA_CHECK(false) << "SoftmaxLossForward is not there yet";
}

void CudaOperations::SoftmaxLossBackward(const SoftmaxLoss& loss, const float* value_gradient, const float* probability, const float* label, float* dx) {
  CREMA_CHECK(false) << "SoftmaxLossBackward is not there yet";
}

void CudaOperations::Accuracy(const AccuracyProblem& problem, const float* scores, const float* label, float* share, float* of_class, float* labels_of_class) {
  CREMA_CHECK(false) << "Accuracy is not there yet";
}

int64_t CudaOperations::FindBadLabel(const LabelRule& rule, int64_t classes, int64_t labels, const float* label) {
  CREMA_CHECK(false) << "FindBadLabel is not there yet";
  return {};
}

}  // namespace crema::cuda
