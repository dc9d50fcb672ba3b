// The candidates behind MakePooling, one source file each.
#ifndef CREMA_OPS_POOLING_KERNELS_H_
#define CREMA_OPS_POOLING_KERNELS_H_

#include <algorithm>

#include "base/parallel.h"
#include "ops/pooling.h"

namespace crema {

std::unique_ptr<PoolingKernel> MakeMaxPooling(const PoolingProblem& problem, const Device& device,
                                              std::string* why_not);
std::unique_ptr<PoolingKernel> MakeAveragePooling(const PoolingProblem& problem, const Device& device,
                                                  std::string* why_not);
// Plain loops for every method.
std::unique_ptr<PoolingKernel> MakePoolingReference(const PoolingProblem& problem, const Device& device,
                                                    std::string* why_not);

// The vectorised kernels reduce each window first along its columns, then along its row, sixteen windows of an output
// row at a time; what this strip reaches over is kept on the stack.
constexpr int64_t kPoolingLanes = 16;
constexpr int64_t kPoolingSpan = 4096;  // floats

// Number of windows of one row that a strip takes, a multiple of kPoolingLanes; 0 when not even that many fit.
int64_t PoolingStrip(const PoolingWindow& horizontal);

// Calls body(plane) for every plane, threaded.
template <typename Body>
void ForEachPlane(const PoolingProblem& problem, const Body& body) {
  constexpr int64_t kGrain = 16384;  // input elements worth waking a thread for
  const int64_t pixels = std::max<int64_t>(1, problem.input_height * problem.input_width);
  ParallelFor(problem.planes, std::max<int64_t>(1, kGrain / pixels), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  });
}

}  // namespace crema

#endif  // CREMA_OPS_POOLING_KERNELS_H_
