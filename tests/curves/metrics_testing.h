// What MetricsObserver is told in tests.
#ifndef CREMA_TESTS_CURVES_METRICS_TESTING_H_
#define CREMA_TESTS_CURVES_METRICS_TESTING_H_

#include <string>
#include <utility>
#include <vector>

#include "curves/metrics_observer.h"
#include "curves/run_files.h"

namespace crema {

class Metrics : public RunFiles {
 protected:
  std::string path() const { return folder_ / "net_metrics.jsonl"; }

  MetricsOptions Options() {
    MetricsOptions options;
    options.warn = [this](const std::string& message) { warnings_.push_back(message); };
    return options;
  }

  TrainingStart Start(int iteration = 0, int max_iter = 100) const {
    TrainingStart start;
    start.net = "Net \"1\"";
    start.iteration = iteration;
    start.max_iter = max_iter;
    start.snapshot_prefix = folder_ / "net";
    return start;
  }

  static void Iterate(Observer& observer, int from, int to, double loss) {
    for (int i = from; i < to; ++i) {
      IterationEnd end;
      end.iteration = i;
      end.loss = static_cast<float>(loss + i);
      observer.OnIteration(end);
    }
  }

  static Display Shown(int iteration, float rate, std::vector<OutputValue> outputs) {
    return {.iteration = iteration, .learning_rate = rate, .outputs = std::move(outputs)};
  }

  static TestResult Tested(int iteration, int net, std::vector<OutputValue> outputs) {
    return {.iteration = iteration, .net = net, .loss = {}, .outputs = std::move(outputs)};
  }

  std::vector<std::string> warnings_;
};

}  // namespace crema

#endif  // CREMA_TESTS_CURVES_METRICS_TESTING_H_
