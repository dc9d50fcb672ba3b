// What goes wrong.
#include <algorithm>

#include "distributed/simulator_run.h"

namespace crema {

void Simulation::KillWorker(int index, Milliseconds back) {
  Machine& machine = machines_[static_cast<size_t>(index)];
  machine.worker.reset();
  machine.task.reset();
  machine.ended = false;
  // What it had sent may still arrive.
  const bool lost = dice_.Chance(0.5);
  for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
    network_.Break(index, lane, FlightDirection::kToWorker);
    if (lost) network_.Break(index, lane, FlightDirection::kToCoordinator);
  }
  if (back > 0 && !machine.restarts) Restart(index, back);
}

void Simulation::KillCoordinator(Milliseconds back) {
  Log("the coordinator is killed");
  coordinator_.reset();
  crash_ = Fault::kNow;
  is_writing_ = false;
  const bool lost = dice_.Chance(0.5);
  for (int machine = 0; machine < options_.machines; ++machine) {
    for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
      network_.Break(machine, lane, FlightDirection::kToCoordinator);
      if (lost) network_.Break(machine, lane, FlightDirection::kToWorker);
      if (options_.new_routes) network_.Rename(machine, lane);
    }
  }
  At(now_ + std::max<Milliseconds>(1, back), What::kStartCoordinator);
}

void Simulation::Apply(const Fault& fault) {
  const Milliseconds until = now_ + fault.lasts;
  const int end = std::min(fault.first + fault.count, options_.machines);
  Log("fault " + std::to_string(static_cast<int>(fault.kind)) + " of machines " + std::to_string(fault.first) + " to " +
      std::to_string(end - 1) + " for " + std::to_string(fault.lasts) + " ms, detail " + std::to_string(fault.detail));
  switch (fault.kind) {
    case Fault::Kind::kKillWorkers:
    case Fault::Kind::kPauseWorkers:
    case Fault::Kind::kBreakLinks:
    case Fault::Kind::kCut:
    case Fault::Kind::kLeave:
    case Fault::Kind::kHang:
    case Fault::Kind::kSplit:
      break;
    case Fault::Kind::kKillCoordinator:
      if (!coordinator_) return;
      disturbed_ = std::max(disturbed_, until);
      if (fault.detail == Fault::kNow) return KillCoordinator(fault.lasts);
      crash_ = fault.detail;
      crash_back_ = fault.lasts;
      return;
    case Fault::Kind::kPauseCoordinator:
      if (coordinator_ && now_ >= paused_until_) paused_since_ = now_;
      if (coordinator_) paused_until_ = std::max(paused_until_, until);
      disturbed_ = std::max(disturbed_, until);
      return;
    case Fault::Kind::kJournalFails:
      journal_fails_until_ = std::max(journal_fails_until_, until);
      disturbed_ = std::max(disturbed_, until);
      return;
    case Fault::Kind::kDrain:
    case Fault::Kind::kStop:
      return WithCoordinator([&](Coordinator& coordinator) {
        if (fault.kind == Fault::Kind::kDrain) return coordinator.Drain("somebody wants it", now_);
        coordinator.Stop("somebody wants it", now_);
      });
  }
  for (int index = fault.first; index < end; ++index) {
    Machine& machine = machines_[static_cast<size_t>(index)];
    machine.disturbed = std::max(machine.disturbed, until);
    if (fault.kind != Fault::Kind::kBreakLinks) machine.unsteady = std::max(machine.unsteady, until);
    if (fault.kind == Fault::Kind::kKillWorkers) {
      KillWorker(index, fault.lasts);
    } else if (fault.kind == Fault::Kind::kPauseWorkers) {
      if (!machine.worker) continue;
      machine.paused_until = std::max(machine.paused_until, until);
      if (machine.task) {
        machine.task_ends += fault.lasts;
        At(machine.task_ends, What::kTrained, index, machine.process);
      }
    } else if (fault.kind == Fault::Kind::kHang) {
      if (!machine.worker || !machine.task) continue;
      machine.task_ends += fault.lasts;
      At(machine.task_ends, What::kTrained, index, machine.process);
    } else if (fault.kind == Fault::Kind::kSplit) {
      network_.CutPeers(index, true, true, until, fault.detail != 0);
    } else if (fault.kind == Fault::Kind::kLeave) {
      if (!machine.worker || now_ < machine.paused_until) continue;
      machine.leaving = true;
      machine.worker->Leave("its machine is needed", now_);
      AfterWorker(index);
      if (fault.lasts > 0 && !machine.restarts) Restart(index, fault.lasts);
    } else {
      if (fault.kind == Fault::Kind::kBreakLinks) {
        if (fault.detail & 2) network_.BreakPeers(index);
      } else {
        network_.CutPeers(index, fault.detail & 2, fault.detail & 1, until, (fault.detail & 4) != 0);
      }
      for (const Lane lane : {Lane::kControl, Lane::kBulk}) {
        const bool bulk = lane == Lane::kBulk;
        if (fault.kind == Fault::Kind::kBreakLinks) {
          if (!(fault.detail & (bulk ? 2 : 1))) continue;
          network_.Break(index, lane, FlightDirection::kToWorker);
          network_.Break(index, lane, FlightDirection::kToCoordinator);
          if (options_.new_routes) network_.Rename(index, lane);
          continue;
        }
        if ((fault.detail & 8) && !bulk) continue;
        const bool delayed = (fault.detail & 4) != 0;
        if (fault.detail & 1) network_.Cut(index, lane, FlightDirection::kToWorker, until, delayed);
        if (fault.detail & 2) network_.Cut(index, lane, FlightDirection::kToCoordinator, until, delayed);
      }
    }
  }
}

void Simulation::Heal() {
  healed_ = true;
  crash_ = Fault::kNow;
  if (over_) return;
  if (!coordinator_) At(now_ + 1000, What::kStartCoordinator);
  int running = 0;
  for (const Machine& machine : machines_) running += machine.worker || machine.restarts;
  for (size_t i = 0; i < machines_.size() && running < options_.coordinator.min_workers; ++i) {
    if (machines_[i].worker || machines_[i].restarts) continue;
    Restart(static_cast<int>(i), 1000);
    ++running;
  }
}

}  // namespace crema
