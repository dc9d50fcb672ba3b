// What ops/losses/multi_label.h counts, shared by the CPU and kernels of a GPU.
#ifndef CREMA_OPS_LOSSES_MULTI_LABEL_FORMULAS_H_
#define CREMA_OPS_LOSSES_MULTI_LABEL_FORMULAS_H_

#include "ops/arrays/elementary_functions.h"
#include "ops/losses/multi_label.h"

namespace crema::multi_label {

// 1 for each label of this kind, or, with `right`, each that its score tells.
struct Counted {
  bool yes, right;
  CREMA_FORMULA float operator()(float score, float label) const {
    const bool told = yes ? score >= 0.0f : score < 0.0f;
    const bool own = yes ? label >= 1.0f : label <= -1.0f;
    const float count = (own & (told | !right)) ? 1.0f : 0.0f;
    return label == label ? count : label;
  }
};

struct Counts {
  double yes, right_yes, no, right_no;
};

CREMA_FORMULA float Share(double part, double all) { return all == 0 ? 0.0f : static_cast<float>(part / all); }

CREMA_FORMULA void Measure(const Counts& counts, float* measures) {
  const double told = counts.right_yes + counts.no - counts.right_no;  // to be yes
  measures[0] = Share(counts.right_yes, counts.yes);
  measures[1] = Share(counts.right_no, counts.no);
  // 2 / (yes / right_yes + no / right_no)
  measures[2] =
      Share(2 * counts.right_yes * counts.right_no, counts.yes * counts.right_no + counts.no * counts.right_yes);
  measures[3] = Share(counts.right_yes, told);
  measures[4] = Share(2 * counts.right_yes, told + counts.yes);
}

}  // namespace crema::multi_label

#endif  // CREMA_OPS_LOSSES_MULTI_LABEL_FORMULAS_H_
