// TCP by hand: connections of strangers, and a relay that records what a program sends.
#ifndef CREMA_TESTS_TOOLS_TCP_RELAY_H_
#define CREMA_TESTS_TOOLS_TCP_RELAY_H_

#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace crema::testing_tools {

// The port of "tcp://127.0.0.1:PORT".
int PortOf(const std::string& endpoint);

// A connection to a port of this machine; closed when it goes.
class Connection {
 public:
  explicit Connection(int port);
  explicit Connection(int descriptor, bool) : fd_(descriptor) {}
  Connection(Connection&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  ~Connection();

  bool open() const { return fd_ >= 0; }
  int descriptor() const { return fd_; }
  // As far as the other side takes it within a second.
  void Send(const std::string& bytes) const;
  // What comes within `milliseconds` after the last that came.
  std::string Receive(int milliseconds) const;

 private:
  int fd_ = -1;
};

// Listens at a port of its own and passes everything on to another one, both ways.
class TcpRelay {
 public:
  explicit TcpRelay(int to);
  ~TcpRelay();
  TcpRelay(const TcpRelay&) = delete;
  TcpRelay& operator=(const TcpRelay&) = delete;

  std::string endpoint() const;
  // What came over each connection so far, on its way to the other port.
  std::vector<std::string> Sent();

 private:
  struct Pair {
    Connection from, to;
    std::string sent = {};
    bool over = false;
  };
  void Serve();

  const int to_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<Pair> pairs_;  // under mutex_
  std::thread thread_;
};

}  // namespace crema::testing_tools

#endif  // CREMA_TESTS_TOOLS_TCP_RELAY_H_
