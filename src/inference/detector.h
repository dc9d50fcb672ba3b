// The objects that a net with a DetectionOutput layer, one of YOLO's or DetectNet's ClusterDetections finds in images.
#ifndef CREMA_INFERENCE_DETECTOR_H_
#define CREMA_INFERENCE_DETECTOR_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inference/image_runner.h"

namespace crema {

struct DetectedObject {
  int label = 0;
  float score = 0;
  // Corners in pixels of the image as it is stored, cut off at its borders, with something between them; the left upper
  // corner of the image is 0, 0.
  float xmin = 0, ymin = 0, xmax = 0, ymax = 0;
};

struct DetectedImage {
  uint64_t index = 0;                   // in the items
  std::string problem;                  // empty, or what is wrong with the image, which then has no objects
  std::vector<DetectedObject> objects;  // the highest score first
};

// Of nets that are told the sizes of images (ScoringNet::image_info) and of images whose proportions are kept: the
// sides that Faster R-CNN's authors scale them to.
struct FittedSides {
  int shorter = 600;  // pixels
  int longer = 1000;  // at most
};

class Detector {
 public:
  // Compiles the net for images like those of `items`; options.net.outputs names the objects, empty: the top of its
  // DetectionOutput layer, which a net that proposes regions may lack, or all tops of ClusterDetections, whose objects
  // are of class 1, 2, ...; options.batch 0: 8, or as many as there are. A
  // net that is told the sizes of images sees each by itself, in a size of its own, unless the transform, or a shape,
  // says another one. Throws UserError where net, transform and images do not fit.
  Detector(ScoringNet scoring, const ImageItems& items, const ImageRunOptions& options, const FittedSides& sides = {});

  ImageRunner& runner() { return *runner_; }
  const ImageRunner& runner() const { return *runner_; }
  // With the background.
  int classes() const { return classes_; }
  // The blob, for messages; the first, where each class has one.
  const std::string& objects() const { return blobs_[0].name; }
  // What scores of objects are above, whatever the threshold of Run: the net makes no others.
  float scores_above() const { return scores_above_; }
  // What no score is above: 1, or nothing.
  float most_score() const { return most_score_; }
  // Images keep their proportions.
  bool fits() const { return fits_; }

  // Runs all images through the net, in their order; objects are those whose score is `threshold` or more. What `then`
  // throws ends it.
  void Run(const std::shared_ptr<const ImageItems>& items, float threshold,
           const std::function<void(const DetectedImage&)>& then);

 private:
  struct ObjectBlob {
    std::string name;
    int label = 0;  // of all its objects; 0: rows say theirs
  };
  struct Found;  // in the images of a batch

  // Of a layer of YOLO's, whose settings count no background.
  template <typename Param>
  void ReadYolo(const Param& param);
  // What the net sees of an image of that size; nothing where that is not known.
  std::optional<ImageExtent> Fitted(const std::optional<ImageSize>& size) const;
  std::unique_ptr<ImageRunner> MakeRunner(const ImageItems& items, const ImageExtent& extent) const;
  ImageRunner& RunnerFor(const ImageItems& items, const ImageExtent& extent);
  void RunThrough(ImageRunner& runner, const std::shared_ptr<const ImageItems>& items, uint64_t first, float threshold,
                  const std::function<void(const DetectedImage&)>& then);

  ScoringNet scoring_;
  ImageRunOptions options_;
  FittedSides sides_;
  bool fits_ = false;
  std::unique_ptr<ImageRunner> runner_;
  // Of other sizes, the latest one last; they use the parameters of runner_.
  std::vector<std::unique_ptr<ImageRunner>> others_;
  std::vector<ObjectBlob> blobs_;
  int classes_ = 0;
  float scores_above_ = -std::numeric_limits<float>::max(), most_score_ = 1;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_DETECTOR_H_
