// The workers that a coordinator starts on its own machine.
#include <sys/resource.h>

#include <functional>
#include <utility>

#include "base/check.h"
#include "base/compute_threads.h"
#include "crema/error.h"
#include "distributed/training/coordination.h"
#include "distributed/training/join.h"
#include "distributed/training/worker_processes.h"
#include "distributed/training/worker_threads.h"
#include "solver/ranks/hogwild.h"

namespace crema {

namespace {

// Beside what workers need for each other: two sockets to the coordinator and two that are being given up, and what
// they read.
constexpr int kSocketsOfWorker = 4, kFilesOfWorker = 8;
// Of the coordinator.
constexpr int kOtherSockets = 200, kOtherFiles = 200;

}  // namespace

// Of worker threads all sockets are this process's, and each of them is an open file.
void Coordination::AllowSockets() {
  const int workers = static_cast<int>(settings_.local_workers());
  // Where others come in, and one to each of them.
  const int among_workers = settings_.topology() == DistributedParameter::STAR ? 0 : workers;
  const int sockets = workers * (kSocketsOfWorker + among_workers) + kOtherSockets;
  context_.set(zmq::ctxopt::max_sockets, sockets);
  const auto files = static_cast<rlim_t>(sockets + workers * kFilesOfWorker + kOtherFiles);
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= files) return;
  if (limit.rlim_max >= files) {
    limit.rlim_cur = files;
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  }
  throw EnvironmentError(std::to_string(workers) + " worker threads with topology " +
                         DistributedParameter::Topology_Name(settings_.topology()) + " need up to " +
                         std::to_string(files) + " open files, but this process may have " +
                         std::to_string(limit.rlim_max) +
                         " (ulimit -Hn); start fewer workers, or leave out worker_threads (--worker_threads)");
}

const std::string& Coordination::LocalEndpoint() {
  if (settings_.worker_threads()) {
    local_endpoint_ = std::string(kInproc) + "coordinator";
  } else {
    folder_ = std::make_unique<PrivateFolder>();
    local_endpoint_ = "ipc://" + folder_->socket();
  }
  return local_endpoint_;
}

void Coordination::StartWorkers() {
  const size_t count = settings_.local_workers();
  if (!settings_.worker_threads()) {
    std::vector<std::vector<std::string>> commands = cluster_.worker_commands;
    CREMA_CHECK(commands.size() == count);
    for (std::vector<std::string>& command : commands) command.push_back("--join=" + local_endpoint_);
    local_ = std::make_unique<WorkerProcesses>(commands, folder_->socket());
    return;
  }
  CREMA_CHECK(cluster_.worker_devices.size() == count);
  local_ = std::make_unique<WorkerThreads>(
      count, [this](size_t index, const std::string& name, const std::function<bool()>& asked_to_stop) {
        const ComputeThreads share(cluster_.compute_threads);
        JoinOptions options;
        options.endpoint = local_endpoint_;
        options.name = name;
        options.device = cluster_.worker_devices[index];
        options.data_threads = options_.data_threads;
        options.requested_action = [&] { return asked_to_stop() ? SolverAction::kStop : SolverAction::kNone; };
        return JoinInside(context_, options).reason;
      });
}

}  // namespace crema
