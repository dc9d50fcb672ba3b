// One pass of a net on reproducible numbers, for comparing implementations: generic values that any program can make
// from an element's index (SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
#ifndef CREMA_REPORT_PROBE_H_
#define CREMA_REPORT_PROBE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "crema/net.h"
#include "graph/graph.h"
#include "report/assumed_inputs.h"

namespace crema {

// Element i of the p-th filled tensor, in [-1, 1).
double ProbeValue(uint64_t i, uint64_t p);

struct ProbeOptions {
  Phase phase = TRAIN;
  int level = 0;
  std::vector<std::string> stages;
  BlobShapes shapes;
  std::optional<std::vector<LayerWeights>> weights;  // instead of filled parameters
  bool backward = false;
  int head = 8;              // leading elements to report
  Device* device = nullptr;  // null: the CPU
};

// What is left of a tensor.
struct TensorSummary {
  std::string name;
  Shape shape;
  double sum = 0, abssum = 0;
  double largest = 0;  // absolute value
  std::vector<float> head;
};

struct ProbeResult {
  double loss = 0;
  WeightsReport weights;                       // where there were any
  std::vector<TensorSummary> blobs;            // the last value under each name, in the net's order
  std::vector<TensorSummary> param_gradients;  // "conv1[0]"; zeros where the solver never changes it
};

// The net of `options` with Input layers in place of all that reads data. Where options.shapes does not have a top, the
// data's own description gives its shape, which is added there; throws UserError where there is neither.
NetFile WithoutData(const NetFile& file, NetOptions& options);

// Inputs and parameters get the fill that docs/commands.md defines.
void FillInputs(Net& net);
void FillParameters(Net& net);

// Runs the passes; `json`, if not null, gets the result with the net's layers.
ProbeResult Probe(const NetFile& file, const ProbeOptions& options, std::string* json = nullptr);

}  // namespace crema

#endif  // CREMA_REPORT_PROBE_H_
