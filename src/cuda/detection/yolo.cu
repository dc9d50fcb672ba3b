#include "cuda/operations.h"
#include "ops/detection/yolo_formulas.h"

namespace crema::cuda {

void CudaOperations::LearnYolo(const YoloLoss& loss, uint64_t, const float* predictions, const float* objects,
                               float* gradient, float* losses) {
  const int64_t count = loss.grid.images * loss.grid.of_image();
  Fill(0, Tensor(reinterpret_cast<std::byte*>(gradient), {Shape{count * loss.grid.numbers()}}));
  const PassState* state = gpu_.state();
  ForEach(queue(), count, [=] __device__(int64_t i) {
    losses[i] = yolo::Learn(loss, state->pass, predictions, objects, 0, loss.objects, i, gradient);
  });
}

void CudaOperations::DecodeYolo(const YoloGrid& grid, const float* predictions, const YoloBoxes& boxes) {
  ForEach(queue(), grid.images * grid.of_image(),
          [=] __device__(int64_t i) { yolo::Decode(grid, predictions, i, boxes); });
}

}  // namespace crema::cuda
