#include "distributed/simulated_network.h"

#include <algorithm>
#include <cmath>

namespace crema {

SimulatedNetwork::SimulatedNetwork(int machines, Milliseconds latency, Milliseconds jitter, double bytes_per_second,
                                   uint64_t seed)
    : latency_(latency),
      jitter_(jitter),
      bytes_per_second_(bytes_per_second),
      dice_(seed, 1),
      links_(2 * static_cast<size_t>(machines)),
      peers_(static_cast<size_t>(machines)),
      sends_until_(static_cast<size_t>(machines) + 1),
      receives_until_(static_cast<size_t>(machines) + 1) {
  for (int machine = 0; machine < machines; ++machine) {
    Rename(machine, Lane::kControl);
    Rename(machine, Lane::kBulk);
  }
}

void SimulatedNetwork::Rename(int machine, Lane lane) {
  Link& link = LinkOf(machine, lane);
  routes_.erase(link.route);
  link.route = std::to_string(++names_);
  routes_[link.route] = 2 * static_cast<size_t>(machine) + (lane == Lane::kBulk);
}

void SimulatedNetwork::Break(int machine, Lane lane, FlightDirection direction) {
  Way& way = LinkOf(machine, lane).ways[At(direction)];
  ++way.connection;
  way.last = 0;
}

void SimulatedNetwork::Cut(int machine, Lane lane, FlightDirection direction, Milliseconds until, bool delayed) {
  Way& way = LinkOf(machine, lane).ways[At(direction)];
  way.cut_until = until;
  way.delayed = delayed;
}

std::optional<Milliseconds> SimulatedNetwork::Send(Flight& flight, const std::string& to_route, Milliseconds now) {
  if (flight.direction == FlightDirection::kToWorker) {
    const auto found = routes_.find(to_route);
    if (found == routes_.end()) return std::nullopt;
    flight.machine = static_cast<int>(found->second / 2);
    flight.lane = found->second % 2 == 1 ? Lane::kBulk : Lane::kControl;
  }
  Link& link = LinkOf(flight.machine, flight.lane);
  if (flight.direction == FlightDirection::kToCoordinator) flight.route = link.route;
  Way& way = link.ways[At(flight.direction)];
  flight.connection = way.connection;
  const size_t here = sends_until_.size() - 1, there = static_cast<size_t>(flight.machine);
  const bool down = flight.direction == FlightDirection::kToWorker;
  Milliseconds arrives = Arrival(flight, down ? here : there, down ? there : here, now);
  if (now < way.cut_until) {
    if (!way.delayed) return std::nullopt;
    arrives = std::max(arrives, way.cut_until + latency_);
  }
  way.last = std::max(way.last, arrives);
  return way.last;
}

void SimulatedNetwork::CutPeers(int machine, bool sends, bool gets, Milliseconds until, bool delayed) {
  Peer& peer = peers_[static_cast<size_t>(machine)];
  if (sends) peer.sends.cut_until = until, peer.sends.delayed = delayed;
  if (gets) peer.gets.cut_until = until, peer.gets.delayed = delayed;
}

std::optional<Milliseconds> SimulatedNetwork::SendToPeer(Flight& flight, Milliseconds now) {
  const size_t from = static_cast<size_t>(flight.from), to = static_cast<size_t>(flight.machine);
  flight.connection = peers_[from].connection + peers_[to].connection;
  Milliseconds arrives = Arrival(flight, from, to, now);
  for (const Way* way : {&peers_[from].sends, &peers_[to].gets}) {
    if (now >= way->cut_until) continue;
    if (!way->delayed) return std::nullopt;
    arrives = std::max(arrives, way->cut_until + latency_);
  }
  Milliseconds& last = last_between_[from * peers_.size() + to];
  last = std::max(last, arrives);
  return last;
}

Milliseconds SimulatedNetwork::Arrival(const Flight& flight, size_t from, size_t to, Milliseconds now) {
  double at = static_cast<double>(now);
  if (bytes_per_second_ > 0) {
    const double bytes = static_cast<double>(flight.message.ByteSizeLong() + flight.slice.count) + 60;
    const double takes = 1000 * bytes / bytes_per_second_;
    at = sends_until_[from] = std::max(at, sends_until_[from]) + takes;
    at = receives_until_[to] = std::max(at, receives_until_[to] + takes);
  }
  return static_cast<Milliseconds>(std::ceil(at)) + latency_ + dice_.Between(0, jitter_);
}

bool SimulatedNetwork::Arrives(const Flight& flight) const {
  if (flight.copy) return true;
  if (flight.direction == FlightDirection::kToPeer) {
    const size_t from = static_cast<size_t>(flight.from), to = static_cast<size_t>(flight.machine);
    return peers_[from].connection + peers_[to].connection == flight.connection;
  }
  return LinkOf(flight.machine, flight.lane).ways[At(flight.direction)].connection == flight.connection;
}

}  // namespace crema
