// What each machine of a training on several was at, as a trace (report/trace_writer.h) that is written meanwhile.
#ifndef CREMA_REPORT_CLUSTER_TIMELINE_H_
#define CREMA_REPORT_CLUSTER_TIMELINE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "crema/observer.h"
#include "report/trace_writer.h"

namespace crema {

// A track with the coordinator's rounds, one with its tests and snapshots, and one for each place of a worker. Where
// values travel while a worker trains on, they are in a second one of that worker. What was written a second ago is in
// the file, whatever happens to the process; training goes on where it cannot be written.
class ClusterTimeline : public Observer {
 public:
  // Takes about 150 MB.
  static constexpr int64_t kMostEvents = 1'000'000;

  // Throws EnvironmentError where `path` cannot be written. A file that is there is replaced when training starts.
  explicit ClusterTimeline(std::string path, int64_t most_events = kMostEvents);
  // Makes a whole of what there is.
  ~ClusterTimeline() override;
  ClusterTimeline(const ClusterTimeline&) = delete;
  ClusterTimeline& operator=(const ClusterTimeline&) = delete;

  // Why writing ended early; empty while nothing went wrong.
  const std::string& error() const { return error_; }
  // Later rounds were left out: there were too many.
  bool full() const { return full_; }

  void OnStart(const TrainingStart& start) override;
  void OnTestStart(const TestStart& test) override;
  void OnTest(const TestResult& result) override;
  void OnSnapshot(const SnapshotWritten& snapshot) override;
  void OnRound(const RoundCommitted& round) override;
  void OnCluster(const ClusterChanged& change) override;
  void OnClusterEnd(const ClusterSummary&) override { Flush(); }
  void OnEnd(const TrainingEnd&) override { Finish(); }

 private:
  // Which names a place had.
  struct Place {
    std::vector<std::string> names;
    bool has_values = false;  // its second track is used
  };

  bool MayAdd();
  // Of the time so far what lies behind the track's last span, and nothing where that is none.
  void Add(const std::string& name, const std::string& category, int track, int64_t begin, int64_t end,
           const std::function<void(JsonWriter&)>& arguments = {});
  void AddWorker(const RoundCommitted& round, const WorkerInRound& worker);
  void NameTracks(const WorkerInRound& worker, bool has_values);
  int64_t Now() const;
  int64_t FromMilliseconds(int64_t time) const;
  void FlushNowAndThen();
  void Flush();
  void Write(const std::string& text);
  void Finish();
  void Close();

  const std::string path_;
  const int64_t most_events_, origin_;  // nanoseconds of the steady clock
  TraceWriter writer_{TraceWriter::Form::kArray};
  int fd_ = -1;
  bool started_ = false, full_ = false, made_ = false;
  int64_t events_ = 0, flushed_ = 0, test_ = 0;
  int64_t round_end_ = 0;        // of the last one
  std::map<int, int64_t> ends_;  // of tracks: what they are filled to
  std::map<uint32_t, Place> places_;
  std::string error_;
};

}  // namespace crema

#endif  // CREMA_REPORT_CLUSTER_TIMELINE_H_
