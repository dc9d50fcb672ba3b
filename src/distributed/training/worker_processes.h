// Workers of the coordinator's machine that are processes.
#ifndef CREMA_DISTRIBUTED_TRAINING_WORKER_PROCESSES_H_
#define CREMA_DISTRIBUTED_TRAINING_WORKER_PROCESSES_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "distributed/training/local_workers.h"

namespace crema {

// They end with the thread that made it.
class WorkerProcesses : public LocalWorkers {
 public:
  // Starts a process of each command, with --worker_name=NAME added. They meet the coordinator at `socket`, a file:
  // where that is no more, none is started again.
  WorkerProcesses(const std::vector<std::vector<std::string>>& commands, std::string socket);
  // Ends those that still run: politely, and after two seconds by force.
  ~WorkerProcesses() override;

 private:
  struct Process {
    pid_t pid = -1;
    std::vector<std::string> command;
  };

  void Start(size_t index) override;
  std::optional<End> TakeEnd(size_t index) override;

  std::vector<Process> processes_;
  const std::string socket_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_TRAINING_WORKER_PROCESSES_H_
