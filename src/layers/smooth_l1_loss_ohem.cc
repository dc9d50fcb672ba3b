// SmoothL1LossOHEM: SmoothL1Loss that can tell the loss of each region, for online hard example mining (Dai et al.,
// "R-FCN: Object Detection via Region-based Fully Convolutional Networks", 2016). Bottoms: values, targets, and
// optionally weights of the differences; tops: the loss, and optionally what each place adds to it, summed over the
// channels. For weights that are neither 0 nor 1 the gradient is the derivative, where the fork leaves a factor out.
#include "layers/difference_loss.h"
#include "layers/field_range.h"

namespace crema {

namespace {

class SmoothL1LossOhemLayer : public DifferenceLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2, 3);
    if (setup.bottom_shape(0).axes() < 2) {
      setup.Fail("bottom", "bottom 0, " + setup.DescribeBottom(0) + ", has no channels; it is regions x numbers");
    }
    SetupDifferenceOfPlaces(setup, {1, 1, ReadDivisor(setup)});
    RefuseSoftmaxSettings(setup);
    RefuseBalance(setup);
    if (setup.param().loss_param().has_ignore_label()) {
      setup.Warn("loss_param.ignore_label", "SmoothL1LossOHEM does not read ignore_label; remove it");
    }
  }

 private:
  static double ReadDivisor(LayerSetup& setup) {
    const LossParameter& param = setup.param().loss_param();
    const float fixed = param.pre_fixed_normalizer();
    if (param.normalization() == LossParameter::PRE_FIXED) {
      return ReadInRange(setup, "loss_param.pre_fixed_normalizer", fixed, {.low = 1}, "the loss is divided by it");
    }
    if (param.has_pre_fixed_normalizer()) {
      setup.Warn("loss_param.pre_fixed_normalizer",
                 "pre_fixed_normalizer has no effect without normalization: PRE_FIXED");
    }
    const Shape& values = setup.bottom_shape(0);
    const int64_t places = values[0] * values.count(2);
    const int64_t divisor = ReadNormalizer(setup, LossParameter::VALID, places, values[0]);
    return static_cast<double>(divisor > 0 ? divisor : places);  // ignore_label does not count
  }
};

}  // namespace

REGISTER_LAYER(SmoothL1LossOHEM, SmoothL1LossOhemLayer, "loss_param");

}  // namespace crema
