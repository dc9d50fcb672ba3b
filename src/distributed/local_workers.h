// Worker processes on the coordinator's own machine.
#ifndef CREMA_DISTRIBUTED_LOCAL_WORKERS_H_
#define CREMA_DISTRIBUTED_LOCAL_WORKERS_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace crema {

// A folder for a socket that only this user can reach; removed at the end.
class PrivateFolder {
 public:
  // Removes those, too, that coordinators of this user left which were killed. Throws EnvironmentError.
  PrivateFolder();
  ~PrivateFolder();
  PrivateFolder(const PrivateFolder&) = delete;
  PrivateFolder& operator=(const PrivateFolder&) = delete;

  const std::string& path() const { return path_; }
  // Where a coordinator is to listen.
  std::string socket() const;

 private:
  std::string path_;
  int lock_ = -1;  // on the folder, while its coordinator lives
};

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
