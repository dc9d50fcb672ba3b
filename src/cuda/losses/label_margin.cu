#include "cuda/arrays/rows.h"
#include "cuda/losses/labels.h"
#include "cuda/operations.h"
#include "ops/losses/label_margin_formulas.h"

namespace crema::cuda {

namespace {

struct ScaledRow {
  float factor;
  const float* x;
  float* y;
  __device__ void operator()(int64_t i) const { y[i] += factor * x[i]; }
};

}  // namespace

void CudaOperations::ApplyMargin(const LabelMargin& margin, uint64_t, const float* label, const float* squares,
                                 float* scores, const MarginTape& tape) {
  const PassState* state = gpu_.state();
  ForEach(queue(), margin.rows, [=] __device__(int64_t row) {
    const float lambda = margin::Lambda(margin, state->pass);
    if (row == 0 && tape.lambda) *tape.lambda = lambda;
    margin::Score score = {0, 1, 0};
    if (Counts({}, margin.classes, label[row])) {
      float& own = scores[row * margin.classes + static_cast<int64_t>(label[row])];
      score = margin::Apply(margin, lambda, squares ? squares[row] : 1.0f, own);
      own = score.value;
    }
    if (tape.slope) tape.slope[row] = score.slope;
    if (tape.pull) tape.pull[row] = score.pull;
  });
}

void CudaOperations::MarginGradient(const LabelMargin& margin, const float* label, const MarginTape& tape,
                                    float* gradient, float* multiples) {
  ForEach(queue(), margin.rows, [=] __device__(int64_t row) {
    if (multiples) multiples[row] = 0;
    if (!Counts({}, margin.classes, label[row])) return;
    float& own = gradient[row * margin.classes + static_cast<int64_t>(label[row])];
    if (multiples) multiples[row] = own * tape.pull[row];
    own *= tape.slope[row];
  });
}

void CudaOperations::AddScaledRows(int64_t rows, int64_t width, const float* factor, const float* x, float* y) {
  ForEachInRows(queue(), rows, width, [=] __device__(int64_t row) {
    return ScaledRow{factor[row], x + row * width, y + row * width};
  });
}

}  // namespace crema::cuda
