// A folder for small files of a test.
#ifndef CREMA_TESTS_SOLVER_WRITABLE_FOLDER_H_
#define CREMA_TESTS_SOLVER_WRITABLE_FOLDER_H_

#include <string>

#include "files.h"
#include "temporary_folder.h"

namespace crema {

// Where small files are written, too.
class WritableFolder : public TemporaryFolder {
 public:
  std::string Write(const std::string& name, const std::string& text) const {
    WriteFile(*this / name, text);
    return *this / name;
  }
};

}  // namespace crema

#endif  // CREMA_TESTS_SOLVER_WRITABLE_FOLDER_H_
