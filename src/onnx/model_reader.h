// A file of ONNX as a message, checked as far as that goes without knowing its operators.
#ifndef CREMA_ONNX_MODEL_READER_H_
#define CREMA_ONNX_MODEL_READER_H_

#include <string>
#include <vector>

#include "onnx/model.pb.h"

namespace crema::onnx {

constexpr int64_t kOldestOperatorSet = 7, kNewestOperatorSet = 24;

// Throws UserError where the file is absent, no model, of a version that is not known, or its graph is none: a node
// reads what no node before it makes, or two make one value. EnvironmentError where it cannot be read.
ModelProto ReadModelFile(const std::string& path);

// Of the standard's operators.
int64_t OperatorSetOf(const ModelProto& model);

// For each node whether an output of the graph depends on it.
std::vector<bool> NeededNodes(const GraphProto& graph);

// "node "conv1" (Conv)".
std::string Describe(const NodeProto& node);

}  // namespace crema::onnx

#endif  // CREMA_ONNX_MODEL_READER_H_
