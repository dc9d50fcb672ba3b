#include "layers/outcome.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "near.h"

namespace crema::testing {

Wanted EverythingWanted(const LayerInstance& layer, const LayerCase& test) {
  Wanted wanted;
  for (int i = 0; i < test.bottom_size(); ++i) wanted.bottoms.push_back(layer.setup().has_gradient(i));
  for (const ParamRequest& request : layer.setup().params()) wanted.params.push_back(request.learnable);
  return wanted;
}

bool Any(const Wanted& wanted) {
  return std::count(wanted.bottoms.begin(), wanted.bottoms.end(), true) +
             std::count(wanted.params.begin(), wanted.params.end(), true) >
         0;
}

namespace {

bool nans_expected = false;

bool IsGradientTop(const LayerCase& test, int top) {
  const auto& tops = test.gradient_top();
  return tops.empty() || std::find(tops.begin(), tops.end(), top) != tops.end();
}

}  // namespace

Arrays TopWeights(const LayerInstance& layer, const LayerCase& test, float constant) {
  Arrays weights;
  for (int i = 0; i < layer.setup().tops(); ++i) {
    std::vector<float> weight(static_cast<size_t>(layer.TopCount(i)), 0.0f);
    for (size_t e = 0; e < weight.size() && IsGradientTop(test, i); ++e) {
      weight[e] = constant != 0 ? constant : static_cast<float>(GenericValue(e, static_cast<uint64_t>(3000 + i)));
    }
    weights.push_back(std::move(weight));
  }
  return weights;
}

Outcome RunOnce(const LayerCase& test, const Wanted* wanted, const Placing& placing, float top_gradient) {
  LayerInstance layer(test, wanted, placing);
  layer.FillInputs();
  layer.Forward();
  Outcome outcome;
  for (int i = 0; i < layer.setup().tops(); ++i) outcome.tops.push_back(layer.Top(i));
  if (wanted != nullptr) {
    layer.Backward(TopWeights(layer, test, top_gradient));
    for (size_t i = 0; i < wanted->bottoms.size(); ++i) {
      outcome.bottom_gradients.push_back(layer.BottomGradient(static_cast<int>(i)));
    }
    for (size_t i = 0; i < wanted->params.size(); ++i) {
      outcome.param_gradients.push_back(layer.ParamGradient(static_cast<int>(i)));
    }
  }
  outcome.problem = layer.MemoryProblem();
  return outcome;
}

ExpectedNans::ExpectedNans(const LayerCase& test) {
  for (const CaseTensor& top : test.expect_top()) {
    nans_expected |= std::any_of(top.value().begin(), top.value().end(), [](float x) { return std::isnan(x); });
  }
}

ExpectedNans::~ExpectedNans() { nans_expected = false; }

void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance, double floor,
                 const std::string& what) {
  std::vector<float> got = actual, wanted = expected;
  for (size_t i = 0; nans_expected && i < std::min(got.size(), wanted.size()); ++i) {
    if (std::isnan(got[i]) && std::isnan(wanted[i])) got[i] = wanted[i] = 0;
  }
  crema::ExpectClose(wanted, got, tolerance, what, floor);
}

void ExpectSame(const Arrays& actual, const Arrays& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    ExpectClose(actual[i], expected[i], tolerance, 1e-6, what + " " + std::to_string(i));
  }
}

void ExpectSame(const Outcome& actual, const Outcome& expected, double tolerance, const std::string& what) {
  ExpectSame(actual.tops, expected.tops, tolerance, what + ": top");
  ExpectSame(actual.bottom_gradients, expected.bottom_gradients, tolerance, what + ": gradient of bottom");
  ExpectSame(actual.param_gradients, expected.param_gradients, tolerance, what + ": gradient of parameter");
}

}  // namespace crema::testing
