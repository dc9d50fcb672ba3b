#include "distributed/sockets/open_files.h"

#include <sys/resource.h>

#include <string>

#include "crema/error.h"

namespace crema {

void AllowOpenFiles(uint64_t needed) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  if (limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  if (limit.rlim_cur >= needed) return;
  throw EnvironmentError("this process may have " + std::to_string(limit.rlim_cur) +
                         " files open at a time, and with its connections needs up to " + std::to_string(needed) +
                         "; raise the limit (ulimit -Hn)");
}

}  // namespace crema
