#include "tools/thread_waiting.h"

#include <unistd.h>

#include <cstdlib>

namespace crema::tools {

void SpinBriefly(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("GOMP_SPINCOUNT", "10000", 1);
  execv("/proc/self/exe", argv);
  // Where that is not possible the program goes on as it is.
}

}  // namespace crema::tools
