// Tiny trainings whose ranks mpirun starts.
#ifndef CREMA_TESTS_MPI_MPIRUN_H_
#define CREMA_TESTS_MPI_MPIRUN_H_

#include <gtest/gtest.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/program.h"
#include "tools/tiny_training.h"

namespace crema::testing_tools {

// Why ranks cannot be started here; empty: they can.
std::string WhyNoRanks();

// Of Open MPI's mpirun, 5 of 5.0.7; 0: there is none.
int MajorOfMpirun();

// The processes that a process started, in the order of their numbers.
std::vector<pid_t> ChildrenOf(pid_t parent);

// One rank, or several alike, with a flag of its own, in a folder of its own, or with a variable, NAME=VALUE.
struct Ranks {
  int count = 1;
  std::vector<std::string> flags = {};
  std::string folder = {};
  std::string variable = {};
};

class Mpirun : public ::testing::Test {
 protected:
  void SetUp() override;

  // Writes the training, without layers that draw at random: ranks draw other numbers than one process does.
  static void Write(const ScratchFolder& folder, TinyTraining training = {});
  // The command for these ranks, each with --engine=MPI; `more`: flags of all, `mpirun`: of mpirun. Ranks that differ
  // find out by their numbers who they are: the mpirun 5.0.7 of Debian 13 crashes on command lines with a colon.
  static std::vector<std::string> Command(const std::vector<Ranks>& ranks, const std::vector<std::string>& more = {},
                                          const std::vector<std::string>& mpirun = {});
  std::unique_ptr<Running> Start(const std::vector<Ranks>& ranks, const std::vector<std::string>& more = {},
                                 const std::vector<std::string>& mpirun = {}) const;
  Finished Run(const std::vector<Ranks>& ranks, const std::vector<std::string>& more = {}) const;
  // Without mpirun.
  Finished RunAlone(const std::vector<std::string>& flags = {}) const;
  // The bytes of the model of an iteration.
  std::string Model(int iteration) const;
  bool HasState(int iteration) const;
  // Iteration of the newest snapshot; -1: there is none.
  int NewestState() const;
  void RemoveSnapshots() const;

  ScratchFolder folder_;
};

}  // namespace crema::testing_tools

#endif  // CREMA_TESTS_MPI_MPIRUN_H_
