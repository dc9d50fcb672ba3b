// Constants of a model that is read.
#ifndef CREMA_ONNX_CONSTANT_H_
#define CREMA_ONNX_CONSTANT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "crema/tensor.h"
#include "onnx/model.pb.h"

namespace crema::onnx {

// Numbers in C order; whole ones, truth values among them, in `integers`, others in `floats`.
struct Constant {
  Shape shape;
  bool whole = false;
  std::vector<float> floats = {};
  std::vector<int64_t> integers = {};
  // Of the initializer that it is; empty where it was computed.
  std::string name = {};

  int64_t count() const { return shape.count(); }
  double value(int64_t i) const { return whole ? static_cast<double>(integers[i]) : floats[i]; }
};

Constant Floats(Shape shape, std::vector<float> values);
Constant Integers(std::vector<int64_t> values);

// The tensor's elements, from `folder`, the model's, where they lie in a file of their own. Throws UserError, without a
// place, that names the tensor, where they do not fit its extents, the type is none that crema computes with, or the
// file is not in that folder; EnvironmentError where it cannot be read.
Constant ReadTensor(const TensorProto& tensor, const std::string& folder);

}  // namespace crema::onnx

#endif  // CREMA_ONNX_CONSTANT_H_
