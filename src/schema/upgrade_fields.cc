// Fields of forks that have another name here: hole of DeepLab's convolutions, ceil_mode of converters from PyTorch,
// filler of Intel's BatchNorm, the factor of FlowNet's Eltwise of one bottom.
#include "schema/axis_values.h"
#include "schema/upgrade.h"

namespace crema {

namespace {

class LayerFields {
 public:
  LayerFields(LayerParameter* layer, const LayerOrigin& origin, const PlaceOf& place, Diagnostics* diagnostics)
      : layer_(*layer), origin_(origin), place_(place), diagnostics_(diagnostics) {}

  void Upgrade() {
    if (layer_.has_convolution_param()) TakeHoles(layer_.mutable_convolution_param());
    if (layer_.has_pooling_param()) TakeCeilMode(layer_.mutable_pooling_param());
    if (layer_.has_batch_norm_param()) TakeFiller(layer_.mutable_batch_norm_param());
    if (layer_.type() == "Eltwise") TakeFactor();
  }

 private:
  void Fail(const std::string& field, const std::string& problem) {
    diagnostics_->Error(place_(OldPaths(origin_, field).front()), "layer \"" + layer_.name() + "\": " + problem);
  }

  void TakeHoles(ConvolutionParameter* param) {
    const bool sides = param->has_hole_h() || param->has_hole_w();
    if (!sides && !param->has_hole()) return;
    if (!param->dilation().empty() || (sides && param->has_hole())) {
      return Fail(std::string("convolution_param.") + (param->has_hole() ? "hole" : "hole_h"),
                  "hole, hole_h with hole_w, and dilation all say the dilation; keep one of them");
    }
    if (sides) {
      SetAxisValues({param->hole_h(), param->hole_w()}, 1, param->mutable_dilation());
    } else {
      param->add_dilation(param->hole());
    }
    param->clear_hole();
    param->clear_hole_h();
    param->clear_hole_w();
  }

  void TakeCeilMode(PoolingParameter* param) {
    if (!param->has_ceil_mode()) return;
    const auto mode = param->ceil_mode() ? PoolingParameter::CEIL : PoolingParameter::FLOOR;
    if (param->has_round_mode() && param->round_mode() != mode) {
      return Fail("pooling_param.ceil_mode", "ceil_mode contradicts round_mode, which says the same; keep one of them");
    }
    param->set_round_mode(mode);
    param->clear_ceil_mode();
  }

  void TakeFiller(BatchNormParameter* param) {
    if (!param->has_filler()) return;
    if (param->has_scale_filler()) {
      return Fail("batch_norm_param.filler", "filler and scale_filler both say the initial scale; keep one of them");
    }
    param->mutable_scale_filler()->Swap(param->mutable_filler());
    param->clear_filler();
  }

  // A sum of one bottom with one coefficient. Without that a bottom has been forgotten.
  void TakeFactor() {
    const EltwiseParameter& param = layer_.eltwise_param();
    if (layer_.bottom_size() != 1 || param.coeff_size() != 1 || param.operation() != EltwiseParameter::SUM) return;
    if (layer_.has_power_param()) return;
    layer_.set_type("Power");
    layer_.mutable_power_param()->set_scale(param.coeff(0));
    layer_.clear_eltwise_param();
  }

  LayerParameter& layer_;
  LayerOrigin origin_;
  const PlaceOf& place_;
  Diagnostics* diagnostics_;
};

}  // namespace

void UpgradeFields(NetParameter* net, const PlaceOf& place, Diagnostics* diagnostics,
                   const std::vector<LayerOrigin>& origins) {
  for (int i = 0; i < net->layer_size(); ++i) {
    LayerFields(net->mutable_layer(i), origins[i], place, diagnostics).Upgrade();
  }
}

}  // namespace crema
