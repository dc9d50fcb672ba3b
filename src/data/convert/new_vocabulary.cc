#include "data/convert/new_vocabulary.h"

#include <filesystem>
#include <system_error>

#include "base/output_path.h"

namespace crema {

NewVocabulary::NewVocabulary(const std::string& path, const Vocabulary& vocabulary) : path_(path) {
  MentionLeftovers(path);
  file_.emplace(path, AtomicFileOptions{.replace = false}).Write(vocabulary.Text());
}

void NewVocabulary::CommitWith(DatasetWriter* writer) {
  bool named = false;
  try {
    writer->Commit([&] {
      file_->Commit();
      named = true;
    });
  } catch (...) {
    std::error_code ignored;
    if (named) std::filesystem::remove(path_, ignored);
    throw;
  }
}

}  // namespace crema
