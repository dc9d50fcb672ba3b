// What is checked with every case of a layer: docs/adding_a_layer.md.
#ifndef CREMA_TESTS_LAYERS_LAYER_CHECKS_H_
#define CREMA_TESTS_LAYERS_LAYER_CHECKS_H_

#include "device/gpu.h"
#include "layers/layer_case.pb.h"

namespace crema::testing {

// On the CPU: errors, shapes, values and gradients, in every way that a net might run the layer.
void CheckCase(const LayerCase& test);
// A GPU computes what the CPU does, whatever way the layer runs.
void CheckOnGpu(const LayerCase& test, Gpu& gpu);

}  // namespace crema::testing

#endif  // CREMA_TESTS_LAYERS_LAYER_CHECKS_H_
