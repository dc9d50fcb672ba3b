// Layers that stand for what files of other programs say, and their shapes as each is appended to a net.
#ifndef CREMA_IMPORT_LAYERS_H_
#define CREMA_IMPORT_LAYERS_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/net.pb.h"
#include "crema/tensor.h"

namespace crema {

// The product of the extents; below 0 where one is, or no machine could hold as many elements.
int64_t CheckedCount(const std::vector<int64_t>& dims);

// A layer of a type.
LayerParameter LayerOf(const std::string& type);
// Keeps the solver from its parameters.
void Freeze(int blobs, LayerParameter* layer);

struct LayerShapes {
  std::vector<Shape> tops, params;
};
// Of the layer, whose name, bottoms and tops are set, in TEST. Throws UserError, at `where`, where its settings do not
// fit what it reads, or it makes more elements than a machine holds.
LayerShapes SetUpLayer(const LayerParameter& layer, const std::vector<Shape>& bottoms, const Location& where);

// Adds a blob without values to a layer of a .caffemodel; what is to hold them.
google::protobuf::RepeatedField<float>* AddBlob(const Shape& shape, LayerParameter* weights);

// Values that are no parameters of the file, for the blob of a layer.
struct FixedWeights {
  Shape shape;
  std::vector<float> values;
};

// A frozen convolution that turns the order of three channels round, and its weights.
LayerParameter ChannelSwap();
FixedWeights ChannelSwapWeights();

// A Slice, of one top more than it has points, that cuts elements [start, end) out of an axis of `extent`.
LayerParameter SliceFor(int axis, int64_t start, int64_t end, int64_t extent);

}  // namespace crema

#endif  // CREMA_IMPORT_LAYERS_H_
