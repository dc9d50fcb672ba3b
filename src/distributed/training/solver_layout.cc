#include "distributed/training/solver_layout.h"

#include <algorithm>
#include <memory>
#include <string>

#include "crema/error.h"
#include "solver/rules/plain_update.h"

namespace crema {

StateLayout LayoutOf(const TrainingSteps& steps, const DistributedParameter& settings) {
  StateLayout layout;
  layout.trained = steps.trained_count();
  layout.values = steps.value_count();
  layout.velocity = VelocityInStates(settings, layout.trained);
  if (settings.mode() != DistributedParameter::GRADIENT) {
    layout.history = steps.history_count();
  } else if (settings.topology() != DistributedParameter::STAR) {
    layout.shared_history = steps.history_count();
  }
  for (const TrainingSteps::Block& block : steps.blocks()) {
    if (block.kind != TrainingSteps::Kind::kStatistics) {
      layout.buckets.push_back({static_cast<size_t>(block.count), block.shape.axes() <= 1});
      continue;
    }
    if (layout.batch_norms.size() <= static_cast<size_t>(block.group)) layout.batch_norms.resize(block.group + 1);
    BatchNormPlaces& blobs = layout.batch_norms[block.group];
    if (block.statistics_blob == 0) {
      blobs.mean = block.offset;
      blobs.channels = block.count;
    } else {
      (block.statistics_blob == 1 ? blobs.variance : blobs.factor) = block.offset;
    }
  }
  return layout;
}

GradientUpdate SharedUpdate(const TrainingSteps& steps) {
  return [update = std::shared_ptr<PlainUpdate>(steps.MakePlainUpdate())](uint64_t iteration, const float* gradient,
                                                                          float* values, float* history) {
    update->Apply(static_cast<int>(iteration), gradient, values, history);
  };
}

void CheckVelocity(const StateLayout& layout, size_t numbers) {
  if (numbers == 0 || numbers == static_cast<size_t>(layout.trained)) return;
  throw EnvironmentError("the snapshot's outer momentum has " + std::to_string(numbers) +
                         " numbers, but the net trains " + std::to_string(layout.trained) +
                         ": go on from a snapshot of this net, with lr_mult 0 where it was, or begin anew with its "
                         ".caffemodel as --weights");
}

Payload StateOf(const TrainingSteps& steps, const StateLayout& layout, bool with_history,
                std::span<const float> velocity) {
  const auto state = NewPayload(layout.state_bytes(with_history));
  float* const floats = FloatsOf(*state);
  steps.ReadValues(floats);
  if (layout.velocity > 0) {
    CheckVelocity(layout, velocity.size());
    float* const out = floats + layout.velocity_in_state();
    if (velocity.empty()) {
      std::fill_n(out, layout.velocity, 0.0f);
    } else {
      std::ranges::copy(velocity, out);
    }
  }
  if (layout.shared_history > 0) steps.ReadHistory(floats + layout.shared_history_in_state());
  if (with_history) steps.ReadHistory(floats + layout.history_in_state());
  return state;
}

bool SetState(TrainingSteps& steps, const StateLayout& layout, const Payload& state) {
  const bool with_history = layout.history > 0 && state->size() == layout.state_bytes(true);
  ExpectState(layout, state);
  const float* const floats = FloatsOf(state).data();
  steps.WriteValues(floats);
  if (layout.shared_history > 0) steps.WriteHistory(floats + layout.shared_history_in_state());
  if (with_history) steps.WriteHistory(floats + layout.history_in_state());
  return with_history;
}

void SetValues(TrainingSteps& steps, const StateLayout& layout, const Payload& values) {
  if (values->size() < layout.bytes(false)) {
    throw EnvironmentError("the coordinator's parameters take " + std::to_string(values->size()) +
                           " bytes, those of the net here " + std::to_string(layout.bytes(false)));
  }
  steps.WriteValues(reinterpret_cast<const float*>(values->data()));
}

}  // namespace crema
