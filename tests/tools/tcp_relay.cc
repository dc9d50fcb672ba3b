#include "tools/tcp_relay.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace crema::testing_tools {

namespace {

sockaddr_in AddressOf(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

bool Ready(int fd, short events, int milliseconds) {
  pollfd wait{fd, events, 0};
  return poll(&wait, 1, milliseconds) > 0;
}

}  // namespace

int PortOf(const std::string& endpoint) { return std::stoi(endpoint.substr(endpoint.rfind(':') + 1)); }

Connection::Connection(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_in address = AddressOf(port);
  if (fd_ >= 0 && connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    close(fd_);
    fd_ = -1;
  }
}

Connection::~Connection() {
  if (fd_ >= 0) close(fd_);
}

void Connection::Send(const std::string& bytes) const {
  size_t at = 0;
  while (at < bytes.size() && Ready(fd_, POLLOUT, 1000)) {
    const ssize_t sent = send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}

std::string Connection::Receive(int milliseconds) const {
  std::string all;
  char bytes[1 << 14];
  while (Ready(fd_, POLLIN, milliseconds)) {
    const ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
    if (got <= 0) break;
    all.append(bytes, static_cast<size_t>(got));
  }
  return all;
}

TcpRelay::TcpRelay(int to) : to_(to), listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
  sockaddr_in address = AddressOf(0);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), size) == 0 && listen(listener_, 16) == 0 &&
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0) {
    port_ = ntohs(address.sin_port);
  }
  thread_ = std::thread([this] { Serve(); });
}

TcpRelay::~TcpRelay() {
  stop_ = true;
  thread_.join();
  close(listener_);
}

std::string TcpRelay::endpoint() const { return "tcp://127.0.0.1:" + std::to_string(port_); }

std::vector<std::string> TcpRelay::Sent() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> all;
  for (const Pair& pair : pairs_) all.push_back(pair.sent);
  return all;
}

void TcpRelay::Serve() {
  while (!stop_) {
    std::vector<pollfd> items = {{listener_, POLLIN, 0}};
    {
      const std::lock_guard lock(mutex_);
      for (const Pair& pair : pairs_) {
        items.push_back({pair.over ? -1 : pair.from.descriptor(), POLLIN, 0});
        items.push_back({pair.over ? -1 : pair.to.descriptor(), POLLIN, 0});
      }
    }
    if (poll(items.data(), items.size(), 20) <= 0) continue;
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; 2 * i + 2 < items.size(); ++i) {
      Pair& pair = pairs_[i];
      for (const bool forward : {true, false}) {
        if (pair.over || items[2 * i + (forward ? 1 : 2)].revents == 0) continue;
        char bytes[1 << 16];
        const ssize_t got = recv((forward ? pair.from : pair.to).descriptor(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (got <= 0) {
          pair.over = true;
          shutdown(pair.from.descriptor(), SHUT_RDWR);
          shutdown(pair.to.descriptor(), SHUT_RDWR);
          continue;
        }
        const std::string text(bytes, static_cast<size_t>(got));
        if (forward) pair.sent += text;
        (forward ? pair.to : pair.from).Send(text);
      }
    }
    if (items[0].revents != 0) {
      const int descriptor = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (descriptor >= 0) pairs_.push_back({Connection(descriptor, true), Connection(to_)});
    }
  }
}

}  // namespace crema::testing_tools
