// Tells a file that is not there from one that cannot be read.
#ifndef CREMA_SCHEMA_FILE_ERROR_H_
#define CREMA_SCHEMA_FILE_ERROR_H_

#include <string>

namespace crema {

// Throws UserError where `path` is absent (naming the working directory) or a directory, EnvironmentError where the
// system does not let it be read. kind: what was expected there ("prototxt", ".caffemodel").
void CheckReadableFile(const std::string& path, const std::string& kind);
// The same, and UserError where it is a pipe or device, which nobody may ever write to.
void CheckRegularFile(const std::string& path, const std::string& kind);

}  // namespace crema

#endif  // CREMA_SCHEMA_FILE_ERROR_H_
