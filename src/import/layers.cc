#include "import/layers.h"

#include "base/check.h"
#include "crema/layer.h"

namespace crema {

int64_t CheckedCount(const std::vector<int64_t>& dims) {
  constexpr int64_t kMost = int64_t{1} << 40;
  int64_t count = 1;
  for (const int64_t extent : dims) {
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count) || count > kMost) return -1;
  }
  return count;
}

LayerParameter LayerOf(const std::string& type) {
  LayerParameter layer;
  layer.set_type(type);
  return layer;
}

void Freeze(int blobs, LayerParameter* layer) {
  for (int i = 0; i < blobs; ++i) {
    ParamSpec* param = layer->add_param();
    param->set_lr_mult(0);
    param->set_decay_mult(0);
  }
}

LayerShapes SetUpLayer(const LayerParameter& layer, const std::vector<Shape>& bottoms, const Location& where) {
  const LayerType* type = FindLayerType(layer.type());
  CREMA_CHECK(type != nullptr) << layer.type();
  std::vector<TensorSpec> specs;
  for (const Shape& shape : bottoms) specs.push_back({shape});
  LayerSetup setup(layer, TEST, std::move(specs), [&](std::string_view) { return where; });
  type->create()->Setup(setup);
  LayerShapes shapes;
  for (const auto& param : setup.params()) shapes.params.push_back(param.shape);
  for (int i = 0; i < layer.top_size(); ++i) {
    shapes.tops.push_back(setup.top_specs()[i].shape);
    if (shapes.tops.back().axes() > Shape::kMaxAxes || CheckedCount(shapes.tops.back().dims()) < 0) {
      throw UserError(where, "makes " + shapes.tops.back().ToString() + ", more elements than a machine holds");
    }
  }
  return shapes;
}

google::protobuf::RepeatedField<float>* AddBlob(const Shape& shape, LayerParameter* weights) {
  BlobProto* blob = weights->add_blobs();
  blob->mutable_shape();  // that of a scalar has no extents
  for (const int64_t extent : shape.dims()) blob->mutable_shape()->add_dim(extent);
  return blob->mutable_data();
}

LayerParameter ChannelSwap() {
  LayerParameter layer = LayerOf("Convolution");
  layer.mutable_convolution_param()->set_num_output(3);
  layer.mutable_convolution_param()->add_kernel_size(1);
  layer.mutable_convolution_param()->set_bias_term(false);
  Freeze(1, &layer);
  return layer;
}

FixedWeights ChannelSwapWeights() { return {{3, 3, 1, 1}, {0, 0, 1, 0, 1, 0, 1, 0, 0}}; }

LayerParameter SliceFor(int axis, int64_t start, int64_t end, int64_t extent) {
  LayerParameter layer = LayerOf("Slice");
  SliceParameter* param = layer.mutable_slice_param();
  if (axis != 1) param->set_axis(axis);
  if (start > 0) param->add_slice_point(static_cast<uint32_t>(start));
  if (end < extent) param->add_slice_point(static_cast<uint32_t>(end));
  return layer;
}

}  // namespace crema
