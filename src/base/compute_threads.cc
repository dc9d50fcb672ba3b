#include "base/compute_threads.h"

#include <algorithm>

namespace crema {

int UseComputeThreads(int threads) {
  constexpr int kMostThreads = 4096;
  const int possible = std::clamp(threads, 1, std::max(1, std::min(omp_get_thread_limit(), kMostThreads)));
  omp_set_dynamic(0);
  if (possible != omp_get_max_threads()) omp_set_num_threads(possible);
  return possible;
}

}  // namespace crema
