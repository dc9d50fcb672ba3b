// What a path that is to be read leads to: no file, one that cannot be read, or something that never ends.
#ifndef CREMA_BASE_INPUT_FILE_H_
#define CREMA_BASE_INPUT_FILE_H_

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// "is a folder" where `path` leads to one, or to a device or a pipe that was made with mkfifo, which may never end;
// else nothing. Terminals and pipes without a name have somebody who ends them.
std::string OtherThanFile(const std::string& path);

// For the end of a message that `path` does not exist: the working directory, where the path begins there, or
// the placeholder in it; else nothing.
std::string RelativePathNote(const std::string& path);

// Throws UserError where `path` is absent (naming the working directory), a folder, a device or a named pipe, without a
// place of its own, so that a layer gives it the one of its source. What else cannot be looked at it does not mind, for
// readers that say so themselves. what: "a file of text".
void ExpectFile(const std::string& path, const std::string& what);

// Throws UserError where `path` is absent (naming the working directory), a folder, a device or a named pipe,
// EnvironmentError where the system does not let it be read. kind: what was expected there ("prototxt", ".caffemodel").
void CheckReadableFile(const std::string& path, const std::string& kind);
// The same, and UserError where it is any pipe.
void CheckRegularFile(const std::string& path, const std::string& kind);

// Throws EnvironmentError: `path` cannot be read, and why. error: as in errno.
[[noreturn]] void FailToRead(const std::string& path, const std::string& reason);
[[noreturn]] void FailToRead(const std::string& path, int error);
// What kept the last read from a stream of the file.
[[noreturn]] void FailToRead(const std::string& path, const std::istream& file);

// Hands out a file's bytes from begin to end, in parts of any size, until `visit` returns false. Throws
// EnvironmentError where it cannot be read.
void VisitFile(const std::string& path, const std::function<bool(std::string_view)>& visit);
// All of them at once.
std::vector<uint8_t> ReadFileBytes(const std::string& path);
std::string ReadFileText(const std::string& path);

}  // namespace crema

#endif  // CREMA_BASE_INPUT_FILE_H_
