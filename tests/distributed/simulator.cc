// Time, and the workers.
#include "distributed/simulator.h"

#include <algorithm>

#include "distributed/journal/digest.h"
#include "distributed/simulator_run.h"

namespace crema {

namespace {

constexpr size_t kLogLines = 60;
constexpr uint64_t kJob = 77;

PeerAddress AddressOf(int machine) {
  PeerAddress address;
  address.set_endpoint(std::to_string(machine));
  address.set_public_key("key " + std::to_string(machine));
  return address;
}

}  // namespace

Simulation::Simulation(const SimulatorOptions& options)
    : options_(options),
      audit_(options.words, options.coordinator.stale, options.gradients, options.coordinator.tournament),
      network_(options.machines, options.latency, options.jitter, options.bytes_per_second, options.seed),
      dice_(options.seed, 2),
      machines_(static_cast<size_t>(options.machines)) {
  snapshot_.state.set_job(kJob);
  snapshot_.parameters = ParametersOf({}, options_.words);
}

void Simulation::At(Milliseconds at, What what, int machine, uint64_t token) {
  queue_.push({at, ++order_, what, machine, token});
}

void Simulation::Log(const std::string& text) {
  if (log_.size() >= kLogLines) log_.pop_front();
  log_.push_back(std::to_string(now_) + " ms: " + text);
}

SimulatorReport Simulation::Run() {
  for (int machine = 0; machine < options_.machines; ++machine) {
    At(dice_.Between(0, options_.start_spread), What::kStartWorker, machine);
  }
  At(dice_.Between(0, 2000), What::kStartCoordinator);
  for (size_t i = 0; i < options_.faults.size(); ++i) At(options_.faults[i].at, What::kFault, 0, i);
  At(options_.healed, What::kHealed);
  try {
    while (!Finished()) {
      const Event event = queue_.top();
      queue_.pop();
      now_ = event.at;
      if (!over_ && now_ > options_.healed + options_.bound) throw Violation("training hangs");
      if (over_ && now_ > std::max(report_.coordinator_ended, options_.healed) + options_.timing.orphan + 10'000) {
        throw Violation("a worker does not end");
      }
      ++report_.events;
      Handle(event);
    }
  } catch (const std::exception& error) {
    report_.violation = error.what();
  }
  report_.virtual_time = now_;
  for (const std::string& line : log_) report_.log += line + "\n";
  return report_;
}

bool Simulation::Finished() const {
  if (queue_.empty()) return true;
  if (!over_ || coordinator_) return false;
  return std::none_of(machines_.begin(), machines_.end(), [](const Machine& m) { return m.worker != nullptr; });
}

void Simulation::Handle(const Event& event) {
  Machine& machine = machines_[static_cast<size_t>(event.machine)];
  const bool of_worker = event.what == What::kWorkerTick || event.what == What::kBuilt || event.what == What::kMaking ||
                         event.what == What::kTrained;
  if (of_worker && (!machine.worker || machine.process != event.token)) return;
  if (of_worker && now_ < machine.paused_until) return At(machine.paused_until, event.what, event.machine, event.token);
  switch (event.what) {
    case What::kArrival:
      return Arrive(event);
    case What::kWorkerTick:
      if (machine.tick != now_) {
        if (machine.tick > now_) return;
        machine.tick = now_;
      }
      return TickWorker(event.machine);
    case What::kBuilt:
      machine.worker->OnBuilt(8 * options_.words + 16, options_.timing, options_.coordinator.transfer,
                              options_.coordinator.topology, AddressOf(event.machine), now_);
      return AfterWorker(event.machine);
    case What::kMaking: {
      if (!machine.task) return;
      // In the last two thirds of the task.
      const double part = static_cast<double>(now_ - machine.task_began) /
                          static_cast<double>(std::max<Milliseconds>(1, machine.task_ends - machine.task_began));
      const double made = std::clamp(1.5 * part - 0.5, 0.0, 1.0);
      MakeMore(machine, 8 * static_cast<uint64_t>(static_cast<double>(options_.words) * (1 - made)));
      return AfterWorker(event.machine);
    }
    case What::kTrained:
      if (!machine.task || now_ < machine.task_ends) return;
      EndTask(machine);
      return AfterWorker(event.machine);
    case What::kStartWorker:
      return StartWorker(event.machine);
    case What::kCoordinatorTick:
      if (!coordinator_ || event.token != process_) return;
      if (now_ < paused_until_) return At(paused_until_, event.what, 0, event.token);
      if (tick_ > now_) return;
      return WithCoordinator([&](Coordinator& coordinator) { coordinator.OnTick(now_); });
    case What::kStartCoordinator:
      return StartCoordinator();
    case What::kSnapshot:
      if (!is_writing_ || event.token != process_) return;
      is_writing_ = false;
      snapshot_ = std::move(writing_);
      return WithCoordinator([&](Coordinator& coordinator) { coordinator.Release(now_); });
    case What::kFault:
      return Apply(options_.faults[event.token]);
    case What::kHealed:
      return Heal();
  }
}

void Simulation::Send(Flight flight, const std::string& route) {
  ++report_.messages;
  const std::optional<Milliseconds> at = flight.direction == FlightDirection::kToPeer
                                             ? network_.SendToPeer(flight, now_)
                                             : network_.Send(flight, route, now_);
  if (at) Fly(std::move(flight), *at);
}

void Simulation::Fly(Flight flight, Milliseconds at) {
  uint64_t place = flights_.size();
  if (free_flights_.empty()) {
    flights_.push_back(std::move(flight));
  } else {
    place = free_flights_.back();
    free_flights_.pop_back();
    flights_[place] = std::move(flight);
  }
  At(at, What::kArrival, flights_[place].machine, place);
}

void Simulation::Arrive(const Event& event) {
  Flight& under_way = flights_[event.token];
  const bool to_worker = under_way.direction != FlightDirection::kToCoordinator;
  Machine& machine = machines_[static_cast<size_t>(under_way.machine)];
  const Milliseconds paused = to_worker ? machine.paused_until : paused_until_;
  if (network_.Arrives(under_way) && now_ < paused) return At(paused, event.what, event.machine, event.token);
  const Flight flight = std::move(under_way);
  under_way = {};
  free_flights_.push_back(event.token);
  if (!network_.Arrives(flight)) return;
  if (options_.replays > 0 && !healed_ && dice_.Below(options_.replays) == 0) {
    Flight copy = flight;
    copy.copy = true;
    if (dice_.Chance(0.5)) copy.route = "stranger";
    Fly(std::move(copy), now_ + dice_.Between(0, 2 * options_.timing.dead));
  }
  const std::span<const std::byte> bytes = flight.slice.payload ? flight.slice.bytes() : std::span<const std::byte>();
  if (to_worker) {
    if (!machine.worker) return;
    if (flight.direction == FlightDirection::kToPeer) {
      machine.worker->OnPeerMessage(flight.route, flight.message, bytes, now_);
    } else {
      machine.worker->OnMessage(flight.message, bytes, now_);
    }
    AfterWorker(flight.machine);
  } else if (coordinator_) {
    WithCoordinator(
        [&](Coordinator& coordinator) { coordinator.OnMessage(flight.route, flight.message, bytes, now_); });
  }
}

void Simulation::Restart(int machine, Milliseconds after) {
  machines_[static_cast<size_t>(machine)].restarts = true;
  At(now_ + after, What::kStartWorker, machine);
}

void Simulation::StartWorker(int index) {
  Machine& machine = machines_[static_cast<size_t>(index)];
  machine.restarts = machine.ended = machine.leaving = false;
  if (machine.worker || over_) return;
  ++machine.process;
  machine.began = now_;
  machine.place.reset();
  machine.paused_until = 0;
  machine.task.reset();
  machine.making = nullptr;
  machine.epoch = machine.version = machine.digest = 0;
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
    network_.Break(index, lane, FlightDirection::kToWorker);
    network_.Rename(index, lane);
  }
  network_.BreakPeers(index);
  WorkerOptions options;
  options.process = (static_cast<uint64_t>(index) + 1) << 20 | machine.process;
  options.name = std::to_string(index);
  options.timing = options_.timing;
  options.transfer = options_.coordinator.transfer;
  machine.math = std::make_unique<SimulatedWorkerMath>(options_.words, kind(), options_.backward ? 3 : 1);
  machine.worker = std::make_unique<Worker>(options, *machine.math, now_);
  machine.tick = -1;
  AfterWorker(index);
}

void Simulation::TickWorker(int index) {
  Machine& machine = machines_[static_cast<size_t>(index)];
  machine.tick = -1;
  if (machine.task) {
    if (!machine.worker->Wanted(machine.task->lease)) {
      EndTask(machine);
    } else {
      const Milliseconds takes = std::max<Milliseconds>(1, machine.task_ends - machine.task_began);
      machine.worker->OnProgress(machine.task->steps.count * static_cast<uint64_t>(now_ - machine.task_began) /
                                 static_cast<uint64_t>(takes));
    }
  }
  machine.worker->OnTick(now_);
  AfterWorker(index);
}

void Simulation::BeginTask(int index, TrainTask task) {
  Machine& machine = machines_[static_cast<size_t>(index)];
  double takes = static_cast<double>(options_.step) * static_cast<double>(task.steps.count);
  takes *= 1 + options_.spread * (2 * dice_.Uniform() - 1);
  if (options_.stragglers > 0 && dice_.Below(options_.stragglers) == 0) takes *= 10;
  machine.fails = !healed_ && options_.failures > 0 && dice_.Below(options_.failures) == 0;
  ++report_.tasks;
  machine.task = std::move(task);
  machine.task_began = now_;
  machine.task_ends = now_ + 1 + static_cast<Milliseconds>(takes);
  if (options_.backward) {
    machine.making = std::make_shared<Bytes>(8 * options_.words, std::byte{0xEE});
    MakeMore(machine, 8 * options_.words);
    constexpr int kParts = 5;
    for (int part = 1; part <= kParts; ++part) {
      At(now_ + static_cast<Milliseconds>(takes * (1 + 2.0 * part / kParts) / 3), What::kMaking, index,
         machine.process);
    }
  }
  At(machine.task_ends, What::kTrained, index, machine.process);
}

// That the task is to give.
Payload Simulation::ValuesOf(const Machine& machine) const {
  const size_t words = options_.words * (machine.task->with_history ? 2 : 1);
  if (machine.fails || !IsFinite(machine.task->state)) return NotFinite(words);
  Tally tally = options_.gradients ? Tally{} : TallyOf(machine.task->state);
  tally.Add(machine.task->steps);
  return ParametersOf(tally, words);
}

void Simulation::MakeMore(Machine& machine, uint64_t there_from) {
  const auto from = static_cast<ptrdiff_t>(there_from);
  const Payload values = ValuesOf(machine);
  std::copy(values->begin() + from, values->end(), machine.making->begin() + from);
  machine.worker->OnMaking(machine.task->lease, machine.making, machine.task->steps.count * 32, there_from, now_);
}

void Simulation::EndTask(Machine& machine) {
  TrainResult result;
  result.lease = machine.task->lease;
  if (machine.fails && dice_.Chance(0.5)) {
    result.failure = "the loss is nan";
  } else {
    result.values = ValuesOf(machine);
    if (IsFinite(result.values)) {
      // Some are equal.
      result.score = static_cast<double>(TallyOf(result.values).sum % 16);
      audit_.OnMade(machine.task->steps, result.values);
    }
    if (machine.making) {
      *machine.making = *result.values;
      result.values = machine.making;
    }
  }
  machine.making = nullptr;
  result.examples = machine.task->steps.count * 32;
  result.loss = 1;
  result.seconds = static_cast<double>(now_ - machine.task_began) / 1000;
  machine.task.reset();
  machine.worker->OnTrained(std::move(result), now_);
}

// What a worker's process does when its part of the protocol has said something.
void Simulation::AfterWorker(int index) {
  Machine& machine = machines_[static_cast<size_t>(index)];
  Worker& worker = *machine.worker;
  if (worker.TakeReconnect()) {
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      network_.Break(index, lane, FlightDirection::kToWorker);
      network_.Break(index, lane, FlightDirection::kToCoordinator);
      network_.Rename(index, lane);
    }
  }
  for (Outgoing& outgoing : worker.TakeOutgoing()) {
    audit_.OnEpoch(outgoing.message.epoch(), &machine.epoch);
    Flight flight;
    flight.machine = index;
    flight.direction = FlightDirection::kToCoordinator;
    flight.lane = outgoing.lane;
    flight.message = std::move(outgoing.message);
    flight.slice = std::move(outgoing.slice);
    if (flight.lane == Lane::kPeer) {
      flight.direction = FlightDirection::kToPeer;
      flight.from = index;
      flight.machine = std::stoi(outgoing.route);
      flight.route = AddressOf(index).public_key();
    }
    Send(std::move(flight));
  }
  worker.TakePeers();
  if (worker.state() && (worker.version() != machine.version || worker.digest() != machine.digest)) {
    audit_.OnState(worker.version(), worker.digest(), worker.state());
    machine.version = worker.version();
    machine.digest = worker.digest();
  }
  if (worker.TakeWelcome()) At(now_ + options_.build, What::kBuilt, index, machine.process);
  if (worker.ended()) {
    Log("worker " + worker.end_reason() + " (" + std::to_string(index) + " ends)");
    if (worker.failed()) CheckTold(index);
    const bool again = !over_ && !worker.completed() && !machine.leaving;
    machine.worker.reset();
    machine.task.reset();
    machine.ended = !machine.leaving;
    if (again && !machine.restarts) Restart(index, 3000);
    return;
  }
  if (std::optional<TrainTask> task = worker.TakeTask()) {
    report_.ahead += task->goes_on;
    report_.apart += options_.coordinator.tournament && task->version == audit_.version() &&
                     !audit_.Counts(task->version, worker.digest());
    if (!task->goes_on) audit_.OnState(task->version, DigestOf(*task->state), task->state);
    BeginTask(index, *std::move(task));
  }
  if (machine.tick < 0 || worker.deadline() < machine.tick) {
    machine.tick = std::max(now_ + 1, worker.deadline());
    At(machine.tick, What::kWorkerTick, index, machine.process);
  }
}

SimulatorReport Simulate(const SimulatorOptions& options) { return Simulation(options).Run(); }

}  // namespace crema
