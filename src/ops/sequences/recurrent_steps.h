// How the CPU walks the steps of a recurrent layer. For its own sources only.
#ifndef CREMA_OPS_SEQUENCES_RECURRENT_STEPS_H_
#define CREMA_OPS_SEQUENCES_RECURRENT_STEPS_H_

#include <algorithm>

#include "base/parallel.h"
#include "ops/matrices/gemm.h"
#include "ops/matrices/packed_product.h"
#include "ops/sequences/recurrent.h"

namespace crema::recurrent {

// Rows of h worth waking a thread for, where threads meet after every step.
inline int64_t RowGrain(const RecurrentProblem& problem) { return std::max<int64_t>(1, 1024 / problem.hidden); }

// Sequences do not see each other, so each thread can take some of them through all steps without ever waiting for the
// others, on hidden weights that are packed once. It reads all of them in every step, which is good while they fit into
// its cache, and packing must pay. Decided by the problem alone, so that results do not depend on the number of
// threads.
inline bool SideBySide(const RecurrentProblem& problem, int64_t sums) {
  return sums * problem.hidden <= int64_t{1} << 19 && problem.batch >= 4 && problem.rows() >= 32;
}
inline constexpr int64_t kSequencesPerThread = 4;  // at least: fewer make products that are slow

// Floats of packed hidden weights.
inline int64_t ForwardPacked(const RecurrentProblem& problem, int64_t sums) {
  return SideBySide(problem, sums) ? PackedFloats(problem.hidden, sums) : 0;
}
inline int64_t BackwardPacked(const RecurrentProblem& problem, int64_t sums) {
  return SideBySide(problem, sums) ? PackedFloats(sums, problem.hidden) : 0;
}

// Where the products of the steps with the hidden weights go.
struct StepProducts {
  float* to = nullptr;      // batch x columns of the first step
  int64_t step_floats = 0;  // from the rows of one step to those of the next; 0: all steps use the same
  bool add = false;         // to what rows() left there
};

// For each step: the product hidden_before[t] W_h^T of batch x sums, then rows(t, begin, end) for sequences [begin,
// end), which make hidden_before[t + 1].
template <typename Rows>
void ForwardSteps(const RecurrentProblem& problem, int64_t sums, const float* hidden_weights,
                  const float* hidden_before, const StepProducts& products, float* packed, const Rows& rows) {
  const int64_t batch = problem.batch, hidden = problem.hidden;
  if (SideBySide(problem, sums)) {
    PackMatrix(true, hidden, sums, hidden_weights, packed);
    ParallelFor(batch, kSequencesPerThread, [&](int64_t begin, int64_t end) {
      for (int64_t t = 0; t < problem.steps; ++t) {
        PackedProduct(end - begin, sums, hidden, hidden_before + (t * batch + begin) * hidden, packed, products.add,
                      products.to + t * products.step_floats + begin * sums);
        rows(t, begin, end);
      }
    });
    return;
  }
  for (int64_t t = 0; t < problem.steps; ++t) {
    Gemm(false, true, batch, sums, hidden, 1, hidden_before + t * batch * hidden, hidden_weights,
         products.add ? 1.0f : 0.0f, products.to + t * products.step_floats);
    ParallelFor(batch, RowGrain(problem), [&](int64_t begin, int64_t end) { rows(t, begin, end); });
  }
}

// For each step, from the last one: rows(t, begin, end), which make gradient[t], that of the products above, then, down
// to step `first_product`, the product gradient[t] W_h of batch x hidden, towards the gradient of hidden_before[t].
template <typename Rows>
void BackwardSteps(const RecurrentProblem& problem, int64_t sums, const float* hidden_weights, const float* gradient,
                   int64_t first_product, const StepProducts& products, float* packed, const Rows& rows) {
  const int64_t batch = problem.batch, hidden = problem.hidden;
  if (SideBySide(problem, sums)) {
    PackMatrix(false, sums, hidden, hidden_weights, packed);
    ParallelFor(batch, kSequencesPerThread, [&](int64_t begin, int64_t end) {
      for (int64_t t = problem.steps - 1; t >= 0; --t) {
        rows(t, begin, end);
        if (t < first_product) continue;
        PackedProduct(end - begin, hidden, sums, gradient + (t * batch + begin) * sums, packed, products.add,
                      products.to + t * products.step_floats + begin * hidden);
      }
    });
    return;
  }
  for (int64_t t = problem.steps - 1; t >= 0; --t) {
    ParallelFor(batch, RowGrain(problem), [&](int64_t begin, int64_t end) { rows(t, begin, end); });
    if (t < first_product) continue;
    Gemm(false, false, batch, hidden, sums, 1, gradient + t * batch * sums, hidden_weights, products.add ? 1.0f : 0.0f,
         products.to + t * products.step_floats);
  }
}

}  // namespace crema::recurrent

#endif  // CREMA_OPS_SEQUENCES_RECURRENT_STEPS_H_
