// A net that images are run through, with the way they are made ready for it.
#ifndef CREMA_INFERENCE_IMAGE_RUNNER_H_
#define CREMA_INFERENCE_IMAGE_RUNNER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crema/net.h"
#include "inference/image_batcher.h"
#include "inference/image_items.h"
#include "inference/image_preparation.h"
#include "inference/scoring_net.h"

namespace crema {

struct ImageRunOptions {
  // Phase is TEST and backward false, whatever it says; `outputs` are the blobs to be looked at.
  NetOptions net;
  bool rgb = false;  // images go into the net as red, green, blue; else blue first, as Caffe's do
  // Views of an image (image_views.h), which are rows of a batch one after the other. Not for nets with
  // ScoringNet::image_info.
  int views = 1;
  int64_t batch = 0;  // images in a pass, at most all; 0: as many as have 32 views
  int threads = 0;    // that decode; 0: one for each core
  // Fields that are set replace those of the net; how to resize, and what to subtract, as a whole.
  TransformationParameter transform;
  // Height and width of the net's input, to which images are resized, whatever it says; 0: as it says.
  ImageExtent extent = {};
  // What a net with ScoringNet::image_info is told that an image of that size was scaled by; none: 1.
  std::function<float(const ImageSize& stored)> scale_of;
};

class ImageRunner {
 public:
  // Compiles the net for images like those of `items`. Throws UserError where net, transform and images do not fit.
  ImageRunner(const ScoringNet& scoring, const ImageItems& items, ImageRunOptions options);

  // To load weights into.
  Net& net() { return *net_; }
  const Net& net() const { return *net_; }
  const ImageRunOptions& options() const { return options_; }
  // Of a batch: each view of each image.
  int64_t rows() const { return options_.batch * options_.views; }
  const ImageSize& input() const { return preparation_->input(); }
  const ImagePreparation& preparation() const { return *preparation_; }
  // How images are made ready, of the net and the options.
  const TransformationParameter& transform() const { return transform_; }
  // Whether anything said how values are scaled and shifted; false: the net sees bytes from 0 to 255 as they are.
  bool says_values() const { return says_values_; }
  // What is done to images instead of what the data layer of a net for training would do; empty where nothing is.
  std::string note() const;

  // What is to be said of a net whose layers normalise by the batch in TEST, too, so that images of a pass act on each
  // other; empty where none does, or a pass holds a single row.
  std::vector<Diagnostic> warnings() const;

  // Runs all images through the net, in their order; `then` looks at the blobs after each batch. What it throws ends
  // it.
  void Run(const std::shared_ptr<const ImageItems>& items, const std::function<void(const ImageBatch&)>& then);

 private:
  ImageSize InputSize(const ScoringNet& scoring, const ImageItems& items);
  void CheckViews(const ScoringNet& scoring, const ImageItems& items) const;
  void Compile(const ScoringNet& scoring, const ImageSize& input);
  void WriteInfo(const ImageItems& items, const ImageBatch& batch, const Tensor& info) const;

  ImageRunOptions options_;
  TransformationParameter transform_;
  std::unique_ptr<Net> net_;
  std::shared_ptr<const ImagePreparation> preparation_;
  std::string input_, image_info_;
  std::optional<ImageSize> own_size_;  // of the first image that the net names, as it is stored
  bool of_layer_;                      // images are made ready as a data layer does
  bool says_values_ = false;
};

// With fields of `changes` in place of those of `transform`, as ImageRunOptions says.
TransformationParameter Changed(TransformationParameter transform, TransformationParameter changes);

}  // namespace crema

#endif  // CREMA_INFERENCE_IMAGE_RUNNER_H_
