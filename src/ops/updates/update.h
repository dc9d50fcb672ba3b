// Changing parameters by their gradients.
#ifndef CREMA_OPS_UPDATES_UPDATE_H_
#define CREMA_OPS_UPDATES_UPDATE_H_

#include <cmath>
#include <cstdint>

#include "ops/updates/loss_scale.h"
#include "ops/updates/update_formulas.h"

namespace crema {

enum class WeightDecay {
  kNone,
  kL1,
  kL2,
  kDecoupled,  // no part of the gradient, but of the value at each update
};

// A run of elements of one parameter and what is done to it in one update.
struct UpdateChunk {
  float* data = nullptr;
  float* gradient = nullptr;
  float* history[2] = {nullptr, nullptr};  // as many as the rule has
  int64_t count = 0;
  float gradient_scale = 1;  // clipping and 1 / iter_size
  WeightDecay decay_type = WeightDecay::kNone;
  float decay = 0;       // weight_decay * decay_mult
  float rate = 0;        // learning rate * lr_mult * RateFactor
  float decay_rate = 0;  // of kDecoupled: learning rate * lr_mult
  int64_t parameter = 0;
};

// g = the scaled gradient of an element whose value is x, with weight decay.
template <WeightDecay kDecay>
CREMA_FORMULA float DecayedGradient(float scale, float gradient, float decay, float x) {
  float g = scale * gradient;
  if constexpr (kDecay == WeightDecay::kL2) g += decay * x;
  if constexpr (kDecay == WeightDecay::kL1) g += x > 0 ? decay : x < 0 ? -decay : 0.0f;
  return g;
}

// What remains of a value x beside the update, `decay` being decay_rate * decay of kDecoupled.
template <WeightDecay kDecay>
CREMA_FORMULA float DecayedValue(float x, float decay) {
  return kDecay == WeightDecay::kDecoupled ? x - decay * x : x;
}

// Layer-wise adaptive rates. Of the squares of all values and gradients of a parameter; 0 where one of them is 0.
CREMA_FORMULA double LocalRatio(float eta, double values, double gradients) {
  return values > 0 && gradients > 0 ? static_cast<double>(eta) * std::sqrt(values / gradients) : 0;
}
// The rate of that parameter, whose gradients count times `scale`.
CREMA_FORMULA float LocalRate(bool clips, float rate, double ratio, float scale) {
  const float local = ratio > 0 && scale > 0 ? static_cast<float>(ratio / static_cast<double>(scale)) : 1.0f;
  if (!clips) return rate * local;
  return rate < local ? rate : local;
}

// All chunks at once, where a device does that.
struct MultiUpdate {
  const UpdateChunk* chunks = nullptr;  // in the device's memory; their rates are multiplied by these
  int64_t count = 0;
  float rate = 0, decay_rate = 0;
  float gradient_scale = 1;  // instead of the chunks'
  // Above 0: gradients are scaled down to this Euclidean norm of all of them (times norm_scale) where they exceed it.
  float largest_norm = 0;
  double norm_scale = 1;
  // Not null: gradients are those of a loss that was multiplied by loss_scale->scale. They are divided by it where they
  // lie; where one is not finite nothing changes. Then it steps as StepLossScale says, if loss_scale_adapts.
  LossScale* loss_scale = nullptr;  // in the device's memory
  bool loss_scale_adapts = false;
  // Above 0: LocalRate, by this eta, instead of the rates of the chunks; so many parameters, whose chunks begin at
  // first_chunks, which has one more entry that ends them.
  float local_eta = 0;
  bool local_clips = false;
  int64_t parameters = 0;
  const int64_t* first_chunks = nullptr;
  double* value_squares = nullptr;  // scratch, one for each chunk
  double* ratios = nullptr;         // scratch, one for each parameter
  double* norm = nullptr;           // gets that norm before it is scaled down, where largest_norm is above 0
  double* squares = nullptr;        // scratch, one for each chunk
};

class MultiUpdater {
 public:
  virtual ~MultiUpdater() = default;
  // Issues the update. Nothing changes where the loss of the latest pass or the norm is not finite, or a value of its
  // data was unusable.
  virtual void Update(const UpdateFormula& formula, const MultiUpdate& update) = 0;
  // Issues what Update does about the loss scale, which must be given, and changes no parameter.
  virtual void DivideByLossScale(const MultiUpdate& update) = 0;
};

}  // namespace crema

#endif  // CREMA_OPS_UPDATES_UPDATE_H_
