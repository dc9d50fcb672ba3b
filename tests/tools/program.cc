#include "tools/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <thread>

#include "files.h"
#include "source_folder.h"

namespace crema::testing_tools {

namespace fs = std::filesystem;

namespace {

// In the child, after fork: only calls that are safe there.
[[noreturn]] void BecomeProgram(const std::vector<char*>& arguments, const Setting& setting, int out, int err) {
  if (!setting.folder.empty() && chdir(setting.folder.c_str()) != 0) _exit(126);
  if (setting.file_size_limit > 0) {
    const rlimit limit{setting.file_size_limit, setting.file_size_limit};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(out, 1);
  dup2(err, 2);
  if (!setting.temporary.empty()) setenv("TMPDIR", setting.temporary.c_str(), 1);
  setenv("TERM", setting.on_terminal ? "xterm" : "dumb", 1);
  // Every thread count gives the same results; two keep tests that run side by side from waiting on each other.
  setenv("OMP_NUM_THREADS", "2", 0);
  setenv("OMP_WAIT_POLICY", "passive", 0);
  execv(arguments[0], arguments.data());
  _exit(127);
}

// A new pseudo-terminal: its master side in *master, the program's side returned; -1 where there are none.
int OpenTerminal(int* master) {
  *master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*master < 0 || grantpt(*master) != 0 || unlockpt(*master) != 0) return -1;
  const char* name = ptsname(*master);
  return name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
}

}  // namespace

void ScratchFolder::Write(const std::string& name, const std::string& text) const {
  fs::create_directories((path_ / name).parent_path());
  std::ofstream(path_ / name) << text;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string ReadText(const fs::path& path) { return ReadFile(path); }

EndlessFile::EndlessFile() {
  if (pipe2(ends_, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
}

EndlessFile::~EndlessFile() {
  for (const int end : ends_) close(end);
}

std::string EndlessFile::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(ends_[0]);
}

bool TerminalsExist() {
  int master = -1;
  const int terminal = OpenTerminal(&master);
  close(terminal);
  close(master);
  return terminal >= 0;
}

Running::Running(const std::vector<std::string>& arguments, const Setting& setting) {
  std::vector<std::string> words = arguments;
  if (words[0].find('/') == std::string::npos) words[0] = ProgramFolder() + "/" + words[0];
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int out = open(out_.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  int err = open(err_.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
  if (setting.on_terminal) {
    close(err);
    err = OpenTerminal(&terminal_);
    winsize size{};
    size.ws_col = 100;
    size.ws_row = 40;
    ioctl(err, TIOCSWINSZ, &size);
  }
  pid_ = fork();
  if (pid_ == 0) BecomeProgram(argv, setting, out, err);
  close(out);
  close(err);
}

Running::~Running() {
  if (!ended()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, &status_, 0);
  }
  if (terminal_ >= 0) close(terminal_);
}

void Running::Signal(int number) const { kill(pid_, number); }

void Running::Drain() {
  if (terminal_ < 0) return;
  pollfd wait{terminal_, POLLIN, 0};
  char bytes[4096];
  while (poll(&wait, 1, 0) > 0 && (wait.revents & POLLIN)) {
    const ssize_t got = read(terminal_, bytes, sizeof bytes);
    if (got <= 0) break;
    terminal_text_.append(bytes, static_cast<size_t>(got));
  }
}

std::string Running::Err() {
  Drain();
  return terminal_ >= 0 ? terminal_text_ : ReadText(err_);
}

bool Running::ended() {
  Drain();
  if (!reaped_) reaped_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return reaped_;
}

bool Running::WaitFor(const std::string& text, int count) {
  while (true) {
    const bool last = ended();
    const std::string err = Err();
    int found = 0;
    for (size_t at = err.find(text); at != std::string::npos; at = err.find(text, at + 1)) ++found;
    if (found >= count) return true;
    if (last) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

bool Running::WaitForOpening(const fs::path& file) {
  const fs::path target = fs::is_symlink(file) ? fs::read_symlink(file) : fs::canonical(file);
  const fs::path process = "/proc/" + std::to_string(pid_);
  while (!ended()) {
    std::error_code gone;
    // Before it becomes the program it has this one's files open.
    const bool runs = fs::read_symlink(process / "exe", gone) != fs::read_symlink("/proc/self/exe");
    for (fs::directory_iterator fd(process / "fd", gone), end; runs && fd != end; fd.increment(gone)) {
      if (fs::read_symlink(*fd, gone) == target) return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Finished Running::Wait() {
  while (!ended()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  Finished finished;
  finished.out = ReadText(out_);
  finished.err = Err();
  if (WIFEXITED(status_)) finished.exit_code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) finished.signal = WTERMSIG(status_);
  return finished;
}

Finished RunProgram(const std::vector<std::string>& arguments, const Setting& setting) {
  return Running(arguments, setting).Wait();
}

}  // namespace crema::testing_tools
