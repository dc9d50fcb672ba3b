// EuclideanLoss: the sum of squared differences of two bottoms, divided by twice the batch size. A third bottom, as
// forks have it, holds what the squares are multiplied by.
#include <limits>

#include "layers/difference_loss.h"

namespace crema {

namespace {

class EuclideanLossLayer : public DifferenceLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2, 3);
    if (setup.bottoms() == 3) WeighSquares(setup);
    SetupDifference(setup, 1, std::numeric_limits<float>::infinity());
  }

 private:
  void WeighSquares(LayerSetup& setup) {
    if (setup.param().loss_param().has_ignore_label()) {
      setup.Fail("loss_param.ignore_label",
                 "EuclideanLoss does not read ignore_label, and its third bottom holds weights, not labels; give 0 as "
                 "weight of what is not to count");
    }
    WeighElements(ElementsOfWeight(setup, 2, setup.bottom_shape(0).count(), "value"));
  }
};

}  // namespace

REGISTER_LAYER(EuclideanLoss, EuclideanLossLayer);

}  // namespace crema
