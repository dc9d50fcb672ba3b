// Ten rounds of four machines where nothing is left to chance but the network.
#ifndef CREMA_TESTS_DISTRIBUTED_SIMULATED_ROUNDS_H_
#define CREMA_TESTS_DISTRIBUTED_SIMULATED_ROUNDS_H_

#include <gtest/gtest.h>

#include "distributed/simulator.h"

namespace crema::testing_distributed {

inline SimulatorOptions TenRounds() {
  SimulatorOptions options;
  options.machines = 4;
  options.coordinator.job = 77;
  options.coordinator.expected_workers = 4;
  options.coordinator.min_workers = 2;
  options.coordinator.local_steps = 10;
  options.coordinator.max_iter = 100;
  options.coordinator.most_push_bytes = 1000;
  options.coordinator.transfer.chunk_bytes = 16;
  options.coordinator.transfer.patience = 2000;
  options.step = 200;  // a round takes about 2 s
  options.bound = 100'000;
  return options;
}

inline SimulatorReport WithFault(SimulatorOptions options, Fault fault) {
  options.healed = fault.at + fault.lasts + 1;
  options.faults.push_back(fault);
  SimulatorReport report = Simulate(options);
  EXPECT_EQ(report.violation, "") << report.log;
  return report;
}

}  // namespace crema::testing_distributed

#endif  // CREMA_TESTS_DISTRIBUTED_SIMULATED_ROUNDS_H_
