// Images with the objects drawn that were found in them.
#ifndef CREMA_INFERENCE_DETECTION_DRAWER_H_
#define CREMA_INFERENCE_DETECTION_DRAWER_H_

#include <string>
#include <vector>

#include "inference/detector.h"
#include "inference/image_items.h"

namespace crema {

// Writes FOLDER/NAME.jpg for each image NAME.ending, in colour, upright and in its own size. Used by one thread.
class DetectionDrawer {
 public:
  // Makes the folder where it is absent. Throws UserError where two of the images would be written as one file, or such
  // a file is there already; `items` and `labels`, the names of the classes or nothing, must outlive this.
  DetectionDrawer(std::string folder, const ImageItems& items, const std::vector<std::string>& labels);

  // Throws EnvironmentError where it cannot be written. An image with a problem is left out.
  void Draw(const DetectedImage& detected) const;

 private:
  std::string FileOf(uint64_t index) const;

  const std::string folder_;
  const ImageItems& items_;
  const std::vector<std::string>& labels_;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_DETECTION_DRAWER_H_
