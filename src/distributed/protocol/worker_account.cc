#include "distributed/protocol/worker_account.h"

#include <algorithm>
#include <utility>

namespace crema {

void WorkerAccount::Begin(Milliseconds now) {
  times_.began = now;
  times_.trained = times_.exchange = times_.delivered = 0;
}

void WorkerAccount::OnParametersSent(Milliseconds now) {
  times_.parameters_sent = now;
  times_.parameters_received = 0;
}

void WorkerAccount::OnParametersReceived(Milliseconds now) {
  if (times_.parameters_sent == 0) return;
  times_.parameters_received = now;
  communicated_ += now - times_.parameters_sent;
}

void WorkerAccount::OnTrained(double seconds, Milliseconds now) {
  if (times_.trained != 0) return;
  times_.trained = now;
  times_.train_seconds = seconds;
  if (ahead_since_ == 0) return;
  // Until it could not go on further ahead it did not wait.
  const Milliseconds began = now - static_cast<Milliseconds>(seconds * 1000);
  waited_ += std::max<Milliseconds>(0, began - std::exchange(ahead_since_, 0));
}

void WorkerAccount::OnExchange(Milliseconds now) {
  times_.exchange = now;
  times_.delivered = 0;
}

WorkerInRound WorkerAccount::Commit(uint64_t examples, uint64_t staleness, bool trains_ahead, uint64_t bytes_sent,
                                    uint64_t bytes_received, Milliseconds now) {
  examples_ += examples;
  trained_ += times_.train_seconds;
  ++rounds_;
  const Milliseconds trained = times_.trained;
  const Milliseconds delivered = std::max(times_.delivered, trained);
  const Milliseconds sent = times_.exchange > trained ? times_.exchange : trained;
  communicated_ += std::max<Milliseconds>(0, delivered - sent);
  if (trains_ahead) {
    ahead_since_ = trained;
  } else {
    waited_ += std::max<Milliseconds>(0, sent - trained) + std::max<Milliseconds>(0, now - delivered);
    ahead_since_ = 0;
  }
  WorkerInRound times = Close(bytes_sent, bytes_received);
  times.examples = examples;
  times.staleness = staleness;
  times.trains_ahead = trains_ahead;
  return times;
}

void WorkerAccount::OnMeeting(double score, bool met, bool won) {
  score_ = score;
  rounds_met_ += met;
  rounds_won_ += won;
}

WorkerInRound WorkerAccount::Miss(bool late, uint64_t bytes_sent, uint64_t bytes_received) {
  rounds_late_ += late;
  WorkerInRound times = Close(bytes_sent, bytes_received);
  times.late = late;
  times.dropped = !late;
  return times;
}

WorkerInRound WorkerAccount::Close(uint64_t bytes_sent, uint64_t bytes_received) {
  WorkerInRound times = std::exchange(times_, {});
  times.bytes_sent = bytes_sent - std::exchange(bytes_sent_, bytes_sent);
  times.bytes_received = bytes_received - std::exchange(bytes_received_, bytes_received);
  return times;
}

}  // namespace crema
