// Dropout: while training, zeroes each element with probability dropout_ratio and scales the others by
// 1 / (1 - dropout_ratio); while testing, its top is its bottom. Without scale_train the scale is the test's.
#include "layers/elementwise_chain.h"

namespace crema {

namespace {

class DropoutLayer : public ElementwiseChainLayer {
 public:
  void Setup(LayerSetup& setup) override {
    const float ratio = setup.param().dropout_param().dropout_ratio();
    if (!(ratio >= 0 && ratio < 1)) {
      setup.Fail("dropout_param.dropout_ratio", "dropout_ratio is " + std::to_string(ratio) +
                                                    "; give the share of elements to drop, at least 0 and below 1");
    }
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
