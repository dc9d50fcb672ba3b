#include "distributed/sockets/inquiry.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "base/short_name.h"
#include "base/text_table.h"
#include "crema/error.h"
#include "distributed/protocol/environment.h"
#include "distributed/security/security.h"
#include "distributed/sockets/sockets.h"

namespace crema {

namespace {

std::string TableOf(const ClusterStatus& status) {
  // Nobody is late in one; its workers have scores, once a round was committed.
  const bool tournament = std::any_of(status.worker().begin(), status.worker().end(),
                                      [](const auto& worker) { return worker.has_rounds_met(); });
  std::vector<std::string> headings = {">place", "worker", "state",   ">round", ">examples", ">ex/s",
                                       ">wait",  ">comm",  ">MB out", ">MB in", ">heard"};
  headings.push_back(tournament ? ">score" : ">stale");
  headings.push_back(tournament ? ">won" : ">late");
  TextTable table(headings);
  for (const ClusterStatus::Worker& worker : status.worker()) {
    std::vector<std::string> row = {std::to_string(worker.slot()),
                                    ShortName(worker.name(), 14),
                                    worker.state(),
                                    worker.round() > 0 ? std::to_string(worker.round()) : "-",
                                    std::to_string(worker.examples()),
                                    FormatNumber(worker.examples_per_second(), "%.1f"),
                                    FormatPercent(worker.waited(), worker.present(), "%.0f%%"),
                                    FormatPercent(worker.communicated(), worker.present(), "%.0f%%"),
                                    FormatMegabytes(worker.bytes_sent()),
                                    FormatMegabytes(worker.bytes_received()),
                                    FormatNumber(worker.silent(), "%.0fs")};
    if (tournament) {
      row.push_back(worker.has_score() ? FormatNumber(worker.score(), "%.4g") : "-");
      row.push_back(std::to_string(worker.rounds_won()) + "/" + std::to_string(worker.rounds_met()));
    } else {
      row.push_back(std::to_string(worker.staleness()));
      row.push_back(std::to_string(worker.rounds_late()));
    }
    table.AddRow(std::move(row));
  }
  return table.ToString();
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
  // A coordinator that is asked to stop may end before its answer is read.
  WorkerSockets sockets(context, endpoint, std::move(keys), WorkerSockets::Unconnected::kKept);
  Outgoing question;
  question.message.mutable_inquiry()->set_request(request);
  question.message.set_sequence(Draw());
  std::optional<ClusterStatus> status;
  const Milliseconds end = Now() + timeout_ms;
  while (!status && Now() < end) {
    // A second one of the same changes nothing.
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
  std::snprintf(line, sizeof line, ": iteration %llu of %llu, round %llu, loss %.5g\n",
                static_cast<unsigned long long>(status.iteration()), static_cast<unsigned long long>(status.max_iter()),
                static_cast<unsigned long long>(status.version()), status.loss());
  std::string text = status.phase() + line;
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
  return text + TableOf(status);
}

}  // namespace crema
