#include "distributed/security/authentication.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "crema/error.h"
#include "distributed/protocol/environment.h"
#include "distributed/security/authorized_keys.h"
#include "distributed/security/self_test.h"
#include "distributed/sockets/library.h"
#include "distributed/sockets/signals_blocked.h"

namespace crema {

namespace {

constexpr char kHandler[] = "inproc://zeromq.zap.01";
constexpr char kDomain[] = "crema";
constexpr char kVersion[] = "1.0";
constexpr size_t kKeyBytes = 32;
// ZMQ_ZAP_ENFORCE_DOMAIN, which every libzmq since 4.3.0 knows but whose name zmq.h keeps among its drafts.
constexpr int kZapEnforceDomain = 93;
// Longer than sockets wait for the end of a handshake.
constexpr int64_t kMostWaitMs = 15'000;
constexpr size_t kMostWaiting = 1000;
constexpr size_t kFixedFrames = 6;  // version, request id, domain, address, routing id, mechanism

std::string Z85Of(const std::string& bytes) {
  char text[kKeyCharacters + 1];
  CREMA_CHECK(zmq_z85_encode(text, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()) != nullptr);
  return text;
}

std::shared_ptr<KnownKeys> FollowedFolder(const std::string& folder) {
  CheckLibrary();
  CheckAuthorizedKeys(folder);
  auto keys = std::make_shared<AuthorizedKeys>(folder);
  keys->Refresh();
  return keys;
}

}  // namespace

struct Authenticator::Request {
  std::string id, domain, address, mechanism;
  std::vector<std::string> credentials;
};

struct Authenticator::Waiting {
  std::string client;  // of this handler's socket
  Request request;
  int64_t until;
};

struct Authenticator::Verdict {
  const char* status = "400";  // 200: in, 300: not now, 400: out
  std::string text;
  std::string user_id = {};
  bool wait = false;  // or perhaps 200, soon
};

void ConfigureServer(zmq::socket_t& socket, const KeyPair& keys) {
  CheckLibrary();
  socket.set(zmq::sockopt::curve_server, true);
  socket.set(zmq::sockopt::curve_secretkey, keys.secret_key.text());
  // Either alone lets everybody in while no handler runs; the second without the first even while one does.
  socket.set(zmq::sockopt::zap_domain, kDomain);
  const int enforce = 1;
  if (zmq_setsockopt(socket.handle(), kZapEnforceDomain, &enforce, sizeof(enforce)) != 0) {
    throw EnvironmentError(
        "this libzmq does not know ZMQ_ZAP_ENFORCE_DOMAIN, without which it may let strangers in; install libzmq 4.3.4 "
        "as your system ships it");
  }
}

void ConfigureClient(zmq::socket_t& socket, const KeyPair& keys, const std::string& server_public_key) {
  CheckLibrary();
  socket.set(zmq::sockopt::curve_serverkey, server_public_key.c_str());
  socket.set(zmq::sockopt::curve_publickey, keys.public_key.c_str());
  socket.set(zmq::sockopt::curve_secretkey, keys.secret_key.text());
}

std::string SenderOf(zmq::message_t& message) {
  const char* name = zmq_msg_gets(message.handle(), "User-Id");
  return name ? name : "";
}

Authenticator::Authenticator(zmq::context_t& context, std::shared_ptr<KnownKeys> keys, Log log, int log_interval_ms)
    : keys_(std::move(keys)), log_(std::move(log)), log_interval_ms_(log_interval_ms) {
  CheckLibrary();
  zmq::socket_t socket(context, zmq::socket_type::router);
  socket.set(zmq::sockopt::linger, 0);
  socket.bind(kHandler);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_ < 0) throw EnvironmentError(std::string("cannot make an event: ") + std::strerror(errno));
  const SignalsBlocked blocked;
  thread_ = std::thread([this, moved = std::move(socket)]() mutable { Run(std::move(moved)); });
}

Authenticator::Authenticator(zmq::context_t& context, const std::string& authorized_keys_dir, Log log,
                             int log_interval_ms)
    : Authenticator(context, FollowedFolder(authorized_keys_dir), std::move(log), log_interval_ms) {}

Authenticator::~Authenticator() {
  Stop();
  close(wake_);
}

void Authenticator::Stop() {
  if (!thread_.joinable()) return;
  stop_ = true;
  Recheck();
  thread_.join();
}

void Authenticator::Recheck() { CREMA_CHECK(eventfd_write(wake_, 1) == 0) << std::strerror(errno); }

void Authenticator::SelfTest(const std::string& endpoint, const std::string& server_public_key, int timeout_ms) {
  const KeyPair stranger = MakeKeyPair();
  {
    const std::lock_guard lock(mutex_);
    stranger_ = stranger.public_key;
  }
  CheckStrangersStayOut(endpoint, server_public_key, stranger, timeout_ms);
}

void Authenticator::Run(zmq::socket_t socket) {
  while (true) {
    zmq::pollitem_t items[] = {{socket.handle(), 0, ZMQ_POLLIN, 0}, {nullptr, wake_, ZMQ_POLLIN, 0}};
    try {
      const int flush = Flush(), waiting = AnswerWaiting(socket);
      const int wait = flush < 0 || waiting < 0 ? std::max(flush, waiting) : std::min(flush, waiting);
      zmq::poll(items, 2, std::chrono::milliseconds(wait));
      eventfd_t ignored;
      if (items[1].revents) eventfd_read(wake_, &ignored);
      if (stop_) return;
      if (items[0].revents) OnRequest(socket);
    } catch (const zmq::error_t& error) {
      if (error.num() == EINTR) continue;
      // Nobody gets through from now on, as there is no handler.
      if (error.num() != ETERM) log_(std::string("lets nobody in any more: ") + error.what());
      return;
    }
  }
}

void Authenticator::OnRequest(zmq::socket_t& socket) {
  std::vector<std::string> frames;
  zmq::message_t frame;
  do {
    if (!socket.recv(frame)) return;
    frames.push_back(frame.to_string());
  } while (frame.more());
  // A request has its client and an empty frame before it.
  if (frames.size() < 2 || !frames[1].empty()) return;
  const std::string client = frames[0];
  frames.erase(frames.begin(), frames.begin() + 2);

  Verdict verdict{.text = "malformed request"};
  Request request;
  if (frames.size() > 1) request.id = frames[1];
  if (frames.size() >= kFixedFrames && frames[0] == kVersion) {
    request.domain = frames[2];
    request.address = frames[3];
    request.mechanism = frames[5];
    request.credentials.assign(frames.begin() + kFixedFrames, frames.end());
    verdict = Judge(request, false);
  }
  if (!verdict.wait) {
    Answer(socket, client, request.id, verdict);
    return;
  }
  waiting_.push_back({client, request, Now() + kMostWaitMs});
  if (waiting_.size() > kMostWaiting) waiting_.front().until = 0;
}

int Authenticator::AnswerWaiting(zmq::socket_t& socket) {
  const int64_t now = Now();
  std::erase_if(waiting_, [&](const Waiting& waiting) {
    const Verdict verdict = Judge(waiting.request, true);
    const bool over = !verdict.wait || waiting.until <= now;
    if (over) Answer(socket, waiting.client, waiting.request.id, verdict);
    return over;
  });
  return waiting_.empty() ? -1 : static_cast<int>(waiting_.front().until - now);
}

void Authenticator::Answer(zmq::socket_t& socket, const std::string& client, const std::string& id,
                           const Verdict& verdict) {
  const std::string reply[] = {client, "", kVersion, id, verdict.status, verdict.text, verdict.user_id, ""};
  for (const std::string& part : reply) {
    socket.send(zmq::buffer(part), &part == std::end(reply) - 1 ? zmq::send_flags::none : zmq::send_flags::sndmore);
  }
}

Authenticator::Verdict Authenticator::Judge(const Request& request, bool again) {
  const std::string from = "refused a connection from " + request.address;
  if (request.domain != kDomain) {
    Refused(from + " to a socket of another domain");
    return {.text = "unknown domain"};
  }
  if (request.mechanism != "CURVE" || request.credentials.size() != 1 || request.credentials[0].size() != kKeyBytes) {
    Refused(from + " without a key");
    return {.text = "a key is needed"};
  }
  const std::string key = Z85Of(request.credentials[0]);
  for (const Diagnostic& problem : keys_->Refresh()) log_(problem.ToString());
  if (const std::optional<std::string> name = keys_->NameOf(key)) {
    ++accepted_;
    return {.status = "200", .text = "OK", .user_id = *name};
  }
  bool is_self_test;
  {
    const std::lock_guard lock(mutex_);
    is_self_test = key == stranger_;
  }
  if (is_self_test) return {.text = "unknown key"};
  const std::string remedy = keys_->Remedy(key);
  if (remedy.empty()) {
    if (!again) ++refused_;
    return {.status = "300", .text = "unknown key", .wait = true};
  }
  Refused(from + " with an unknown key; to let it in, " + remedy);
  return {.text = "unknown key"};
}

void Authenticator::Refused(const std::string& message) {
  ++refused_;
  ++held_back_;
  last_held_back_ = message;
  Flush();
}

int Authenticator::Flush() {
  if (held_back_ == 0) return -1;
  const int64_t now = Now();
  if (now < next_log_ms_) return static_cast<int>(next_log_ms_ - now);
  const std::string others = held_back_ > 1 ? " (and " + std::to_string(held_back_ - 1) + " more before it)" : "";
  log_(last_held_back_ + others);
  held_back_ = 0;
  next_log_ms_ = now + log_interval_ms_;
  return -1;
}

}  // namespace crema
