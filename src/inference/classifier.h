// The scores of classes, or the sequences of labels, that a net gives images.
#ifndef CREMA_INFERENCE_CLASSIFIER_H_
#define CREMA_INFERENCE_CLASSIFIER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "inference/image_runner.h"

namespace crema {

// One image that went through the net.
struct ScoredImage {
  uint64_t index = 0;   // in the items
  int64_t label = -1;   // -1: not known
  std::string problem;  // empty, or what is wrong with the image, which then has no scores
  // One a class, means of the views; or the labels of Classifier::sequences(), which end with the first that is
  // negative. Valid during the call.
  std::span<const float> scores;
};

class Classifier {
 public:
  // Compiles the net for images like those of `items`; options.net.outputs names the scores, empty: as the ScoringNet
  // says. Throws UserError where net, transform and images do not fit.
  Classifier(const ScoringNet& scoring, const ImageItems& items, ImageRunOptions options);

  ImageRunner& runner() { return runner_; }
  const ImageRunner& runner() const { return runner_; }
  Net& net() { return runner_.net(); }
  int classes() const { return classes_; }
  // Whether the net tells a sequence of labels for each image, instead of scores: a CtcDecoder layer does.
  bool sequences() const { return sequences_; }
  // The label that stands for none in them; -1 without sequences.
  int blank() const { return blank_; }
  // Whether scores are probabilities that sum to 1: a Softmax layer made them.
  bool probabilities() const { return probabilities_; }
  const std::string& scores() const { return scores_; }

  // Runs all images through the net, in their order. What `then` throws ends it.
  void Run(const std::shared_ptr<const ImageItems>& items, const std::function<void(const ScoredImage&)>& then);

 private:
  void ChooseScores(const ScoringNet& scoring);

  ImageRunner runner_;
  std::string scores_;
  int classes_ = 0, blank_ = -1;
  int64_t row_ = 0;  // numbers of a view
  bool probabilities_ = false, sequences_ = false;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_CLASSIFIER_H_
