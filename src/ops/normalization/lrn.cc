#include "ops/normalization/lrn.h"

#include "ops/normalization/lrn_kernels.h"

namespace crema {

namespace {

constexpr KernelCandidate<LrnKernel, LrnProblem> kTable[] = {
    {"vectorised across channels", MakeLrnAcrossVectorised},
    {"across channels that come last", MakeLrnAcrossChannelsLast},
    {"vectorised within channel", MakeLrnWithinVectorised},
    {"reference", MakeLrnReference},
};

}  // namespace

std::unique_ptr<LrnKernel> MakeLrn(const LrnProblem& problem, const Device& device, KernelChoice* choice,
                                   std::string_view only) {
  return ChooseKernel(kTable, problem, device, only, choice);
}

}  // namespace crema
