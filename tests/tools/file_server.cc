#include "tools/file_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace crema::testing_tools {

namespace {

void SendAll(int connection, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent = send(connection, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) return;
    at += static_cast<size_t>(sent);
  }
}

}  // namespace

FileServer::FileServer(std::string content, Behaviour behaviour)
    : content_(std::move(content)), behaviour_(std::move(behaviour)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (listener_ < 0 || bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(listener_, 8) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw std::runtime_error("cannot listen on 127.0.0.1");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { Serve(); });
}

FileServer::~FileServer() {
  stop_ = true;
  thread_.join();
  for (const int connection : hanging_) close(connection);
  close(listener_);
}

std::vector<std::string> FileServer::requests() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return requests_;
}

void FileServer::Serve() {
  while (!stop_) {
    pollfd waiting{listener_, POLLIN, 0};
    if (poll(&waiting, 1, 20) <= 0) continue;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) Answer(connection);
  }
}

void FileServer::Answer(int connection) {
  std::string request;
  char block[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = recv(connection, block, sizeof block, 0);
    if (got <= 0) break;
    request.append(block, static_cast<size_t>(got));
  }
  const std::string line = request.substr(0, request.find('\r'));
  size_t begin = 0, number = 0;
  {
    std::string noted = line;
    const size_t range = request.find("\r\nRange: bytes=");
    if (range != std::string::npos) {
      const std::string value = request.substr(range + 15, request.find('\r', range + 2) - range - 15);
      noted += " " + value;
      begin = std::strtoul(value.c_str(), nullptr, 10);
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    requests_.push_back(noted);
    number = requests_.size();
  }
  if (!behaviour_.ranges) begin = 0;
  if (line.find(" " + behaviour_.path + " ") == std::string::npos) {
    SendAll(connection, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  } else if (begin > 0 && begin >= content_.size()) {
    SendAll(connection, "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  } else {
    std::string head = begin > 0
                           ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(begin) + "-" +
                                 std::to_string(content_.size() - 1) + "/" + std::to_string(content_.size()) + "\r\n"
                           : "HTTP/1.1 200 OK\r\n";
    head += "Content-Length: " + std::to_string(content_.size() - begin) + "\r\nConnection: close\r\n\r\n";
    const bool cut = number == 1 && behaviour_.cut > 0;
    SendAll(connection, head + content_.substr(begin, cut ? behaviour_.cut : std::string::npos));
    if (cut && behaviour_.hang) {
      hanging_.push_back(connection);
      return;
    }
  }
  close(connection);
}

}  // namespace crema::testing_tools
