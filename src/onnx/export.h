// Trained nets as files of ONNX (https://onnx.ai), which ONNX Runtime and many other programs run. Version 7 of the
// format with operator set 13: ONNX Runtime 1.6 and later.
#ifndef CREMA_ONNX_EXPORT_H_
#define CREMA_ONNX_EXPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "crema/data.pb.h"
#include "crema/net.h"

namespace crema {

// What is done to the values of images that go into an input: of `param` mean_value or mean_file, whose path is as it
// can be opened, std_value and scale.
struct OnnxTransform {
  std::string input;
  TransformationParameter param;
};

struct OnnxOptions {
  // The first extent of the first input, and of all others that have the same. Unset: whoever runs the file chooses it
  // each time, or, where the net does not allow that, as the net's file says.
  std::optional<int64_t> batch = {};
  // Shapes of inputs, instead of the file's.
  std::vector<std::pair<std::string, Shape>> shapes = {};
  // The file takes bytes, and makes of them what the net takes. Unset: it takes what the net takes.
  std::optional<OnnxTransform> transform = {};
  int level = 0;
  std::vector<std::string> stages = {};
  // Blobs; what they do not need is left out. Empty: what no layer reads.
  std::vector<std::string> outputs = {};
};

struct OnnxModel {
  struct Tensor {
    std::string name;
    std::vector<std::string> dims;  // "N" where the batch is open, "?" where an extent follows from it
  };
  std::string bytes;  // of the file
  int layers = 0, nodes = 0;
  int64_t parameters = 0;  // values of all blobs
  std::vector<Tensor> inputs, outputs;
  WeightsReport weights;
  std::vector<std::string> needed;  // of weights.fresh (NeededWeights)
  std::vector<Diagnostic> notes;    // warnings of the net, and why the batch is not open
};

// The net in its TEST phase with `weights`, layer by layer under the names of the file, BatchNorm and Scale as one. The
// same input gives the same bytes. Throws UserError naming every layer that reads data or has no form in ONNX, and
// where the file would exceed 2 GB, protobuf's limit.
OnnxModel MakeOnnxModel(const NetFile& file, const std::vector<LayerWeights>& weights, const OnnxOptions& options);

}  // namespace crema

#endif  // CREMA_ONNX_EXPORT_H_
