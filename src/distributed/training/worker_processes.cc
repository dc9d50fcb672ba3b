#include "distributed/training/worker_processes.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "crema/error.h"

namespace crema {

namespace {

std::string Describe(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

WorkerProcesses::WorkerProcesses(const std::vector<std::vector<std::string>>& commands, std::string socket)
    : LocalWorkers(commands.size()), processes_(commands.size()), socket_(std::move(socket)) {
  for (size_t i = 0; i < count(); ++i) {
    processes_[i].command = commands[i];
    processes_[i].command.push_back("--worker_name=" + NameOf(i));
  }
  StartAll();
}

WorkerProcesses::~WorkerProcesses() {
  for (const Process& process : processes_) {
    if (process.pid > 0) kill(process.pid, SIGTERM);
  }
  Wind(2000);
  for (const Process& process : processes_) {
    if (process.pid <= 0) continue;
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
  }
}

void WorkerProcesses::Start(size_t index) {
  if (access(socket_.c_str(), F_OK) != 0) {
    throw EnvironmentError("worker " + NameOf(index) + " cannot be started: " + socket_ +
                           ", by which it would reach the coordinator, is gone; was it taken for an old file? The next "
                           "start of train makes another one, under TMPDIR where that is set");
  }
  Process& process = processes_[index];
  std::vector<char*> pointers;
  for (std::string& argument : process.command) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  process.pid = fork();
  if (process.pid < 0) throw EnvironmentError(std::string("cannot start a worker: ") + std::strerror(errno));
  if (process.pid > 0) return;
  // Ctrl-C is for the coordinator, which tells the workers; when it dies they have nothing left to do.
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  execvp(pointers[0], pointers.data());
  _exit(127);
}

std::optional<LocalWorkers::End> WorkerProcesses::TakeEnd(size_t index) {
  Process& process = processes_[index];
  int status = 0;
  if (process.pid <= 0 || waitpid(process.pid, &status, WNOHANG) != process.pid) return std::nullopt;
  process.pid = -1;
  // Exit code 2 is the user's mistake, which stays one.
  return End{Describe(status), WIFEXITED(status) && (WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 127)};
}

}  // namespace crema
