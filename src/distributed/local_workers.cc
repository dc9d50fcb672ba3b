#include "distributed/local_workers.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
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

constexpr std::string_view kFolderPrefix = "crema-", kSocket = "coordinator";

// Locks a folder of this user's; -1 where it is none, or another process has it.
int Lock(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status;
  if (fd < 0 || (fstat(fd, &status) == 0 && status.st_uid == geteuid() && flock(fd, LOCK_EX | LOCK_NB) == 0)) return fd;
  close(fd);
  return -1;
}

// Those of coordinators that were killed: with a socket in them, and no lock. A new one has its lock first.
void RemoveAbandoned(const std::filesystem::path& temporary) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(temporary, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kFolderPrefix) || name.size() != kFolderPrefix.size() + 6) continue;
    if (!std::filesystem::is_socket(entry.path() / kSocket, ignored)) continue;
    const int fd = Lock(entry.path().string());
    if (fd < 0) continue;
    std::filesystem::remove_all(entry.path(), ignored);
    close(fd);
  }
}

}  // namespace

PrivateFolder::PrivateFolder() {
  const char* const folder = std::getenv("TMPDIR");
  // A socket's path has at most 107 characters.
  const std::string temporary = folder && *folder && std::strlen(folder) < 60 ? folder : "/tmp";
  RemoveAbandoned(temporary);
  std::string pattern = temporary + "/" + std::string(kFolderPrefix) + "XXXXXX";
  if (!mkdtemp(pattern.data())) throw EnvironmentError("cannot make " + pattern + ": " + std::strerror(errno));
  path_ = pattern;
  lock_ = Lock(path_);
}

std::string PrivateFolder::socket() const { return path_ + "/" + std::string(kSocket); }

PrivateFolder::~PrivateFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) close(lock_);
}

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
