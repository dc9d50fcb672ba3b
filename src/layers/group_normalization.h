// What LayerNorm and GroupNorm share (ops/normalization/group_norm.h).
#ifndef CREMA_LAYERS_GROUP_NORMALIZATION_H_
#define CREMA_LAYERS_GROUP_NORMALIZATION_H_

#include <string>

#include "crema/layer.h"
#include "graph/filler.h"
#include "ops/normalization/group_norm.h"

namespace crema {

class GroupNormalization : public Layer {
 public:
  void Plan(LayerPlan& plan) override;
  void Forward(const LayerRun& run) override;
  void Backward(const LayerRun& run) override;

 protected:
  // To be called by Setup, which has one bottom, with the layer's block and its name, its rows, whose eps is taken from
  // the block, and the shape of the blobs.
  template <typename Parameter>
  void SetupRows(LayerSetup& setup, const Parameter& param, const std::string& block, const GroupNormProblem& problem,
                 const Shape& blobs) {
    has_bias_ = param.scale_term() && param.bias_term();
    if (!param.scale_term() && param.has_bias_term() && param.bias_term()) {
      setup.Fail(block + ".bias_term", "there is no shift without a scale; set scale_term: true, or bias_term: false");
    }
    SetupRows(setup, block, param.eps(), problem);
    if (!param.scale_term()) return;
    has_scale_ = true;
    FillerParameter ones = param.scale_filler();
    if (!param.has_scale_filler()) ones.set_value(1);
    AddFilledParam(setup, block + ".scale_filler", blobs, ones);
    if (has_bias_) AddFilledParam(setup, block + ".bias_filler", blobs, param.bias_filler());
  }

 private:
  void SetupRows(LayerSetup& setup, const std::string& block, float eps, const GroupNormProblem& problem);

  GroupNormProblem problem_;
  bool has_scale_ = false, has_bias_ = false;
  bool keeps_ = false;  // means and deviations
};

}  // namespace crema

#endif  // CREMA_LAYERS_GROUP_NORMALIZATION_H_
