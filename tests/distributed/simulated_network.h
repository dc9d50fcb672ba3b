// Two connections between each machine and the coordinator, and one each way between any two machines: in order, and
// broken now and then.
#ifndef CREMA_TESTS_DISTRIBUTED_SIMULATED_NETWORK_H_
#define CREMA_TESTS_DISTRIBUTED_SIMULATED_NETWORK_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "distributed/protocol/outgoing.h"
#include "distributed/simulator_dice.h"

namespace crema {

enum class FlightDirection { kToWorker, kToCoordinator, kToPeer };

// A message under way.
struct Flight {
  int machine = 0;
  int from = 0;  // kToPeer: machine
  FlightDirection direction = FlightDirection::kToWorker;
  Lane lane = Lane::kControl;
  uint64_t connection = 0;
  bool copy = false;  // came once before
  std::string route;  // to the coordinator: from whom; to a peer: the sender's key
  ClusterMessage message;
  Slice slice;
};

class SimulatedNetwork {
 public:
  SimulatedNetwork(int machines, Milliseconds latency, Milliseconds jitter, double bytes_per_second, uint64_t seed);

  // When it arrives; none where it never does. Fills in the flight's connection and route, or machine and lane.
  std::optional<Milliseconds> Send(Flight& flight, const std::string& to_route, Milliseconds now);
  // From `flight.from` to `flight.machine`.
  std::optional<Milliseconds> SendToPeer(Flight& flight, Milliseconds now);
  // Whether its connection is still the one that it was sent over.
  bool Arrives(const Flight& flight) const;
  // What is on its way this way is lost.
  void Break(int machine, Lane lane, FlightDirection direction);
  void Rename(int machine, Lane lane);
  // What is on its way between this machine and other machines is lost.
  void BreakPeers(int machine) { ++peers_[static_cast<size_t>(machine)].connection; }
  // What this machine sends to other machines, or gets from them, is lost, or late, until then.
  void CutPeers(int machine, bool sends, bool gets, Milliseconds until, bool delayed);
  // Messages are lost, or late, until then.
  void Cut(int machine, Lane lane, FlightDirection direction, Milliseconds until, bool delayed);

 private:
  struct Way {
    uint64_t connection = 0;
    Milliseconds last = 0, cut_until = 0;
    bool delayed = false;
  };
  struct Link {
    std::string route;
    std::array<Way, 2> ways;
  };

  static size_t At(FlightDirection direction) { return direction == FlightDirection::kToWorker ? 0 : 1; }
  Link& LinkOf(int machine, Lane lane) { return links_[2 * static_cast<size_t>(machine) + (lane == Lane::kBulk)]; }
  const Link& LinkOf(int machine, Lane lane) const {
    return links_[2 * static_cast<size_t>(machine) + (lane == Lane::kBulk)];
  }

  const Milliseconds latency_, jitter_;
  const double bytes_per_second_;
  Dice dice_;
  struct Peer {
    uint64_t connection = 0;
    Way sends, gets;
  };
  // One behind the other, each as long as it takes on the way from `from` to `to`; the last is the coordinator.
  Milliseconds Arrival(const Flight& flight, size_t from, size_t to, Milliseconds now);

  std::vector<Link> links_;
  std::vector<Peer> peers_;
  std::unordered_map<uint64_t, Milliseconds> last_between_;  // by sender and receiver
  std::unordered_map<std::string, size_t> routes_;
  uint64_t names_ = 0;
  std::vector<double> sends_until_, receives_until_;  // by machine, the coordinator last
};

}  // namespace crema

#endif  // CREMA_TESTS_DISTRIBUTED_SIMULATED_NETWORK_H_
