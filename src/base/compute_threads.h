// How many threads a computation may take.
#ifndef CREMA_BASE_COMPUTE_THREADS_H_
#define CREMA_BASE_COMPUTE_THREADS_H_

#include <omp.h>

namespace crema {

// While it lives, computations of the calling thread use at most so many threads.
class ComputeThreads {
 public:
  explicit ComputeThreads(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }
  ~ComputeThreads() { omp_set_num_threads(before_); }
  ComputeThreads(const ComputeThreads&) = delete;
  ComputeThreads& operator=(const ComputeThreads&) = delete;

 private:
  const int before_;
};

}  // namespace crema

#endif  // CREMA_BASE_COMPUTE_THREADS_H_
