// A convolution by its sizes, in a table of tests.
#ifndef CREMA_TESTS_OPS_CONVOLUTION_CASE_H_
#define CREMA_TESTS_OPS_CONVOLUTION_CASE_H_

#include <cstdint>
#include <ostream>
#include <vector>

#include "ops/convolution/convolution.h"

namespace crema {

struct ConvolutionCase {
  const char* name;
  int64_t batch, channels, outputs, groups;
  std::vector<int64_t> input, kernel, stride, pad, dilation;
};

inline void PrintTo(const ConvolutionCase& test, std::ostream* out) { *out << test.name; }

inline ConvolutionProblem ProblemOf(const ConvolutionCase& test, bool bias = false) {
  return {.batch = test.batch,
          .channels = test.channels,
          .outputs = test.outputs,
          .groups = test.groups,
          .input = test.input,
          .kernel = test.kernel,
          .stride = test.stride,
          .dilation = test.dilation,
          .pad = test.pad,
          .bias = bias};
}

}  // namespace crema

#endif  // CREMA_TESTS_OPS_CONVOLUTION_CASE_H_
