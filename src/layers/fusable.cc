#include "layers/fusable.h"

#include "layers/batch_norm_blobs.h"

namespace crema {

bool IsScaleByChannel(const LayerSetup& setup) {
  const ScaleParameter& scale = setup.param().scale_param();
  return setup.bottoms() == 1 && setup.CanonicalAxis("scale_param.axis", scale.axis()) == 1 && scale.num_axes() == 1;
}

bool IsSumOfTwo(const LayerSetup& setup) {
  const EltwiseParameter& sum = setup.param().eltwise_param();
  bool plain = setup.bottoms() == 2 && sum.operation() == EltwiseParameter::SUM;
  for (float coefficient : sum.coeff()) plain &= coefficient == 1;
  return plain;
}

bool ScalesTwice(std::span<const LayerSetup* const> members) {
  bool twice = false;
  for (size_t i = 1; i < members.size(); ++i) {
    twice |= members[i]->param().type() == "Scale" && ScalesItself(members[i - 1]->param().batch_norm_param());
  }
  return twice;
}

bool FollowersAreFusable(std::span<const LayerSetup* const> members, std::string* why_not) {
  for (const LayerSetup* setup : members.subspan(1)) {
    const std::string& type = setup->param().type();
    if (type == "Scale" && !IsScaleByChannel(*setup)) *why_not = "Scale is not one number a channel";
    if (type == "Eltwise" && !IsSumOfTwo(*setup)) *why_not = "Eltwise is not a plain sum of two";
    if (type == "ReLU" && setup->param().relu_param().negative_slope() != 0) *why_not = "ReLU has a negative slope";
  }
  if (ScalesTwice(members)) *why_not = "BatchNorm has a scale of its own";
  return why_not->empty();
}

}  // namespace crema
