// The solver's snapshot_keep: which snapshots a run wrote, and which of them may go.
//
// A .solverstate lists those before it, so that a run that was broken off anywhere, also between writing the new one
// and removing the old, still knows them. A file is removed only while it holds what the run wrote there.
#ifndef CREMA_SOLVER_SNAPSHOTS_KEPT_SNAPSHOTS_H_
#define CREMA_SOLVER_SNAPSHOTS_KEPT_SNAPSHOTS_H_

#include <deque>
#include <string>

#include "crema/solver.pb.h"
#include "solver/snapshots/snapshot.h"

namespace crema {

class KeptSnapshots {
 public:
  // keep: how many stay; 0: all.
  KeptSnapshots(std::string prefix, uint32_t keep) : prefix_(std::move(prefix)), keep_(keep) {}

  // Of the snapshot that the run goes on from; removes what the run was to remove when it was broken off. Returns as
  // Add.
  std::string Restore(const LoadedState& loaded);
  // Into the state that is to be written.
  void List(SolverState* state) const;
  // Of the pair that was written and is whole: removes what is too old. Returns what could not be removed, and why;
  // such a snapshot stays for good.
  std::string Add(int iteration, uint32_t state_crc32);

 private:
  const std::string prefix_;
  const uint32_t keep_;
  std::deque<KeptSnapshot> kept_;  // oldest first
};

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_KEPT_SNAPSHOTS_H_
