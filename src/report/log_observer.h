// Writes what happens in training as Caffe's log lines, word for word, so that tools made for Caffe's logs
// (parse_log.py, extract_seconds.py, parse_log.sh) read them.
#ifndef CREMA_REPORT_LOG_OBSERVER_H_
#define CREMA_REPORT_LOG_OBSERVER_H_

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "crema/observer.h"

namespace crema {

class LogObserver : public Observer {
 public:
  // Gets one line without its end, and whether it tells of an error.
  using Write = std::function<void(bool error, const std::string& line)>;

  // Log lines go to glog, which puts Caffe's prefix before them, and so do notices once training has started: tools
  // that read logs find a prefix in every line. What is said of files before goes to stderr as a compiler would print
  // it, but to glog where that writes files.
  LogObserver();
  // Without `notice_in_training` these are notices, too.
  LogObserver(Write log, Write notice, Write notice_in_training = nullptr);

  // Prints the notice unless the same was printed before.
  void OnNotice(const Diagnostic& notice) override;
  void OnStart(const TrainingStart& start) override;
  void OnWeights(const WeightsLoaded& loaded) override;
  void OnRestored(const SnapshotRestored& restored) override;
  void OnDisplay(const Display& display) override;
  void OnMeanSizes(const MeanSizes& sizes) override;
  void OnClipped(const GradientsClipped& clipped) override;
  void OnOverflowed(const GradientsOverflowed& overflowed) override;
  void OnStep(const LearningRateStepped& stepped) override;
  void OnTestStart(const TestStart& test) override;
  void OnTest(const TestResult& result) override;
  void OnBest(const BestFound& best) override;
  void OnSnapshot(const SnapshotWritten& snapshot) override;
  void OnSnapshotFailed(const SnapshotFailed& failed) override;
  void OnCluster(const ClusterChanged&) override;
  void OnClusterEnd(const ClusterSummary& summary) override;
  void OnEnd(const TrainingEnd& end) override;

 private:
  void Log(const std::string& line) { log_(false, line); }
  void Warn(const std::string& line) { (notice_in_training_ ? notice_in_training_ : notice_)(false, line); }

  Write log_, notice_, notice_in_training_;
  bool started_ = false;
  bool plateau_ = false;  // of lr_policy
  std::set<std::string> notices_;
};

// " (* 1 = 0.31 loss)" for a loss, "" otherwise.
std::string LossNote(const OutputValue& output);
// "class1: 0.5" for each class; none where there is no precision by class.
std::vector<std::string> ClassLines(const OutputValue& output);

}  // namespace crema

#endif  // CREMA_REPORT_LOG_OBSERVER_H_
