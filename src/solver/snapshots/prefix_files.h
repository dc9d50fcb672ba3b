// The files of a snapshot_prefix: which snapshots are there, what killed runs left, and who writes them now.
#ifndef CREMA_SOLVER_SNAPSHOTS_PREFIX_FILES_H_
#define CREMA_SOLVER_SNAPSHOTS_PREFIX_FILES_H_

#include <filesystem>
#include <string>
#include <vector>

#include "solver/snapshots/snapshot.h"

namespace crema {

struct StateFile {
  int iteration = 0;
  std::string path;
  std::filesystem::file_time_type written;
};

// Every .solverstate and .solverstate.h5, by their names: the highest iteration first, of one iteration that in
// `preferred` first. None where the folder cannot be read.
std::vector<StateFile> FindStates(const std::string& prefix, SnapshotFormat preferred);

// Renames PREFIX_best.caffemodel, or its HDF5 form, to PREFIX_best_earlier.caffemodel, PREFIX_best_earlier_2.caffemodel
// or the first such name that is free. Returns the new path; empty where there is no such file. Throws
// EnvironmentError.
std::string SetBestAside(const std::string& prefix, SnapshotFormat format);

// Held by the one process that writes the files of a prefix, as a lock on PREFIX.lock, which the system takes back when
// the process ends, however it does. Where the file cannot be opened, or the file system has no locks, nothing is
// held.
class PrefixLock {
 public:
  // Throws EnvironmentError, with the process, where another one, or this one, holds it; UserError where what has its
  // name is no file of its own. Where files cannot be locked a warning says so.
  explicit PrefixLock(std::string prefix);
  ~PrefixLock();
  PrefixLock(const PrefixLock&) = delete;
  PrefixLock& operator=(const PrefixLock&) = delete;

  // Removes the files that a killed process had not finished writing. Returns how many.
  int RemoveUnfinished() const;

 private:
  std::string path() const { return prefix_ + ".lock"; }

  std::string prefix_;
  int fd_ = -1;
};

}  // namespace crema

#endif  // CREMA_SOLVER_SNAPSHOTS_PREFIX_FILES_H_
