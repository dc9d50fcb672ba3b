// What the steps of a program are called and what they cost, for timing tables and profiles.
#ifndef CREMA_REPORT_STEP_INFO_H_
#define CREMA_REPORT_STEP_INFO_H_

#include <cstddef>
#include <string>
#include <vector>

#include "graph/program.h"

namespace crema {

struct StepInfo {
  std::string name;      // "conv1+relu1", "reorder conv1 (plain)", "sum grad pool2"
  std::string type;      // of the layers; empty for the compiler's own steps
  std::string kernel;    // as the layer's Plan said; may be empty
  std::string category;  // "forward", "backward", "data wait" (a source), "reorder", "sum", "fill", "again" (forward in
                         // the backward pass) or "update"
  Shape shape;           // of the first tensor it writes
  // Operations as the layers count them, a multiply-add as two. A backward step takes as many for the parameters'
  // gradients and again for those of the bottoms, each where it is wanted.
  double flops = 0;
  // Of the tensors and parameters it reads and writes, each once; caches and workspace are not looked at.
  size_t bytes = 0;
};

// All steps, numbered through forward and backward.
std::vector<StepInfo> DescribeSteps(const CompiledNet& net);

// Of one forward pass and, where there is one, one backward pass: for bench/zoo_nets.cc.
double PassFlops(const CompiledNet& net);

}  // namespace crema

#endif  // CREMA_REPORT_STEP_INFO_H_
