#include "ops/losses/multi_label.h"

#include "ops/arrays/sums.h"
#include "ops/losses/multi_label_formulas.h"

namespace crema {

void MeasureMultiLabel(int64_t count, const float* scores, const float* label, float* measures) {
  const auto counted = [&](bool yes, bool right) {
    return SumOf(multi_label::Counted{yes, right}, count, scores, label);
  };
  multi_label::Measure({counted(true, false), counted(true, true), counted(false, false), counted(false, true)},
                       measures);
}

}  // namespace crema
