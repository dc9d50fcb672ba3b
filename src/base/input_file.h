// What a path that is to be read leads to: no file, one that cannot be read, or something that never ends.
#ifndef CREMA_BASE_INPUT_FILE_H_
#define CREMA_BASE_INPUT_FILE_H_

#include <string>

namespace crema {

// Whether `path` leads to a device, such as /dev/zero; a terminal, which a person ends, is none here.
bool IsDevice(const std::string& path);

// Throws UserError where `path` is a folder or a device, and does not mind what cannot be looked at, for readers that
// say so themselves. Pipes pass, such as <(command). what: "a file of text".
void RefuseFolderOrDevice(const std::string& path, const std::string& what);

// Throws UserError where `path` is absent (naming the working directory), a folder or a device, EnvironmentError where
// the system does not let it be read. kind: what was expected there ("prototxt", ".caffemodel").
void CheckReadableFile(const std::string& path, const std::string& kind);
// The same, and UserError where it is a pipe, which nobody may ever write to.
void CheckRegularFile(const std::string& path, const std::string& kind);

}  // namespace crema

#endif  // CREMA_BASE_INPUT_FILE_H_
