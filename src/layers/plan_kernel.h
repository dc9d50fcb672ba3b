// Kernels that a layer takes from its device when it is planned.
#ifndef CREMA_LAYERS_PLAN_KERNEL_H_
#define CREMA_LAYERS_PLAN_KERNEL_H_

#include <memory>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/listed.h"
#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

// &Operations::MakePooling and its like.
template <typename Kernel, typename Problem>
using KernelMaker = std::unique_ptr<Kernel> (Operations::*)(const Problem& problem, KernelChoice* choice,
                                                            std::string_view only);

// One for this problem on the plan's device; *choice says which.
template <typename Kernel, typename Problem>
std::unique_ptr<Kernel> MakeKernel(const LayerPlan& plan, KernelMaker<Kernel, Problem> make, const Problem& problem,
                                   KernelChoice* choice) {
  auto kernel = (OperationsOf(*plan.context().device).*make)(problem, choice, {});
  CREMA_CHECK(kernel != nullptr) << "no kernel: " << Listed(choice->skipped);
  return kernel;
}

// The kernel of the forward pass, which the plan tells of (LayerPlan::Chose).
template <typename Kernel, typename Problem>
std::unique_ptr<Kernel> PlanKernel(LayerPlan& plan, KernelMaker<Kernel, Problem> make, const Problem& problem) {
  KernelChoice choice;
  auto kernel = MakeKernel(plan, make, problem, &choice);
  plan.Chose(std::move(choice.kernel), std::move(choice.skipped));
  return kernel;
}

// One of the backward pass alone.
template <typename Kernel, typename Problem>
std::unique_ptr<Kernel> PlanGradientKernel(const LayerPlan& plan, KernelMaker<Kernel, Problem> make,
                                           const Problem& problem) {
  KernelChoice choice;
  return MakeKernel(plan, make, problem, &choice);
}

}  // namespace crema

#endif  // CREMA_LAYERS_PLAN_KERNEL_H_
