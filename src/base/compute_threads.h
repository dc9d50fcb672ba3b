// How many threads there may be.
#ifndef CREMA_BASE_COMPUTE_THREADS_H_
#define CREMA_BASE_COMPUTE_THREADS_H_

#include <omp.h>

#include <algorithm>

namespace crema {

// Computations of the calling thread take so many threads, or as many as OMP_THREAD_LIMIT and crema (4096) allow, and
// never fewer than that: oneDNN divides its work for all of them, and what the threads that OMP_DYNAMIC or the limit
// held back were to do would be left out without a word. Returns how many.
int UseComputeThreads(int threads);

// The same for what is set, by OMP_NUM_THREADS or omp_set_num_threads. Cheap: before every pass.
inline int UseComputeThreads() { return UseComputeThreads(omp_get_max_threads()); }

// Processors that this process may use, which may be some of the machine's (taskset, SLURM, containers' CPU sets).
inline int UsableCores() { return std::max(1, omp_get_num_procs()); }

// While it lives, computations of the calling thread use at most so many threads.
class ComputeThreads {
 public:
  explicit ComputeThreads(int threads) : before_(omp_get_max_threads()) { UseComputeThreads(threads); }
  ~ComputeThreads() { UseComputeThreads(before_); }
  ComputeThreads(const ComputeThreads&) = delete;
  ComputeThreads& operator=(const ComputeThreads&) = delete;

 private:
  const int before_;
};

}  // namespace crema

#endif  // CREMA_BASE_COMPUTE_THREADS_H_
