// Several files of weights as one.
#ifndef CREMA_SCHEMA_WEIGHTS_FILES_H_
#define CREMA_SCHEMA_WEIGHTS_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "crema/files.h"

namespace crema {

class WeightsFiles {
 public:
  // Of a layer that several files have, that of the last counts.
  void Read(const std::string& path);
  const std::vector<LayerWeights>& layers() const { return layers_; }
  // The first file that has no layer with one of these names; empty where each has one.
  std::string FindUnused(const std::vector<std::string>& used_layers) const;

 private:
  std::vector<LayerWeights> layers_;
  std::vector<std::pair<std::string, std::vector<std::string>>> files_;  // paths, and the names of their layers
};

// What is to be said of a file that gives nothing to `net` ("the train net", or its file).
std::string DescribeUnused(const std::string& net);

}  // namespace crema

#endif  // CREMA_SCHEMA_WEIGHTS_FILES_H_
