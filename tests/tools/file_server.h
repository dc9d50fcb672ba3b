// A small HTTP/1.1 server of one file on this machine, for tests of what fetches.
#ifndef CREMA_TESTS_TOOLS_FILE_SERVER_H_
#define CREMA_TESTS_TOOLS_FILE_SERVER_H_

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace crema::testing_tools {

class FileServer {
 public:
  struct Behaviour {
    std::string path = "/file";  // anything else is not found
    bool ranges = true;          // gives parts of the file
    // The first reply ends after this many bytes of the file; with `hang` it stays open and silent. 0: whole.
    size_t cut = 0;
    bool hang = false;
  };

  FileServer(std::string content, Behaviour behaviour);
  ~FileServer();
  FileServer(const FileServer&) = delete;
  FileServer& operator=(const FileServer&) = delete;

  // "http://127.0.0.1:PORT", without the path.
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // First lines of the requests, and the value of their Range field behind a blank where they have one.
  std::vector<std::string> requests();

 private:
  void Serve();
  void Answer(int connection);

  const std::string content_;
  const Behaviour behaviour_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<std::string> requests_;
  std::vector<int> hanging_;
  std::thread thread_;
};

}  // namespace crema::testing_tools

#endif  // CREMA_TESTS_TOOLS_FILE_SERVER_H_
