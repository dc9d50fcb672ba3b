#include "device/processes.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>

#include "base/plugin.h"
#include "crema/error.h"

namespace crema {

void Together(Processes& processes, const std::function<void()>& action) {
  std::exception_ptr failure;
  std::string words;  // their first letter says who is to mend it
  try {
    action();
  } catch (const UserError& error) {
    failure = std::current_exception();
    words = std::string("U") + error.what();
  } catch (const std::exception& error) {
    failure = std::current_exception();
    words = std::string("E") + error.what();
  }
  const std::vector<std::string> said = processes.Gather(words);
  const auto first = std::find_if(said.begin(), said.end(), [](const std::string& text) { return !text.empty(); });
  if (first == said.end()) return;
  std::vector<int> ranks;
  for (int r = 0; failure && r < processes.ranks(); ++r) {
    if (said[static_cast<size_t>(r)] == words) ranks.push_back(r);
  }
  if (!ranks.empty() && ranks.front() != processes.rank()) {
    failure = nullptr;
    ranks.clear();
  }
  throw FailedTogether(failure, std::move(ranks), first->front() == 'U');
}

std::unique_ptr<Processes> OpenMpi() {
  const std::string path = PluginPath("CREMA_MPI_LIBRARY", "libcrema_mpi.so");
  const std::string cannot = "engine: MPI cannot be used: ";
  if (!MayBeThere(path)) {
    throw EnvironmentError(cannot + "this crema was built without MPI (there is no " + path +
                           "); install MPI with its headers (Debian, Ubuntu: libopenmpi-dev openmpi-bin) and build "
                           "crema again, or train by engine: ZMQ (--workers=N, --coordinate)");
  }
  // Never closed: MPI cannot be begun twice in a process. Its own plugins look for its symbols among the global ones.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    throw EnvironmentError(cannot + "the MPI library of crema does not load: " + dlerror() +
                           "; install the MPI that it was built with (Debian, Ubuntu: openmpi-bin), or say where it is "
                           "with LD_LIBRARY_PATH");
  }
  const auto* found = static_cast<const MpiLibrary*>(dlsym(library, "crema_mpi_library"));
  if (!found || found->interface_version != kMpiInterface) {
    throw EnvironmentError(cannot + path + " is of another version of crema; install both from one build");
  }
  return found->open();
}

int LaunchedProcesses() {
  int most = 1;
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS"}) {
    if (const char* value = std::getenv(variable)) most = std::max(most, std::atoi(value));
  }
  return most;
}

}  // namespace crema
