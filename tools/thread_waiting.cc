#include "tools/thread_waiting.h"

#include <unistd.h>

#include <cstdlib>

#include "base/own_program.h"

namespace crema::tools {

void SpinBriefly(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("GOMP_SPINCOUNT", "10000", 1);
  execv(OwnProgram().c_str(), argv);  // by its path: of the link, ps, top and pkill would call it "exe"
  execv("/proc/self/exe", argv);      // where it was replaced meanwhile
  // Where that is not possible the program goes on as it is.
}

}  // namespace crema::tools
