// Caffe's nets, solvers and weights in the corpus.
#ifndef CREMA_TESTS_CORPUS_FILES_H_
#define CREMA_TESTS_CORPUS_FILES_H_

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "source_folder.h"

namespace crema {

// Paths of the files of these extensions below a folder of the corpus, sorted; none where there is no corpus.
inline std::vector<std::string> CorpusFiles(const std::string& folder,
                                            const std::set<std::string>& extensions = {".prototxt"}) {
  std::vector<std::string> paths;
  const std::filesystem::path root = std::filesystem::path(CorpusFolder()) / folder;
  if (!std::filesystem::exists(root)) return paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    const bool wanted = entry.is_regular_file() && extensions.contains(entry.path().extension().string());
    if (wanted) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace crema

#endif  // CREMA_TESTS_CORPUS_FILES_H_
