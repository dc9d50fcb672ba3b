// A vocabulary that is made of the texts that are converted.
#ifndef CREMA_DATA_CONVERT_NEW_VOCABULARY_H_
#define CREMA_DATA_CONVERT_NEW_VOCABULARY_H_

#include <optional>
#include <string>

#include "base/atomic_file.h"
#include "data/databases/dataset_writer.h"
#include "data/files/vocabulary.h"

namespace crema {

// Its file has its name when the databases get theirs: another text would be read with one that stayed alone.
class NewVocabulary {
 public:
  // Writes it, before all that takes long. Throws EnvironmentError where that fails, or a file has the name.
  NewVocabulary(const std::string& path, const Vocabulary& vocabulary);

  void CommitWith(DatasetWriter* writer);

 private:
  std::string path_;
  std::optional<AtomicFile> file_;
};

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_NEW_VOCABULARY_H_
