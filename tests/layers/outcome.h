// What a layer computes when run once, and how outcomes are compared.
#ifndef CREMA_TESTS_LAYERS_OUTCOME_H_
#define CREMA_TESTS_LAYERS_OUTCOME_H_

#include <string>
#include <vector>

#include "layers/layer_harness.h"

namespace crema::testing {

using Arrays = std::vector<std::vector<float>>;

// What one forward and backward pass made.
struct Outcome {
  Arrays tops, bottom_gradients, param_gradients;
  std::string problem;
};

// All gradients that the layer has.
Wanted EverythingWanted(const LayerInstance& layer, const LayerCase& test);
bool Any(const Wanted& wanted);

// Fixed weights that make one number of the tops; `constant` != 0 gives all elements that weight.
Arrays TopWeights(const LayerInstance& layer, const LayerCase& test, float constant);

// Forward and, with `wanted`, Backward from TopWeights(top_gradient).
Outcome RunOnce(const LayerCase& test, const Wanted* wanted, const Placing& placing = {}, float top_gradient = 0);

// While one of a case that expects NaNs of its tops lives, a NaN is what a NaN is expected to be. Else none is: it may
// be what was not to be read.
class ExpectedNans {
 public:
  explicit ExpectedNans(const LayerCase& test);
  ~ExpectedNans();
  ExpectedNans(const ExpectedNans&) = delete;
  ExpectedNans& operator=(const ExpectedNans&) = delete;
};

// Expects |actual - expected| <= tolerance * largest |expected| (at least `floor`), and equal values where tolerance is
// 0. Stops the calling test with a fatal failure otherwise.
void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance, double floor,
                 const std::string& what);
void ExpectSame(const Arrays& actual, const Arrays& expected, double tolerance, const std::string& what);
void ExpectSame(const Outcome& actual, const Outcome& expected, double tolerance, const std::string& what);

}  // namespace crema::testing

#endif  // CREMA_TESTS_LAYERS_OUTCOME_H_
