// Choosing a kernel from an ordered table: the first candidate that takes the problem wins, the others leave a reason.
#ifndef CREMA_OPS_KERNEL_CHOICE_H_
#define CREMA_OPS_KERNEL_CHOICE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "device/device.h"

namespace crema {

// What was chosen and why not the candidates before it; goes to LayerPlan::Chose.
struct KernelChoice {
  std::string kernel;
  std::vector<std::string> skipped;  // "oneDNN: 4 spatial axes, it takes 1 to 3"
};

// One row of a table of kernels for any device, or for one kind of them.
template <typename Kernel, typename Problem, typename DeviceKind = const Device>
struct KernelCandidate {
  const char* name;
  // Null, with a reason in *why_not, when the candidate does not take the problem on this device.
  std::unique_ptr<Kernel> (*make)(const Problem& problem, DeviceKind& device, std::string* why_not);
};

// Walks the table in order. `only` names the one candidate to try (tests compare candidates); empty tries all. Null
// when none takes the problem; *choice (may be null) then still holds the reasons.
template <typename Kernel, typename Problem, typename DeviceKind, size_t kCandidates>
std::unique_ptr<Kernel> ChooseKernel(const KernelCandidate<Kernel, Problem, DeviceKind> (&table)[kCandidates],
                                     const Problem& problem, DeviceKind& device, std::string_view only,
                                     KernelChoice* choice) {
  KernelChoice ignored;
  if (!choice) choice = &ignored;
  *choice = {};
  for (const auto& candidate : table) {
    if (!only.empty() && only != candidate.name) continue;
    std::string why_not;
    if (auto kernel = candidate.make(problem, device, &why_not)) {
      choice->kernel = candidate.name;
      return kernel;
    }
    choice->skipped.push_back(std::string(candidate.name) + ": " + why_not);
  }
  return nullptr;
}

// Where one kernel takes every problem: false when `only` names another.
inline bool ChooseSoleKernel(const char* name, std::string_view only, KernelChoice* choice) {
  if (choice) *choice = {};
  if (!only.empty() && only != name) return false;
  if (choice) choice->kernel = name;
  return true;
}

}  // namespace crema

#endif  // CREMA_OPS_KERNEL_CHOICE_H_
