// Random trainings with random faults.
#include <algorithm>

#include "distributed/simulator.h"
#include "distributed/simulator_dice.h"

namespace crema {

namespace {

Fault RandomFault(Dice& dice, const SimulatorOptions& options, Milliseconds horizon) {
  using Kind = Fault::Kind;
  // How often, in the order of Kind.
  constexpr int kWeights[] = {20, 12, 16, 5, 16, 16, 5, 5, 1, 1, 4};
  Fault fault;
  int left = static_cast<int>(dice.Below(101));
  int kind = 0;
  while (kind < 10 && left >= kWeights[kind]) left -= kWeights[kind++];
  fault.kind = static_cast<Kind>(kind);
  fault.at = dice.Between(0, horizon);
  fault.lasts = dice.Between(100, dice.Chance(0.5) ? options.timing.dead : 3 * options.timing.dead);
  if (fault.kind == Kind::kHang) fault.lasts = dice.Between(1000, 2 * options.coordinator.stall);
  // Most often one, now and then some or all.
  if (dice.Chance(0.7)) {
    fault.first = static_cast<int>(dice.Below(static_cast<uint64_t>(options.machines)));
  } else {
    fault.first = static_cast<int>(dice.Below(static_cast<uint64_t>(options.machines)));
    fault.count = static_cast<int>(dice.Between(1, options.machines));
    if (dice.Chance(0.2)) fault.first = 0, fault.count = options.machines;
  }
  if (kind == static_cast<int>(Kind::kKillCoordinator)) fault.detail = static_cast<int>(dice.Below(4));
  if (kind == static_cast<int>(Kind::kBreakLinks)) fault.detail = static_cast<int>(dice.Between(1, 3));
  if (kind == static_cast<int>(Kind::kCut)) {
    fault.detail = static_cast<int>(dice.Between(1, 3)) | (dice.Chance(0.5) ? 4 : 0) | (dice.Chance(0.3) ? 8 : 0);
  }
  const bool never = fault.kind == Kind::kKillWorkers || fault.kind == Kind::kLeave;
  if (never && dice.Chance(0.2)) fault.lasts = 0;
  return fault;
}

}  // namespace

SimulatorOptions RandomSchedule(uint64_t seed, int machines) {
  Dice dice(seed, 3);
  SimulatorOptions options;
  options.seed = seed;
  options.machines = machines;
  const bool many = machines > 12;
  CoordinatorOptions& c = options.coordinator;
  c.job = 77;
  c.expected_workers = static_cast<int>(dice.Between(1, machines));
  c.min_workers = static_cast<int>(dice.Between(1, c.expected_workers));
  c.max_workers = dice.Chance(0.1) ? static_cast<int>(dice.Between(c.expected_workers, machines)) : 2 * machines;
  c.local_steps = static_cast<int>(dice.Between(1, many ? 4 : 8));
  const auto rounds = static_cast<uint64_t>(dice.Between(2, machines > 100 ? 4 : many ? 8 : 20));
  c.max_iter = rounds * static_cast<uint64_t>(c.local_steps);
  c.max_iter -= dice.Below(static_cast<uint64_t>(c.local_steps));
  if (dice.Chance(0.3)) c.stops.push_back(static_cast<uint64_t>(dice.Between(c.local_steps, 3 * c.local_steps)));
  c.history_always = dice.Chance(0.2);
  if (dice.Chance(0.3)) c.history_every = static_cast<uint64_t>(dice.Between(1, 20));
  c.heartbeat = dice.Between(500, 1000);
  c.dead = c.heartbeat * dice.Between(5, 10);
  c.stall = dice.Between(30'000, 60'000);
  c.join_timeout = dice.Between(30'000, 90'000);
  c.recovery = 5 * c.dead;
  if (dice.Chance(0.4)) c.straggler_factor = 1.2 + 2 * dice.Uniform();
  c.staleness = dice.Below(4);
  c.drop_nonfinite = dice.Chance(0.8);
  options.words = static_cast<size_t>(dice.Between(4, 10));
  c.transfer.chunk_bytes = static_cast<uint64_t>(dice.Between(13, 40));
  c.transfer.credits = static_cast<uint64_t>(dice.Between(1, 4));
  c.transfer.patience = dice.Between(1000, 5000);
  c.most_push_bytes = 16 * options.words;
  options.timing.heartbeat = c.heartbeat;
  options.timing.dead = c.dead;
  options.timing.orphan = dice.Between(60'000, 200'000);
  options.start_spread = dice.Between(0, 5000);
  options.latency = dice.Between(0, 20);
  options.jitter = dice.Between(0, 40);
  if (dice.Chance(0.15)) options.bytes_per_second = 5000.0 * machines * (1 + 10 * dice.Uniform());
  if (dice.Chance(0.3)) options.replays = static_cast<uint64_t>(dice.Between(10, 1000));
  options.new_routes = dice.Chance(0.3);
  options.step = dice.Between(10, 400);
  options.build = dice.Between(0, 3000);
  options.spread = dice.Uniform();
  if (dice.Chance(0.25)) options.stragglers = static_cast<uint64_t>(dice.Between(5, 50));
  if (dice.Chance(0.15)) options.failures = static_cast<uint64_t>(dice.Between(10, 200));
  if (dice.Chance(0.7)) options.snapshot_every = static_cast<uint64_t>(dice.Between(1, 5));
  options.snapshot_takes = dice.Between(0, 3000);

  const Milliseconds round = c.local_steps * options.step + 4 * (options.latency + options.jitter) + 50;
  const Milliseconds horizon = 4000 + options.build + static_cast<Milliseconds>(rounds) * round * 3 / 2;
  const uint64_t faults = dice.Below(many ? 5 : 8);
  for (uint64_t i = 0; i < faults; ++i) options.faults.push_back(RandomFault(dice, options, horizon));
  // Drawn apart, so that seeds mean what they meant.
  Dice more(seed, 4);
  if (machines <= 40 && more.Chance(0.5)) {
    c.topology = DistributedParameter::SHARDED;
    c.keep_rounds = options.snapshot_every > 0 ? options.snapshot_every : static_cast<uint64_t>(more.Between(1, 50));
    if (more.Chance(0.3)) {
      Fault split = RandomFault(more, options, horizon);
      split.kind = Fault::Kind::kSplit;
      split.detail = more.Chance(0.5);
      options.faults.push_back(split);
    }
  }
  c.train_ahead = more.Chance(0.3);
  Dice stale(seed, 5);
  c.stale = machines <= 40 && c.topology == DistributedParameter::STAR && stale.Chance(0.5);
  if (c.stale) {
    c.train_ahead = c.history_always = false;
    c.history_every = 0;
    c.straggler_factor = 0;
    if (stale.Chance(0.3)) c.staleness = UINT32_MAX;
    // Each worker's result is a round.
    options.snapshot_every *= static_cast<uint64_t>(stale.Between(1, machines));
  }
  Dice gradients(seed, 6);
  options.gradients = !c.stale && gradients.Chance(0.3);
  if (options.gradients) {
    c.max_iter = rounds;
    c.local_steps = 1;
    for (uint64_t& stop : c.stops) stop = static_cast<uint64_t>(gradients.Between(1, 3));
    c.train_ahead = c.history_always = false;
    c.history_every = 0;
    options.words = std::max<size_t>(options.words, 5);
    c.most_push_bytes = 16 * options.words;
  }
  Dice tournament(seed, 7);
  c.tournament = machines <= 40 && c.topology == DistributedParameter::STAR && !c.stale && !options.gradients &&
                 tournament.Chance(0.4);
  if (c.tournament) {
    c.higher_wins = tournament.Chance(0.5);
    c.seed = seed;
    c.train_ahead = c.history_always = false;
    c.history_every = 0;
    c.straggler_factor = 0;
  }
  Dice backward(seed, 8);
  options.backward = options.gradients && c.topology == DistributedParameter::SHARDED && backward.Chance(0.6);
  if (options.backward) c.straggler_factor = 0;
  for (const Fault& fault : options.faults) options.healed = std::max(options.healed, fault.at + fault.lasts + 1);
  // Every round as slow as its slowest task, and steps that come back in pieces.
  const double slowest =
      (1 + options.spread) * (options.stragglers > 0 ? 10 : 1) * (options.bytes_per_second > 0 ? 3 : 1);
  const Milliseconds each = static_cast<Milliseconds>(slowest * static_cast<double>(round)) + 8 * options.latency +
                            8 * options.jitter + 2 * c.heartbeat + options.snapshot_takes;
  // What is under way between workers when they are healed is given up.
  if (c.topology != DistributedParameter::STAR) options.bound += 4 * c.dead + c.recovery;
  // Each of several commits may wait for a snapshot.
  if (c.stale) options.bound += rounds * machines * options.snapshot_takes;
  options.bound += 2 * c.join_timeout + c.recovery + 2 * c.dead + options.build + 15'000 +
                   static_cast<Milliseconds>(rounds) * (c.stops.empty() ? 1 : 2) * 3 / 2 * each;
  return options;
}

}  // namespace crema
