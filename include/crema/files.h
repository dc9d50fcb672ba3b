// Reading the files users write and the weights that training leaves behind. Formats: Caffe's prototxt (text) and
// .caffemodel (binary NetParameter, or HDF5). Old V0 and V1 nets are upgraded while reading.
#ifndef CREMA_FILES_H_
#define CREMA_FILES_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "crema/error.h"
#include "crema/net.pb.h"
#include "crema/solver.pb.h"
#include "crema/tensor.h"

namespace crema {

// Remembers where each field of a parsed text file stood. Immutable after parsing; thread-safe.
class SourceMap {
 public:
  virtual ~SourceMap() = default;
  // Place of layer(index) of the upgraded net, or of a field below it ("convolution_param.kernel_size", "bottom").
  // Falls back to the nearest enclosing place that is known.
  virtual Location Layer(int index, std::string_view field = {}) const = 0;
  // Place of a top-level field of the file ("base_lr", "test_iter").
  virtual Location Field(std::string_view field) const = 0;
};

struct NetFile {
  NetParameter net;  // upgraded: only `layer`, never `layers` or `input`
  std::shared_ptr<const SourceMap> source;
  std::vector<Diagnostic> warnings;
};

struct SolverFile {
  SolverParameter solver;
  std::shared_ptr<const SourceMap> source;
  std::vector<Diagnostic> warnings;
};

// All throw UserError holding every mistake that could be found, EnvironmentError where a file cannot be read.
NetFile ReadNetFile(const std::string& path);
// `name` stands for the file in messages.
NetFile ParseNet(const std::string& text, const std::string& name);
// A net that is already a message (net_param in a solver); `source` then gives the places of the file it came from.
NetFile MakeNetFile(NetParameter net, Location where);
SolverFile ReadSolverFile(const std::string& path);
SolverFile ParseSolver(const std::string& text, const std::string& name);

// The blobs of one layer of a weights file, by what they hold: fields that forks use differently are never looked at.
struct LayerWeights {
  struct Blob {
    Shape shape;
    std::vector<float> data;
    // Written before BlobProto had `shape`: four axes (num, channels, height, width), of the first C3D five (a length
    // before the height); leading ones are padding.
    bool legacy_shape = false;
  };
  std::string name;
  std::string type;  // empty where the file does not say it (HDF5)
  std::vector<Blob> blobs;
};

// Layers without blobs are left out. A .solverstate, other or damaged file is a UserError that says what it is.
std::vector<LayerWeights> ReadWeights(const std::string& path);
// The same of the bytes of a .caffemodel in memory, such as Net::ToProto().SerializeAsString(); `name` stands for the
// file in messages. Not of HDF5.
std::vector<LayerWeights> ParseWeights(std::string_view bytes, const std::string& name);

}  // namespace crema

#endif  // CREMA_FILES_H_
