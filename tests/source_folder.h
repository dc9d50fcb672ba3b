// Where the repository's files, the programs and Caffe's nets and outputs are: as compiled in, or where the environment
// says, for test programs that run on another machine than the one that built them.
#ifndef CREMA_TESTS_SOURCE_FOLDER_H_
#define CREMA_TESTS_SOURCE_FOLDER_H_

#include <cstdlib>
#include <string>

namespace crema {

inline std::string FolderFrom(const char* variable, const char* compiled_in) {
  const char* given = std::getenv(variable);
  return given && *given ? given : compiled_in;
}

inline std::string SourceFolder() { return FolderFrom("CREMA_SOURCE_DIR", CREMA_SOURCE_DIR); }
inline std::string ProgramFolder() { return FolderFrom("CREMA_BIN_DIR", CREMA_BIN_DIR); }
inline std::string CorpusFolder() { return FolderFrom("CREMA_CORPUS_DIR", CREMA_CORPUS_DIR); }

}  // namespace crema

#endif  // CREMA_TESTS_SOURCE_FOLDER_H_
