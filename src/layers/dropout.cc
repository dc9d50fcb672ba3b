// Dropout: while training, zeroes each element with probability dropout_ratio and scales the others by
// 1 / (1 - dropout_ratio); while testing, its top is its bottom. Without scale_train the scale is the test's.
#include "layers/elementwise_chain.h"
#include "layers/field_range.h"

namespace crema {

namespace {

class DropoutLayer : public ElementwiseChainLayer {
 public:
  void Setup(LayerSetup& setup) override {
    const float ratio = setup.param().dropout_param().dropout_ratio();
    ReadInRange(setup, "dropout_param.dropout_ratio", ratio, {.low = 0, .high = 1, .below_high = true},
                "it is the share of elements to drop");
    if (setup.param().dropout_param().random_seed() >= 0) {
      setup.Warn("dropout_param.random_seed",
                 "random_seed has no effect: the solver's random_seed fixes what is dropped");
    }
    ElementwiseChainLayer::Setup(setup);
    const bool scales = setup.phase() == TEST && !setup.param().dropout_param().scale_train();
    if (ratio == 0 || (setup.phase() == TEST && !scales)) setup.MakeView();
  }
};

}  // namespace

REGISTER_LAYER(Dropout, DropoutLayer, "dropout_param");

}  // namespace crema
