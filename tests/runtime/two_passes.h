// What a net makes of two batches, for tests that compare how it is computed.
#ifndef CREMA_TESTS_RUNTIME_TWO_PASSES_H_
#define CREMA_TESTS_RUNTIME_TWO_PASSES_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "crema/files.h"
#include "crema/net.h"

namespace crema {

struct Outcome {
  float loss = 0;
  std::vector<std::vector<float>> gradients;  // of all parameters
};

// Of a net with inputs "data" and "label", of four classes; with backward passes in TRAIN.
inline Outcome RunTwoPasses(const std::string& text, uint64_t seed, NetOptions options) {
  options.backward = options.phase == TRAIN;
  options.context.seed = seed;
  Net net(ParseNet(text, "net.prototxt"), options);
  Outcome outcome;
  for (int pass = 0; pass < 2; ++pass) {
    const Tensor data = net.blob("data"), label = net.blob("label");
    for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(0.37f * static_cast<float>(i + pass));
    for (int64_t i = 0; i < label.count(); ++i) label.f32()[i] = static_cast<float>(i % 4);
    outcome.loss = net.Forward();
    if (options.backward) net.Backward();
  }
  for (const Parameter& p : std::as_const(net).parameters()) {
    if (p.grad.defined()) p.CopyGradTo(outcome.gradients.emplace_back(p.shape.count()).data());
  }
  return outcome;
}

}  // namespace crema

#endif  // CREMA_TESTS_RUNTIME_TWO_PASSES_H_
