#include "distributed/inquiry.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/short_name.h"
#include "crema/error.h"
#include "distributed/environment.h"
#include "distributed/security.h"
#include "distributed/sockets.h"

namespace crema {

namespace {

double Percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string TableOf(const ClusterStatus& status) {
  char line[400];
  std::snprintf(line, sizeof line, "%5s %-14s %-9s %6s %5s %8s %7s %5s %5s %7s %7s %4s %5s\n", "place", "worker",
                "state", "round", "stale", "examples", "ex/s", "wait", "comm", "MB out", "MB in", "late", "heard");
  std::string text = line;
  for (const ClusterStatus::Worker& worker : status.worker()) {
    std::snprintf(line, sizeof line, "%5u %-14s %-9s %6s %5llu %8llu %7.1f %4.0f%% %4.0f%% %7.1f %7.1f %4llu %4.0fs\n",
                  worker.slot(), ShortName(worker.name(), 14).c_str(), worker.state().c_str(),
                  worker.round() > 0 ? std::to_string(worker.round()).c_str() : "-",
                  static_cast<unsigned long long>(worker.staleness()),
                  static_cast<unsigned long long>(worker.examples()), worker.examples_per_second(),
                  Percent(worker.waited(), worker.present()), Percent(worker.communicated(), worker.present()),
                  static_cast<double>(worker.bytes_sent()) / 1e6, static_cast<double>(worker.bytes_received()) / 1e6,
                  static_cast<unsigned long long>(worker.rounds_late()), worker.silent());
    text += line;
  }
  return text;
}

// Where nobody is late. Workers have scores, once a round was committed.
std::string TableOfTournament(const ClusterStatus& status) {
  char line[400];
  std::snprintf(line, sizeof line, "%5s %-11s %-8s %6s %8s %7s %5s %5s %6s %5s %5s %8s %9s\n", "place", "worker",
                "state", "round", "examples", "ex/s", "wait", "comm", "MB out", "MB in", "heard", "score", "won");
  std::string text = line;
  for (const ClusterStatus::Worker& worker : status.worker()) {
    char score[40] = "-";
    if (worker.has_score()) std::snprintf(score, sizeof score, "%.4g", worker.score());
    const std::string won = std::to_string(worker.rounds_won()) + "/" + std::to_string(worker.rounds_met());
    std::snprintf(line, sizeof line, "%5u %-11s %-8s %6s %8llu %7.1f %4.0f%% %4.0f%% %6.1f %5.1f %4.0fs %8s %9s\n",
                  worker.slot(), ShortName(worker.name(), 11).c_str(), worker.state().c_str(),
                  worker.round() > 0 ? std::to_string(worker.round()).c_str() : "-",
                  static_cast<unsigned long long>(worker.examples()), worker.examples_per_second(),
                  Percent(worker.waited(), worker.present()), Percent(worker.communicated(), worker.present()),
                  static_cast<double>(worker.bytes_sent()) / 1e6, static_cast<double>(worker.bytes_received()) / 1e6,
                  worker.silent(), score, won.c_str());
    text += line;
  }
  return text;
}

}  // namespace

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
  std::snprintf(line, sizeof line, "%s: iteration %llu of %llu, round %llu, loss %.5g\n", status.phase().c_str(),
                static_cast<unsigned long long>(status.iteration()), static_cast<unsigned long long>(status.max_iter()),
                static_cast<unsigned long long>(status.version()), status.loss());
  std::string text = line;
  std::snprintf(line, sizeof line, "topology %s, %.1f rounds a minute", status.topology().c_str(),
                status.rounds_per_minute());
  text += line;
  if (status.contributions() > 0) {
    text += "; the last of " + std::to_string(status.contributions()) +
            (status.contributions() == 1 ? " worker, " : " workers, ") +
            (status.among_workers() ? "values went among them" : "through the coordinator");
  }
  std::snprintf(line, sizeof line, "\ncoordinator start %llu, generation %llu, %llu messages dropped\n",
                static_cast<unsigned long long>(status.epoch()), static_cast<unsigned long long>(status.generation()),
                static_cast<unsigned long long>(status.dropped_messages()));
  text += line;
  const bool tournament = std::any_of(status.worker().begin(), status.worker().end(),
                                      [](const ClusterStatus::Worker& worker) { return worker.has_rounds_met(); });
  return text + (tournament ? TableOfTournament(status) : TableOf(status));
}

}  // namespace crema
