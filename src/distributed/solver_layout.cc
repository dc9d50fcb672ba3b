#include "distributed/solver_layout.h"

#include <string>

#include "crema/error.h"

namespace crema {

StateLayout LayoutOf(const TrainingSteps& steps, const DistributedParameter& settings) {
  StateLayout layout;
  layout.trained = steps.trained_count();
  layout.values = steps.value_count();
  layout.history = settings.mode() == DistributedParameter::GRADIENT ? 0 : steps.history_count();
  for (const TrainingSteps::Block& block : steps.blocks()) {
    if (block.kind != TrainingSteps::Kind::kStatistics) {
      layout.buckets.push_back({static_cast<size_t>(block.count), block.shape.axes() <= 1});
      continue;
    }
    if (layout.batch_norms.size() <= static_cast<size_t>(block.group)) layout.batch_norms.resize(block.group + 1);
    BatchNormBlobs& blobs = layout.batch_norms[block.group];
    if (block.statistics_blob == 0) {
      blobs.mean = block.offset;
      blobs.channels = block.count;
    } else {
      (block.statistics_blob == 1 ? blobs.variance : blobs.factor) = block.offset;
    }
  }
  return layout;
}

Payload StateOf(const TrainingSteps& steps, const StateLayout& layout, bool with_history) {
  const auto state = std::make_shared<std::vector<std::byte>>(layout.bytes(with_history));
  float* const floats = reinterpret_cast<float*>(state->data());
  steps.ReadValues(floats);
  if (with_history) steps.ReadHistory(floats + layout.values);
  return state;
}

bool SetState(TrainingSteps& steps, const StateLayout& layout, const Payload& state) {
  const bool with_history = layout.history > 0 && state->size() == layout.bytes(true);
  if (!with_history && state->size() != layout.bytes(false)) {
    throw EnvironmentError("the coordinator's parameters take " + std::to_string(state->size()) +
                           " bytes, those of the net here " + std::to_string(layout.bytes(false)));
  }
  const float* const floats = reinterpret_cast<const float*>(state->data());
  steps.WriteValues(floats);
  if (with_history) steps.WriteHistory(floats + layout.values);
  return with_history;
}

}  // namespace crema
