// L1Loss: the sum of the sizes of the differences of two bottoms, divided by the batch size, as in NVIDIA's fork
// (DetectNet). Its gradient is the difference's sign, 0 where there is no difference.
#include <limits>

#include "layers/difference_loss.h"

namespace crema {

namespace {

class L1LossLayer : public DifferenceLossLayer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    // SmoothL1Loss with its square so narrow that only a difference of 0 lies in it.
    constexpr float kLimit = std::numeric_limits<float>::min();
    SetupDifference(setup, 1 / kLimit, kLimit);
  }
};

}  // namespace

REGISTER_LAYER(L1Loss, L1LossLayer);

}  // namespace crema
