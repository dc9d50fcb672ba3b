// What a worker tells a person of its connection.
#ifndef CREMA_DISTRIBUTED_SOCKETS_JOIN_LOG_H_
#define CREMA_DISTRIBUTED_SOCKETS_JOIN_LOG_H_

#include <functional>
#include <string>

#include "distributed/protocol/environment.h"
#include "distributed/protocol/worker.h"
#include "distributed/sockets/sockets.h"

namespace crema {

// Used by one thread.
class JoinLog {
 public:
  // `log` may be null.
  JoinLog(std::string endpoint, std::function<void(const std::string& line)> log)
      : endpoint_(std::move(endpoint)), log_(std::move(log)) {}

  void Say(const std::string& line) const {
    if (log_) log_(line);
  }
  // To be asked again and again: tells when the coordinator is lost, found, or not there at all. `no_place`: what the
  // coordinator said where it has none. `has_trained`: this worker was part of the training before.
  void Tell(Worker::Phase phase, std::string no_place, bool has_trained, bool has_keys);
  // Likewise: tells of each kind of loss between this worker and others when it has happened first.
  void Tell(const PeerLosses& losses);
  // At the end: of all, where there were any.
  void Summarize(const PeerLosses& losses) const;

 private:
  const std::string endpoint_;
  const std::function<void(const std::string&)> log_;
  bool joining_ = true;
  std::string no_place_;
  PeerLosses told_losses_;
  Milliseconds told_ = Now();
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SOCKETS_JOIN_LOG_H_
