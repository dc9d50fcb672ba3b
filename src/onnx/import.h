// Files of ONNX (https://onnx.ai) as nets of crema: what other programs trained, to be run and trained on here. Version
// 3 of the format and later, operator sets 7 to 24.
#ifndef CREMA_ONNX_IMPORT_H_
#define CREMA_ONNX_IMPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crema/tensor.h"
#include "import/imported_net.h"

namespace crema {

struct OnnxImportOptions {
  // The first extent of inputs that leave it open; unset: 1.
  std::optional<int64_t> batch = {};
  // Shapes of inputs, by the file's names, instead of the file's.
  std::vector<std::pair<std::string, Shape>> shapes = {};
  // Puts a Softmax behind the net's only output.
  bool softmax = false;
  // Inputs of three channels, which a model takes red first, take them blue first, as images are read here.
  bool swap_channels = false;
};

// The model at `path`, with its external data. In TEST the net computes what the model does. Layers have the names of
// the weights they hold, where those end in ".weight", else of the nodes; blobs have those of layers, outputs of the
// net the file's. Throws UserError that names the file and every node that has no form here, EnvironmentError where a
// file cannot be read.
ImportedNet ImportOnnxModel(const std::string& path, const OnnxImportOptions& options);

}  // namespace crema

#endif  // CREMA_ONNX_IMPORT_H_
