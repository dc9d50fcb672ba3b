// The file of the best parameters, which may be there of an earlier run.
#ifndef CREMA_SOLVER_SNAPSHOTS_BEST_FILE_H_
#define CREMA_SOLVER_SNAPSHOTS_BEST_FILE_H_

#include <string>

#include "solver/snapshots/snapshot.h"

namespace crema {

// Nothing is written over that is not of this run, or of the one that it goes on with: it is set aside first.
class BestFile {
 public:
  BestFile(std::string prefix, SnapshotFormat format);

  const std::string& path() const { return path_; }
  bool is_own() const { return own_; }
  // Of a run that goes on with a snapshot: whether the file is of the run that wrote that.
  void set_own(bool own) { own_ = own; }

  // Before it is written. Returns the name that an earlier run's now has; empty without one. Throws EnvironmentError.
  std::string MakeOwn();
  // Where nothing came of the run: removes what it wrote (`written`), and gives what was set aside its name back.
  // Returns whether that was so. Should it go on after all, what is there is an earlier run's again.
  bool GiveBack(bool written);

 private:
  std::string prefix_;
  SnapshotFormat format_;
  std::string path_;
  bool own_ = false;
  std::string earlier_;  // where an earlier run's is now; empty: there was none
};

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_BEST_FILE_H_
