// The case files tests/layers/<Type>.prototxt.
#ifndef CREMA_TESTS_LAYERS_CASE_FILES_H_
#define CREMA_TESTS_LAYERS_CASE_FILES_H_

#include <string>
#include <vector>

#include "layers/layer_case.pb.h"

namespace crema::testing {

struct CaseFile {
  std::string path, type;
  std::vector<LayerCase> cases;
  std::string problem;  // what is wrong with the file; empty when all is well
};

// All of them, sorted by type; cases that name no type have the file's.
std::vector<CaseFile> ReadCaseFiles();
std::string CaseFilePath(const std::string& type);

}  // namespace crema::testing

#endif  // CREMA_TESTS_LAYERS_CASE_FILES_H_
