// What a program is about to write: whether it may, and can, found out before the work is done.
#ifndef CREMA_BASE_OUTPUT_PATH_H_
#define CREMA_BASE_OUTPUT_PATH_H_

#include <string>
#include <vector>

namespace crema {

// Throws UserError where `output`, a file or a folder to write, is one of `inputs` or lies in one that is a folder,
// whatever links lead there: --force is not meant for what is read. Empty paths are passed over.
void RefuseOutputInInputs(const std::string& output, const std::vector<std::string>& inputs);

// Throws UserError, which names --force, where something has the name of a file or a folder to write, be it a link that
// leads nowhere.
void RefuseTaken(const std::string& output);

// All that can be known of a file to write before it is: that it is none of `inputs` and, unless it may be replaced,
// its name is not taken (UserError), and that one can be made there (EnvironmentError).
void CheckOutputFile(const std::string& output, bool replace, const std::vector<std::string>& inputs);

// Logs a warning for each file or folder that another run began to write as `path` (TemporaryNameOf).
void MentionLeftovers(const std::string& path);

}  // namespace crema

#endif  // CREMA_BASE_OUTPUT_PATH_H_
