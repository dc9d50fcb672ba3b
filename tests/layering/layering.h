// Reads the #include lines of a source tree and finds those that its layering forbids.
#ifndef CREMA_LAYERING_LAYERING_H_
#define CREMA_LAYERING_LAYERING_H_

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace crema::layering {

// Component -> the components it may include, itself and indirect ones among them.
using Edges = std::map<std::string, std::set<std::string>>;

// Reads the crema_component(name USES ...) lines of src/CMakeLists.txt, the one table of allowed edges.
Edges ReadEdges(const std::filesystem::path& cmake_file);

struct Findings {
  std::vector<std::string> errors;    // "src/ops/matrices/gemm.h:12: ..."
  std::vector<std::string> warnings;  // sources that grew too long
  int files = 0, includes = 0;        // how much was read
};

// Checks every C++ and CUDA source below src/, include/, tools/ and data_tools/ of `root`.
Findings CheckTree(const std::filesystem::path& root);

}  // namespace crema::layering

#endif  // CREMA_LAYERING_LAYERING_H_
