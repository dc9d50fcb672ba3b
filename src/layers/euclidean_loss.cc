// EuclideanLoss: the sum of squared differences of two bottoms, divided by twice the batch size.
#include <limits>

#include "layers/difference_loss.h"

namespace crema {

namespace {

class EuclideanLossLayer : public DifferenceLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    SetupDifference(setup, 1, std::numeric_limits<float>::infinity());
  }
};

}  // namespace

REGISTER_LAYER(EuclideanLoss, EuclideanLossLayer);

}  // namespace crema
