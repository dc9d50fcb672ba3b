#include "darknet/rates.h"

#include <algorithm>
#include <string>
#include <vector>

namespace crema::darknet {

namespace {

constexpr float kPower = 4;  // of warm-ups and policy=poly

void ReadSteps(Settings* settings, SolverParameter* solver) {
  const std::vector<int64_t> steps = settings->Ints("steps");
  const std::vector<float> scales = settings->Numbers("scales");
  if (steps.empty() || steps.size() != scales.size()) {
    settings->Refuse("steps", "policy=steps wants as many scales as steps, but there are " +
                                  std::to_string(scales.size()) + " and " + std::to_string(steps.size()));
    return;
  }
  if (!std::is_sorted(steps.begin(), steps.end())) {
    return settings->Refuse("steps", "steps must stand in increasing order");
  }
  const bool one_factor = std::all_of(scales.begin(), scales.end(), [&](float scale) { return scale == scales[0]; });
  if (one_factor && steps[0] > 0) {
    solver->set_lr_policy("multistep");
    solver->set_gamma(scales[0]);
    for (const int64_t step : steps) solver->add_stepvalue(static_cast<int32_t>(std::min(step, kMostIterations)));
    return;
  }
  solver->set_lr_policy("multifixed");
  float rate = solver->base_lr();
  const auto add = [&](int64_t last) {
    solver->add_stagelr(rate);
    solver->add_stageiter(static_cast<int32_t>(std::min(last, kMostIterations)));
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] > 0) add(steps[i] - 1);
    rate *= scales[i];
  }
  add(std::max<int64_t>(solver->max_iter(), steps.back()));
}

}  // namespace

void ReadRates(Settings* settings, SolverParameter* solver) {
  solver->set_base_lr(settings->Number("learning_rate", 0.001F));
  solver->set_warmup_iter(static_cast<int32_t>(settings->Int("burn_in", 0, 0, kMostIterations)));
  if (solver->warmup_iter() > 0) solver->set_warmup_power(settings->Number("power", kPower));
  const std::string policy =
      settings->Choice("policy", "constant", {"constant", "exp", "poly", "sgdr", "sigmoid", "step", "steps"});
  if (policy == "constant") {
    solver->set_lr_policy("fixed");
  } else if (policy == "steps") {
    ReadSteps(settings, solver);
  } else if (policy == "step") {
    solver->set_lr_policy("step");
    solver->set_stepsize(static_cast<int32_t>(settings->Int("step", 1, 1, kMostIterations)));
    solver->set_gamma(settings->Number("scale", 1));
  } else if (policy == "exp") {
    solver->set_lr_policy("exp");
    solver->set_gamma(settings->Number("gamma", 1));
  } else if (policy == "poly") {
    solver->set_lr_policy("poly");
    solver->set_power(settings->Number("power", kPower));
  } else if (policy == "sigmoid") {
    solver->set_lr_policy("sigmoid");
    solver->set_stepsize(static_cast<int32_t>(settings->Int("step", 1, 1, kMostIterations)));
    solver->set_gamma(-settings->Number("gamma", 1));  // which has the other sign in Darknet's formula
  } else if (policy == "sgdr") {
    solver->set_lr_policy("cosine");
    solver->set_min_lr(settings->Number("learning_rate_min", 0.00001F));
    const int64_t cycle = settings->Int("sgdr_cycle", solver->max_iter(), 1, kMostIterations);
    if (cycle < solver->max_iter()) {
      settings->Refuse("sgdr_cycle", "sgdr_cycle=" + std::to_string(cycle) + " begins again before max_batches=" +
                                         std::to_string(solver->max_iter()) + ", which is not possible; remove it");
    }
  }
}

}  // namespace crema::darknet
