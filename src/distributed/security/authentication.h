// CURVE on ZeroMQ sockets, and who gets through: the handler of RFC 27/ZAP.
//
// A coordinator: one Authenticator for its context, ConfigureServer for each socket before it binds, SelfTest when it
// is bound. A worker: ConfigureClient for each socket before it connects.
#ifndef CREMA_DISTRIBUTED_SECURITY_AUTHENTICATION_H_
#define CREMA_DISTRIBUTED_SECURITY_AUTHENTICATION_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <zmq.hpp>

#include "distributed/security/keys.h"
#include "distributed/security/known_keys.h"

namespace crema {

// Makes connections to `socket` need a key that the Authenticator of its context knows; without one running, nobody
// gets through. Binds that came before are not affected. Throws EnvironmentError where this libzmq cannot be trusted.
void ConfigureServer(zmq::socket_t& socket, const KeyPair& keys);

// Makes connections of `socket` prove `keys`, and end where the other side does not prove `server_public_key`. Connects
// that came before are not affected. Throws EnvironmentError as above.
void ConfigureClient(zmq::socket_t& socket, const KeyPair& keys, const std::string& server_public_key);

// The name of the key (see KnownKeys) by which the sender of a received message was let in; empty without keys.
std::string SenderOf(zmq::message_t& message);

// Lets those connect whose public keys are known at that moment: connections that stand are not cut when their key is
// removed. There may be one for each context, which must outlive it.
class Authenticator {
 public:
  // Called on a thread of its own with one line of text; must not throw.
  using Log = std::function<void(const std::string& message)>;

  // `keys` is not null. Of refused connections the first is logged, and then, at most every `log_interval_ms`, how many
  // more there were.
  Authenticator(zmq::context_t& context, std::shared_ptr<KnownKeys> keys, Log log, int log_interval_ms = 10000);
  // Follows a folder. Throws UserError where it or a file in it is no good; after that such files are logged, and let
  // nobody in.
  Authenticator(zmq::context_t& context, const std::string& authorized_keys_dir, Log log, int log_interval_ms = 10000);
  ~Authenticator();
  Authenticator(const Authenticator&) = delete;
  Authenticator& operator=(const Authenticator&) = delete;

  // Says that keys became known: lets those in that wait for it. Any thread may.
  void Recheck();

  // Nobody gets through any more.
  void Stop();

  // Connects to a socket of ConfigureServer, at what its last_endpoint says, as a stranger would: with a key that
  // nobody knows, and with none. Throws EnvironmentError where either gets through, or nothing answers within
  // `timeout_ms`.
  void SelfTest(const std::string& endpoint, const std::string& server_public_key, int timeout_ms = 5000);

  // Connections so far, without those of SelfTest; those that wait count as refused. Any thread may ask.
  uint64_t accepted() const { return accepted_; }
  uint64_t refused() const { return refused_; }

 private:
  struct Request;
  struct Verdict;
  struct Waiting;

  void Run(zmq::socket_t socket);
  void OnRequest(zmq::socket_t& socket);
  // Answers those that wait and whose key became known, or that waited too long; returns the milliseconds to wait for
  // that, -1 where nobody waits.
  int AnswerWaiting(zmq::socket_t& socket);
  void Answer(zmq::socket_t& socket, const std::string& client, const std::string& id, const Verdict& verdict);
  Verdict Judge(const Request& request, bool again);
  void Refused(const std::string& message);
  // Logs what was held back if it is time; returns the milliseconds to wait for that, -1 where nothing is held back.
  int Flush();

  const std::shared_ptr<KnownKeys> keys_;
  const Log log_;
  const int64_t log_interval_ms_;
  int64_t next_log_ms_ = 0;
  uint64_t held_back_ = 0;
  std::string last_held_back_;
  std::atomic<uint64_t> accepted_{0}, refused_{0};
  std::mutex mutex_;
  std::string stranger_;          // of SelfTest, under mutex_
  std::vector<Waiting> waiting_;  // the longest first
  std::atomic<bool> stop_{false};
  int wake_ = -1;  // an eventfd
  std::thread thread_;
};

}  // namespace crema

#endif  // CREMA_DISTRIBUTED_SECURITY_AUTHENTICATION_H_
