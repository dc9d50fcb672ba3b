// The folder that relative paths begin in, which may be removed and made again while a program runs.
#ifndef CREMA_BASE_WORKING_DIRECTORY_H_
#define CREMA_BASE_WORKING_DIRECTORY_H_

#include <string>

namespace crema {

// Its absolute path; empty where it is gone.
std::string WorkingDirectory();

// Where the working directory is gone: into the folder of this absolute path, if there is one again.
void ReturnToFolder(const std::string& folder);

}  // namespace crema

#endif  // CREMA_BASE_WORKING_DIRECTORY_H_
