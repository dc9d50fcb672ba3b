// Which batches of a stream somebody reads who shares it with others.
#ifndef CREMA_BATCH_SCHEDULE_H_
#define CREMA_BATCH_SCHEDULE_H_

#include <cstdint>

namespace crema {

// `run` batches from `first` on, then as many from first + stride on, and so on. run >= 1, stride >= run; the default
// is all.
struct BatchSchedule {
  uint64_t first = 0, run = 1, stride = 1;

  bool valid() const { return run >= 1 && stride >= run; }
  // Nothing is left out between two runs.
  bool contiguous() const { return run == stride; }
  // How far behind `first` the batch lies that is read after k others.
  uint64_t Offset(uint64_t k) const { return k / run * stride + k % run; }
};

}  // namespace crema

#endif  // CREMA_BATCH_SCHEDULE_H_
