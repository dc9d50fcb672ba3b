// Curves in the form of TensorBoard (https://www.tensorflow.org/tensorboard): folders of event files, each a TFRecord
// of Event messages (tensorflow/core/util/event.proto, tensorflow/core/lib/io/record_writer.cc).
#ifndef CREMA_CURVES_EVENT_FOLDER_H_
#define CREMA_CURVES_EVENT_FOLDER_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "curves/training_run.h"

namespace crema {

// Training is in the folder's `train`, test nets in `test`, `test_1`, ..., under the names of outputs, so that
// TensorBoard shows those of one output together; the learning rate is `learning_rate` of `train`. Of several runs each
// has a folder of its name around these.
class EventFolder {
 public:
  // Makes the folder. Throws EnvironmentError where that is not possible, as Write does.
  explicit EventFolder(std::string path);
  ~EventFolder();
  EventFolder(const EventFolder&) = delete;
  EventFolder& operator=(const EventFolder&) = delete;

  // Appends the points that were not there at the last call. The first call replaces what crema wrote to the same
  // folders before; files of others stay. Times are right within a run, of which the last point of the first call is
  // now.
  void Write(const std::vector<TrainingRun>& runs);

 private:
  struct File;

  File& FileOf(const std::string& folder);

  std::string path_;
  std::map<std::string, std::unique_ptr<File>> files_;  // by folder
  // The last iteration, by folder and tag.
  std::map<std::pair<std::string, std::string>, int> written_;
};

}  // namespace crema

#endif  // CREMA_CURVES_EVENT_FOLDER_H_
