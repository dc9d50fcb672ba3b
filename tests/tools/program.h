// Running the real programs in folders of their own.
#ifndef CREMA_TESTS_TOOLS_PROGRAM_H_
#define CREMA_TESTS_TOOLS_PROGRAM_H_

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "temporary_folder.h"

namespace crema::testing_tools {

class ScratchFolder {
 public:
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  void Write(const std::string& name, const std::string& text) const;

 private:
  const TemporaryFolder folder_;
  const std::filesystem::path path_ = folder_.path();
};

std::string ReadText(const std::filesystem::path& path);
// How often a part occurs.
int Count(const std::string& text, const std::string& part);

struct Finished {
  int exit_code = -1;  // -1: ended by `signal`
  int signal = 0;
  std::string out, err;

  bool Says(const std::string& text) const { return err.find(text) != std::string::npos; }
};

// A file that can be opened, and at whose reading a program hangs.
class EndlessFile {
 public:
  EndlessFile();
  ~EndlessFile();
  EndlessFile(const EndlessFile&) = delete;
  EndlessFile& operator=(const EndlessFile&) = delete;

  // For other processes, too.
  std::string path() const;

 private:
  int ends_[2] = {-1, -1};
};

// Whether this system has pseudo-terminals; a bare chroot has none.
bool TerminalsExist();

struct Setting {
  std::filesystem::path folder = {};     // working directory
  uint64_t file_size_limit = 0;          // writing a file beyond it fails as on a full disk; 0: no limit
  bool on_terminal = false;              // stderr is a terminal of 100 columns
  std::filesystem::path temporary = {};  // TMPDIR
};

// A program that runs beside the test; killed by the destructor if it still does.
class Running {
 public:
  // `arguments[0]` is a program of the build, or a path.
  Running(const std::vector<std::string>& arguments, const Setting& setting);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t pid() const { return pid_; }
  void Signal(int number) const;
  // What it has written to stderr so far.
  std::string Err();
  // Waits until stderr holds `text` `count` times; false when the program ended without.
  bool WaitFor(const std::string& text, int count = 1);
  bool ended();
  // Waits until it has opened `file`; false when it ended without.
  bool WaitForOpening(const std::filesystem::path& file);
  Finished Wait();

 private:
  void Drain();

  pid_t pid_ = -1;
  int terminal_ = -1;
  const TemporaryFolder folder_;
  const std::filesystem::path out_ = folder_ / "out", err_ = folder_ / "err";
  std::string terminal_text_;
  int status_ = 0;
  bool reaped_ = false;
};

Finished RunProgram(const std::vector<std::string>& arguments, const Setting& setting = {});

}  // namespace crema::testing_tools

#endif  // CREMA_TESTS_TOOLS_PROGRAM_H_
