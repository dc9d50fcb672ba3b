// What a path that is to be read leads to: no file, one that cannot be read, or something that never ends.
#ifndef CREMA_BASE_INPUT_FILE_H_
#define CREMA_BASE_INPUT_FILE_H_

#include <string>

namespace crema {

// Whether `path` leads to a device, such as /dev/zero; a terminal, which a person ends, is none here.
bool IsDevice(const std::string& path);

// Whether `path` leads to a pipe that was made with mkfifo: it is waited for until somebody writes, whom there may
// never be. Those without a name, as of <(command) or behind /dev/stdin, have their writers.
bool IsNamedPipe(const std::string& path);

// Throws UserError where `path` is a folder, a device or a named pipe, and does not mind what cannot be looked at, for
// readers that say so themselves. what: "a file of text".
void RefuseFolderOrDevice(const std::string& path, const std::string& what);

// Throws UserError where `path` is absent (naming the working directory), a folder, a device or a named pipe,
// EnvironmentError where the system does not let it be read. kind: what was expected there ("prototxt", ".caffemodel").
void CheckReadableFile(const std::string& path, const std::string& kind);
// The same, and UserError where it is any pipe.
void CheckRegularFile(const std::string& path, const std::string& kind);

}  // namespace crema

#endif  // CREMA_BASE_INPUT_FILE_H_
