// Where a program writes: not to what it reads, and perhaps beside what a killed one left.
#ifndef CREMA_DATA_OUTPUT_PATH_H_
#define CREMA_DATA_OUTPUT_PATH_H_

#include <string>
#include <vector>

namespace crema {

// Throws UserError where `output`, a file or a folder to write, is one of `inputs` or lies in one that is a folder,
// whatever links lead there: --force is not meant for what is read. Empty paths are passed over.
void RefuseOutputInInputs(const std::string& output, const std::vector<std::string>& inputs);

// Logs a warning for each file or folder that another run began to write as `path` (TemporaryNameOf).
void MentionLeftovers(const std::string& path);

}  // namespace crema

#endif  // CREMA_DATA_OUTPUT_PATH_H_
