// Names of a graph's values in an ONNX file, where each is written once.
#ifndef CREMA_ONNX_VALUE_NAMES_H_
#define CREMA_ONNX_VALUE_NAMES_H_

#include <string>
#include <vector>

#include "graph/graph.h"

namespace crema::onnx {

// Whether the tops of such a layer are its bottom, in TEST.
bool PassesThrough(const Node& node);
// Whether the node's tops are given by the user.
bool IsInput(const Node& node);

// One name for each value of the graph. A blob's name belongs to the last value that is written under it, or to the
// net's input of that name; the others are "blob:layer". What layers pass through keeps its name, so that nothing need
// be written for them, unless the net's outputs would lose theirs.
std::vector<std::string> NameValues(const Graph& graph);

}  // namespace crema::onnx

#endif  // CREMA_ONNX_VALUE_NAMES_H_
