// How well outputs that are each by itself yes or no are told, f32.
#ifndef CREMA_OPS_LOSSES_MULTI_LABEL_H_
#define CREMA_OPS_LOSSES_MULTI_LABEL_H_

#include <cstdint>

namespace crema {

inline constexpr int kMultiLabelMeasures = 5;

// Of `count` scores and labels. A label without its fraction is yes above 0 and no below, and at 0 does not count; a
// score tells yes from 0 on. measures: the share of yes that is told, of no that is told, their harmonic mean, the
// share of yes among those that are told to be, and the harmonic mean of this and the first (F1); 0 where there is
// nothing to divide by. A score that is no number is wrong; a label that is none makes all measures NaN.
void MeasureMultiLabel(int64_t count, const float* scores, const float* label, float* measures);

}  // namespace crema

#endif  // CREMA_OPS_LOSSES_MULTI_LABEL_H_
