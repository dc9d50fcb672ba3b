// The candidates behind MakePooling, one source file each.
#ifndef CREMA_OPS_POOLING_POOLING_KERNELS_H_
#define CREMA_OPS_POOLING_POOLING_KERNELS_H_

#include <algorithm>

#include "base/multiversion.h"
#include "base/parallel.h"
#include "ops/pooling/pooling.h"

namespace crema {

std::unique_ptr<PoolingKernel> MakeMaxPooling(const PoolingProblem& problem, const Device& device,
                                              std::string* why_not);
std::unique_ptr<PoolingKernel> MakeWholePlanePooling(const PoolingProblem& problem, const Device& device,
                                                     std::string* why_not);
std::unique_ptr<PoolingKernel> MakeAveragePooling(const PoolingProblem& problem, const Device& device,
                                                  std::string* why_not);
std::unique_ptr<PoolingKernel> MakeMaxPoolingChannelsLast(const PoolingProblem& problem, const Device& device,
                                                          std::string* why_not);
std::unique_ptr<PoolingKernel> MakeAveragePoolingChannelsLast(const PoolingProblem& problem, const Device& device,
                                                              std::string* why_not);
// Plain loops for every method and layout.
std::unique_ptr<PoolingKernel> MakePoolingReference(const PoolingProblem& problem, const Device& device,
                                                    std::string* why_not);

// The vectorised kernels reduce each window first along its columns, then along its row, eight windows of an output
// row at a time; what this strip reaches over is kept on the stack.
constexpr int64_t kPoolingLanes = 8;
constexpr int64_t kPoolingSpan = 4096;  // floats

// Copies n <= kPoolingLanes elements: in pieces of fixed size, as a call costs more than the copy.
template <typename T>
CREMA_INLINE void CopyLanes(const T* from, int64_t n, T* to) {
  if (n == kPoolingLanes) {
    __builtin_memcpy(to, from, kPoolingLanes * sizeof(T));
    return;
  }
  if (n & 4) {
    __builtin_memcpy(to, from, 4 * sizeof(T));
    from += 4;
    to += 4;
  }
  for (int64_t i = 0; i < (n & 3); ++i) to[i] = from[i];
}

// Calls Block::template Run<lanes>(arguments..., first) so that [first, first + lanes) cover [0, n) with whole vectors
// where n allows: the last ones overlap instead of leaving a rest.
template <typename Block, typename... Arguments>
CREMA_INLINE void CoverWithVectors(int64_t n, Arguments... arguments) {
  if (n >= 8) {
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) Block::template Run<8>(arguments..., i);
    if (i < n) Block::template Run<8>(arguments..., n - 8);
  } else if (n >= 4) {
    Block::template Run<4>(arguments..., int64_t{0});
    if (n > 4) Block::template Run<4>(arguments..., n - 4);
  } else {
    for (int64_t i = 0; i < n; ++i) Block::template Run<1>(arguments..., i);
  }
}

// Number of windows of one row that a strip takes, a multiple of kPoolingLanes; 0 when not even that many fit.
int64_t PoolingStrip(const PoolingWindow& horizontal);

// Calls body(plane) for every plane, threaded.
template <typename Body>
void ForEachPlane(const PoolingProblem& problem, const Body& body) {
  constexpr int64_t kGrain = 16384;  // input elements worth waking a thread for
  const int64_t elements = std::max<int64_t>(1, problem.input_plane());
  ParallelFor(problem.planes(), std::max<int64_t>(1, kGrain / elements), [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) body(plane);
  });
}

}  // namespace crema

#endif  // CREMA_OPS_POOLING_POOLING_KERNELS_H_
