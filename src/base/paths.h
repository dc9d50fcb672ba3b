// Parts of paths, and where the file that a user named is.
#ifndef CREMA_BASE_PATHS_H_
#define CREMA_BASE_PATHS_H_

#include <string>
#include <vector>

namespace crema {

// The part before the last '/', "." without one.
std::string DirectoryOf(const std::string& path);

// "models/lenet.caffemodel" -> "lenet.caffemodel"
std::string FileName(const std::string& path);

// "pets_lmdb//" -> "pets_lmdb", "/" stays: the name of a folder, for what is put behind it or is looked up without
// following a link.
std::string WithoutTrailingSlashes(std::string path);

// As it is put before paths: with a '/' at its end, unless it is empty.
std::string AsRoot(const std::string& folder);

// Whether the path leads to something.
bool Exists(const std::string& path);

// Whether something has this name, be it a symbolic link that leads nowhere.
bool IsTaken(const std::string& path);

// Makes the folder, and those that it is in, where it is absent. Throws EnvironmentError.
void MakeFolder(const std::string& path);

// A path as a user wrote it: as it is where it exists in the working directory, else in the first of `folders` that has
// it, else as it is.
std::string FindFile(const std::string& path, const std::vector<std::string>& folders);

}  // namespace crema

#endif  // CREMA_BASE_PATHS_H_
