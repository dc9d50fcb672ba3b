// When the steps of a net's passes ran.
#ifndef CREMA_REPORT_STEP_RECORDING_H_
#define CREMA_REPORT_STEP_RECORDING_H_

#include <algorithm>
#include <vector>

#include "crema/net.h"

namespace crema {

struct StepEvent {
  int step = 0;
  StepRecorder::Clock::time_point begin, end;

  double seconds() const { return std::chrono::duration<double>(end - begin).count(); }
};

class StepRecording : public StepRecorder {
 public:
  // Allocates nothing while at most `expected` steps run, or so many as fit some 24 MB.
  void Reserve(size_t expected) { events_.reserve(std::min(expected, kMostReserved)); }
  void OnStep(int step, Clock::time_point begin, Clock::time_point end) override {
    events_.push_back({step, begin, end});
  }

  // In the order they ran.
  const std::vector<StepEvent>& events() const { return events_; }

 private:
  static constexpr size_t kMostReserved = 1 << 20;

  std::vector<StepEvent> events_;
};

}  // namespace crema

#endif  // CREMA_REPORT_STEP_RECORDING_H_
