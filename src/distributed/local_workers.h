// Worker processes on the coordinator's own machine.
#ifndef CREMA_DISTRIBUTED_LOCAL_WORKERS_H_
#define CREMA_DISTRIBUTED_LOCAL_WORKERS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

// Used by the thread that made it, with whose end they end.
class LocalWorkers {
 public:
  // Starts a process of each command, with --worker_name=NAME added.
  explicit LocalWorkers(const std::vector<std::vector<std::string>>& commands);
  // Ends those that still run: politely, and after two seconds by force.
  ~LocalWorkers();
  LocalWorkers(const LocalWorkers&) = delete;
  LocalWorkers& operator=(const LocalWorkers&) = delete;

  // Starts those again that died, unless one dies again and again: then it throws EnvironmentError. What it did is in
  // the sentences that it returns. To be called now and then.
  std::vector<std::string> Tend(int64_t now_ms);
  // No more starting; waits for all to end by themselves, for at most `timeout_ms`.
  void Wind(int64_t timeout_ms);

 private:
  struct Process {
    pid_t pid = -1;
    std::vector<std::string> command;
    std::string name;
    int deaths = 0;
    int64_t started = 0, restart_at = 0;
  };

  void Start(Process& process);
  bool Reap(Process& process, int* status);

  std::vector<Process> processes_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_LOCAL_WORKERS_H_
