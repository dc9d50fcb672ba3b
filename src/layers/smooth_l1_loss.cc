// SmoothL1Loss: half the square of small differences and the size of large ones, divided by the batch size (Girshick,
// "Fast R-CNN", 2015). Bottoms: values, targets, weights of the differences, weights of the results; the last one or
// two may be left out, as nets of Fast R-CNN's first version and of SSD do. For weights that are neither 0 nor 1 the
// gradient of three bottoms is the derivative, where those forks leave a factor out.
#include <cmath>

#include "base/number_text.h"
#include "layers/difference_loss.h"

namespace crema {

namespace {

class SmoothL1LossLayer : public DifferenceLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2, 4);
    const float sigma = setup.param().smooth_l1_loss_param().sigma();
    const float sharpness = sigma * sigma, limit = 1 / sharpness;
    if (!(sigma > 0) || !std::isfinite(sharpness) || !std::isfinite(limit)) {
      setup.Fail("smooth_l1_loss_param.sigma", "sigma is " + FormatNumber(sigma) +
                                                   "; give a number above 0, squares end at 1 / sigma^2, which must be "
                                                   "a finite number");
    }
    SetupDifference(setup, sharpness, limit);
  }
};

}  // namespace

REGISTER_LAYER(SmoothL1Loss, SmoothL1LossLayer, "smooth_l1_loss_param");

}  // namespace crema
