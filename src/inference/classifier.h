// A net that images are run through, with the way they are made ready for it.
#ifndef CREMA_INFERENCE_CLASSIFIER_H_
#define CREMA_INFERENCE_CLASSIFIER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "crema/net.h"
#include "inference/image_items.h"
#include "inference/image_preparation.h"
#include "inference/scoring_net.h"

namespace crema {

struct ClassifierOptions {
  NetOptions net;      // phase is TEST and backward false, whatever it says
  std::string scores;  // blob; empty: as the ScoringNet says
  bool rgb = false;    // images go into the net as red, green, blue; else blue first, as Caffe's do
  int64_t batch = 0;   // images in a pass; 0: 32, or as many as there are
  int threads = 0;     // that decode; 0: one for each core
  // Fields that are set replace those of the net; how to resize, and what to subtract, as a whole.
  TransformationParameter transform;
};

// One image that went through the net.
struct ScoredImage {
  uint64_t index = 0;             // in the items
  int64_t label = -1;             // -1: not known
  std::string problem;            // empty, or what is wrong with the image, which then has no scores
  std::span<const float> scores;  // one a class; valid during the call
};

class Classifier {
 public:
  // Compiles the net for images like those of `items`. Throws UserError where net, transform and images do not fit.
  Classifier(ScoringNet scoring, const ImageItems& items, ClassifierOptions options);

  // To load weights into.
  Net& net() { return *net_; }
  int classes() const { return classes_; }
  // Whether scores are probabilities that sum to 1: a Softmax layer made them.
  bool probabilities() const { return probabilities_; }
  const std::string& scores() const { return scores_; }
  const ImageSize& input() const { return preparation_->input(); }
  // Whether anything said how values are scaled and shifted; false: the net sees bytes from 0 to 255 as they are.
  bool says_values() const { return says_values_; }

  // Runs all images through the net, in their order. What `then` throws ends it.
  void Run(const std::shared_ptr<const ImageItems>& items, const std::function<void(const ScoredImage&)>& then);

 private:
  ImageSize InputSize(const ScoringNet& scoring, const ImageItems& items, const TransformationParameter& transform);
  void Compile(const ScoringNet& scoring, const ImageSize& input);
  void ChooseScores(const ScoringNet& scoring);

  ClassifierOptions options_;
  std::unique_ptr<Net> net_;
  std::shared_ptr<const ImagePreparation> preparation_;
  std::string input_, scores_;
  int classes_ = 0;
  bool probabilities_ = false, says_values_ = false;
};

// With fields of `changes` in place of those of `transform`, as ClassifierOptions says.
TransformationParameter Changed(TransformationParameter transform, const TransformationParameter& changes);

}  // namespace crema

#endif  // CREMA_INFERENCE_CLASSIFIER_H_
