#include "distributed/inquiry.h"

#include <cstdio>
#include <optional>

#include "crema/error.h"
#include "distributed/environment.h"
#include "distributed/security.h"
#include "distributed/sockets.h"

namespace crema {

ClusterStatus Inquire(const std::string& endpoint, Inquiry::Request request,
                      const DistributedParameter::Security& security, int timeout_ms) {
  zmq::context_t context;
  std::optional<WorkerSockets::Keys> keys;
  if (CheckSecurity(endpoint, security, false) == Protection::kKeys) {
    keys =
        WorkerSockets::Keys{ReadKeyPair(security.secret_key_file()), ReadPublicKey(security.server_public_key_file())};
  }
  WorkerSockets sockets(context, endpoint, std::move(keys));
  Outgoing question;
  question.message.mutable_inquiry()->set_request(request);
  std::optional<ClusterStatus> status;
  const Milliseconds end = Now() + timeout_ms;
  while (!status && Now() < end) {
    // Dropped while there is no connection yet. A second one of the same changes nothing.
    sockets.Send(question);
    sockets.Receive(200, [&](const std::string&, const ClusterMessage& message, std::span<const std::byte>) {
      if (message.has_status()) status = message.status();
    });
  }
  if (!status) {
    throw EnvironmentError("no coordinator answers at " + endpoint + " within " + std::to_string(timeout_ms / 1000) +
                           " s: is it running, is the address right, and are the keys?");
  }
  return *status;
}

std::string TextOf(const ClusterStatus& status) {
  char line[400];
  std::snprintf(line, sizeof line,
                "%s: iteration %llu of %llu, round %llu, loss %.5g; coordinator start %llu, generation %llu, %llu "
                "messages dropped\n",
                status.phase().c_str(), static_cast<unsigned long long>(status.iteration()),
                static_cast<unsigned long long>(status.max_iter()), static_cast<unsigned long long>(status.version()),
                status.loss(), static_cast<unsigned long long>(status.epoch()),
                static_cast<unsigned long long>(status.generation()),
                static_cast<unsigned long long>(status.dropped_messages()));
  std::string text = line;
  std::snprintf(line, sizeof line, "%5s  %-28s %-9s %12s %11s %9s %10s %10s %7s %5s %7s\n", "place", "worker", "state",
                "examples", "examples/s", "waited s", "MB sent", "MB got", "rounds", "late", "silent");
  text += line;
  for (const ClusterStatus::Worker& worker : status.worker()) {
    std::snprintf(line, sizeof line, "%5u  %-28s %-9s %12llu %11.1f %9.1f %10.1f %10.1f %7llu %5llu %6.1fs\n",
                  worker.slot(), worker.name().c_str(), worker.state().c_str(),
                  static_cast<unsigned long long>(worker.examples()), worker.examples_per_second(), worker.waited(),
                  static_cast<double>(worker.bytes_sent()) / 1e6, static_cast<double>(worker.bytes_received()) / 1e6,
                  static_cast<unsigned long long>(worker.rounds()),
                  static_cast<unsigned long long>(worker.rounds_late()), worker.silent());
    text += line;
  }
  return text;
}

}  // namespace crema
