// The folder that a fine-tuning works in, which people read and edit.
#ifndef CREMA_FINETUNE_OUTPUT_FOLDER_H_
#define CREMA_FINETUNE_OUTPUT_FOLDER_H_

#include <map>
#include <string>

namespace crema {

// The snapshot_prefix of the solver in it.
std::string SnapshotPrefixIn(const std::string& folder);

// Makes it, with a folder for snapshots, where it is absent. Throws EnvironmentError.
void MakeOutputFolder(const std::string& folder);

// What a folder held before the files of a request were written into it.
struct FoundFolder {
  bool same_request = false;  // the solver of this request: a run that was broken off goes on
  std::string moved_from;     // the path that its files had; empty: this one
};

// Writes the files (names to contents) into a folder that MakeOutputFolder made. Those that are there and say the same
// stay, with comments that people wrote; paths in them become the request's: the folder's own where it was moved, and
// those of weights that have another place, as of another installation. Throws UserError where a file says something
// else, with the first line that does, unless `force`, which also removes the snapshots of the run before;
// EnvironmentError where the folder cannot be written.
FoundFolder WriteOutputFolder(const std::string& folder, const std::map<std::string, std::string>& files, bool force);

}  // namespace crema

#endif  // CREMA_FINETUNE_OUTPUT_FOLDER_H_
