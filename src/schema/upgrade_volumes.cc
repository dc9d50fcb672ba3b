// Types of forks for volumes and videos become those for images, which take them as well. C3D: Convolution3D,
// Deconvolution3D and Pooling3D, with kernel_depth, temporal_stride and temporal_pad beside kernel_size, stride and
// pad. BVLC's pull request 2824 and video-caffe: NdConvolution and NdPooling, with kernel_shape, stride_shape,
// pad_shape.
#include <array>
#include <limits>
#include <type_traits>
#include <vector>

#include "schema/axis_values.h"
#include "schema/upgrade.h"

namespace crema {

namespace {

enum class Form { kDepth, kShape, kPlain };

struct VolumeType {
  const char *there, *here;
  bool pools;
  Form form;
};

constexpr std::array kTypes = {
    VolumeType{"Convolution3D", "Convolution", false, Form::kDepth},
    VolumeType{"Deconvolution3D", "Deconvolution", false, Form::kDepth},
    VolumeType{"Pooling3D", "Pooling", true, Form::kDepth},
    VolumeType{"NdConvolution", "Convolution", false, Form::kShape},
    VolumeType{"NdPooling", "Pooling", true, Form::kShape},
    VolumeType{"PoolingND", "Pooling", true, Form::kPlain},
};

// The block of one layer while it is rewritten; problems are told at its fields.
template <typename Param>
class WindowBlock {
 public:
  WindowBlock(const LayerParameter& layer, std::string name, const LayerOrigin& origin, const PlaceOf& place,
              Diagnostics* diagnostics)
      : layer_(layer), name_(std::move(name)), origin_(origin), place_(place), diagnostics_(diagnostics) {}

  void FromDepth(Param* param) const {
    const int64_t depth = param->kernel_depth(), stride = param->temporal_stride();
    int64_t pad = 0;
    if constexpr (kConvolves) {
      pad = param->temporal_pad();
      if (param->group() != 1) Fail("group", "group has no effect in " + layer_.type() + "; remove it");
    }
    if (!param->has_kernel_depth()) Fail("", "kernel_depth is not set; it is the window's extent in frames");
    if (param->has_kernel_shape() || param->has_stride_shape() || param->has_pad_shape()) {
      Fail("kernel_shape", "kernel_shape, stride_shape and pad_shape are of NdConvolution and NdPooling");
    }
    Take("kernel_size", depth, 1, param->mutable_kernel_size());
    Take("stride", stride, 1, param->mutable_stride());
    Take("pad", pad, 0, param->mutable_pad());
    Clear(param);
  }

  void FromShapes(Param* param) const {
    bool global = false;
    if constexpr (!kConvolves) global = param->global_pooling();
    if (HasDepth(*param)) {
      Fail("kernel_depth",
           "kernel_depth and its like are of Convolution3D and Pooling3D; give the depth in kernel_shape");
    }
    if (!param->kernel_size().empty() || !param->stride().empty() || !param->pad().empty()) {
      Fail("kernel_size", layer_.type() +
                              " reads kernel_shape, stride_shape and pad_shape, not kernel_size, stride and "
                              "pad; give those, or type: \"" +
                              (kConvolves ? "Convolution" : "Pooling") + "\"");
    }
    if (!global && param->kernel_shape().dim().empty())
      Fail("", "kernel_shape is not set; it has the window's extents");
    const int axes = param->kernel_shape().dim_size();
    if (!global) Take("kernel_shape", param->kernel_shape(), axes, param->mutable_kernel_size());
    Take("stride_shape", param->stride_shape(), axes, param->mutable_stride());
    Take("pad_shape", param->pad_shape(), axes, param->mutable_pad());
    Clear(param);
  }

  // Of a type that does not read them.
  void Refuse(const Param& param) const {
    if (HasDepth(param)) {
      Fail("kernel_depth",
           "kernel_depth and its like are of Convolution3D, Deconvolution3D and Pooling3D; give "
           "kernel_size, stride and pad once per axis, the depth first");
    } else if (param.has_kernel_shape() || param.has_stride_shape() || param.has_pad_shape()) {
      Fail("kernel_shape",
           "kernel_shape and its like are of NdConvolution and NdPooling; give kernel_size, stride and "
           "pad once per axis");
    }
  }

 private:
  static constexpr bool kConvolves = std::is_same_v<Param, ConvolutionParameter>;

  static bool HasDepth(const Param& param) {
    bool has = param.has_kernel_depth() || param.has_temporal_stride();
    if constexpr (kConvolves) has |= param.has_temporal_pad() || param.has_filter_group();
    return has;
  }
  static void Clear(Param* param) {
    param->clear_kernel_depth();
    param->clear_temporal_stride();
    param->clear_kernel_shape();
    param->clear_stride_shape();
    param->clear_pad_shape();
    if constexpr (kConvolves) {
      param->clear_temporal_pad();
      param->clear_filter_group();
    }
  }

  void Fail(const std::string& field, const std::string& problem) const {
    Location where = place_(OldPaths(origin_, name_).front());
    if (!field.empty()) where = place_(OldPaths(origin_, name_ + "." + field).front());
    diagnostics_->Error(where, "layer \"" + layer_.name() + "\": " + problem);
  }

  // `field`: height and width alike, to which the depth comes first.
  template <typename Repeated>
  void Take(const char* name, int64_t depth, int64_t fallback, Repeated* field) const {
    if (field->size() > 1) {
      return Fail(name, std::string(name) + " is given " + std::to_string(field->size()) + " times, but " +
                            layer_.type() + " takes it once, for height and width");
    }
    if (field->empty() && std::string_view(name) == "kernel_size") {
      return Fail("", "kernel_size is not set; it is the window's height and width, in pixels");
    }
    const int64_t side = field->empty() ? fallback : field->Get(0);
    field->Clear();
    // A kernel of 1 must be told.
    SetAxisValues({depth, side, side}, std::string_view(name) == "kernel_size" ? -1 : fallback, field);
  }

  template <typename Repeated>
  void Take(const char* name, const BlobShape& shape, int axes, Repeated* field) const {
    if (shape.dim().empty()) return;
    if (axes > 0 && shape.dim_size() != axes) {
      return Fail(name, std::string(name) + " has " + std::to_string(shape.dim_size()) + " values, but kernel_shape " +
                            std::to_string(axes));
    }
    for (const int64_t value : shape.dim()) {
      if (value < 0 || value > std::numeric_limits<int32_t>::max()) {
        return Fail(name, std::string(name) + " has " + std::to_string(value) + ", which is no extent in pixels");
      }
    }
    SetAxisValues({shape.dim().begin(), shape.dim().end()}, -1, field);
  }

  const LayerParameter& layer_;
  std::string name_;
  LayerOrigin origin_;
  const PlaceOf& place_;
  Diagnostics* diagnostics_;
};

// Rewrites block `name` as `type` says; null: as a type that does not read what forks add.
template <typename Param>
void Rewrite(const VolumeType* type, const WindowBlock<Param>& block, Param* param) {
  if (!type || type->form == Form::kPlain) return block.Refuse(*param);
  type->form == Form::kDepth ? block.FromDepth(param) : block.FromShapes(param);
}

// 3D-Caffe has the block of Pooling a second time, for the type that takes volumes.
bool TakePlainBlock(LayerParameter* layer) {
  if (!layer->has_pooling_nd_param() || layer->has_pooling_param()) return false;
  layer->mutable_pooling_param()->Swap(layer->mutable_pooling_nd_param());
  layer->clear_pooling_nd_param();
  return true;
}

const VolumeType* TypeOf(const std::string& name) {
  for (const VolumeType& type : kTypes) {
    if (name == type.there) return &type;
  }
  return nullptr;
}

}  // namespace

void UpgradeVolumes(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics,
                    const std::vector<LayerOrigin>& origins) {
  for (int i = 0; i < net->layer_size(); ++i) {
    LayerParameter* layer = net->mutable_layer(i);
    const VolumeType* type = TypeOf(layer->type());
    std::string convolution = "convolution_param", pooling = "pooling_param";
    // Today's syntax has blocks of its own for what V1 wrote into those of images.
    if (type && type->form == Form::kDepth && origins[i].syntax == LayerOrigin::Syntax::kCurrent) {
      if (type->pools && layer->has_pooling3d_param() && !layer->has_pooling_param()) {
        pooling = "pooling3d_param";
        layer->mutable_pooling_param()->Swap(layer->mutable_pooling3d_param());
        layer->clear_pooling3d_param();
      } else if (!type->pools && layer->has_convolution3d_param() && !layer->has_convolution_param()) {
        convolution = "convolution3d_param";
        layer->mutable_convolution_param()->Swap(layer->mutable_convolution3d_param());
        layer->clear_convolution3d_param();
      } else {
        const std::string block = type->pools ? "pooling3d_param" : "convolution3d_param";
        diagnostics->Error(place("layer[" + std::to_string(origins[i].index) + "]"),
                           "layer \"" + layer->name() + "\": " + layer->type() + " reads " + block +
                               " alone; write its settings there");
        continue;
      }
    }
    if (type && type->form == Form::kPlain) {
      pooling = "pooling_nd_param";
      if (!TakePlainBlock(layer)) {
        diagnostics->Error(place(OldPaths(origins[i], "type").front()),
                           "layer \"" + layer->name() + "\": " + layer->type() +
                               " reads pooling_nd_param alone; write its settings there");
        continue;
      }
    }
    if (type ? !type->pools : layer->has_convolution_param()) {
      const WindowBlock<ConvolutionParameter> block(*layer, convolution, origins[i], place, diagnostics);
      Rewrite(type, block, layer->mutable_convolution_param());
    }
    if (type ? type->pools : layer->has_pooling_param()) {
      const WindowBlock<PoolingParameter> block(*layer, pooling, origins[i], place, diagnostics);
      Rewrite(type, block, layer->mutable_pooling_param());
    }
    if (type) layer->set_type(type->here);
  }
}

}  // namespace crema
