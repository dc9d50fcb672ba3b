#include "distributed/local_workers.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "crema/error.h"

namespace crema {

namespace {

constexpr int kMostDeaths = 5;
// A process that ran for so long is forgiven what went before.
constexpr int64_t kForgiveAfter = 60'000;

std::string Describe(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

LocalWorkers::LocalWorkers(const std::vector<std::vector<std::string>>& commands) {
  for (const std::vector<std::string>& command : commands) {
    Process& process = processes_.emplace_back();
    process.name = "local-" + std::to_string(processes_.size() - 1);
    process.command = command;
    process.command.push_back("--worker_name=" + process.name);
  }
  for (Process& process : processes_) Start(process);
}

LocalWorkers::~LocalWorkers() {
  for (const Process& process : processes_) {
    if (process.pid > 0) kill(process.pid, SIGTERM);
  }
  Wind(2000);
  for (Process& process : processes_) {
    if (process.pid <= 0) continue;
    kill(process.pid, SIGKILL);
    waitpid(process.pid, nullptr, 0);
  }
}

void LocalWorkers::Start(Process& process) {
  std::vector<char*> pointers;
  for (std::string& argument : process.command) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  process.pid = fork();
  if (process.pid < 0) throw EnvironmentError(std::string("cannot start a worker: ") + std::strerror(errno));
  if (process.pid == 0) {
    // Ctrl-C is for the coordinator, which tells the workers; when it dies they have nothing left to do.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  process.started = -1;
}

bool LocalWorkers::Reap(Process& process, int* status) {
  if (process.pid <= 0 || waitpid(process.pid, status, WNOHANG) != process.pid) return false;
  process.pid = -1;
  return true;
}

std::vector<std::string> LocalWorkers::Tend(int64_t now_ms) {
  std::vector<std::string> told;
  for (Process& process : processes_) {
    if (process.started < 0) process.started = now_ms;
    int status = 0;
    if (Reap(process, &status)) {
      if (now_ms - process.started > kForgiveAfter) process.deaths = 0;
      ++process.deaths;
      // Exit code 2 is the user's mistake, which stays one.
      const bool hopeless = WIFEXITED(status) && (WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 127);
      if (hopeless || process.deaths >= kMostDeaths) {
        throw EnvironmentError("worker " + process.name + " " + Describe(status) +
                               (hopeless ? "" : ", for the " + std::to_string(process.deaths) + "th time in a row"));
      }
      told.push_back("worker " + process.name + " " + Describe(status) + " and is started again");
      process.restart_at = now_ms + (500LL << (process.deaths - 1));
    }
    if (process.pid < 0 && now_ms >= process.restart_at) Start(process);
  }
  return told;
}

void LocalWorkers::Wind(int64_t timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    int status = 0;
    for (Process& process : processes_) Reap(process, &status);
    if (std::all_of(processes_.begin(), processes_.end(), [](const Process& p) { return p.pid <= 0; })) return;
    if (std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

}  // namespace crema
