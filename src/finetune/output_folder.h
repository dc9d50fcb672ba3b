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

// Writes the files (names to contents) into a folder that MakeOutputFolder made. Returns
// whether all of them were there already: a run that was broken off goes on then. Throws UserError where a file holds
// something else, unless `force`, which also removes the snapshots of the run before; EnvironmentError where the folder
// cannot be written.
bool WriteOutputFolder(const std::string& folder, const std::map<std::string, std::string>& files, bool force);

}  // namespace crema

#endif  // CREMA_FINETUNE_OUTPUT_FOLDER_H_
