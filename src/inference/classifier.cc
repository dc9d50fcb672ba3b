#include "inference/classifier.h"

#include <algorithm>
#include <utility>

#include "base/listed.h"
#include "compiler/selection.h"
#include "crema/error.h"
#include "inference/image_views.h"

namespace crema {

namespace {

// Classes of a blob of scores for `batch` images; 0 where it is none.
int64_t ClassesOf(const Shape& shape, int64_t batch) {
  if (shape.axes() < 2 || shape[0] != batch || shape.count(2) != 1) return 0;
  return shape[1];
}

bool FindsObjects(const NetParameter& net) { return std::any_of(net.layer().begin(), net.layer().end(), MakesObjects); }

ImageRunOptions WithScores(const ScoringNet& scoring, ImageRunOptions options) {
  if (options.net.outputs.empty() && !scoring.scores.empty()) options.net.outputs = {scoring.scores};
  return options;
}

}  // namespace

Classifier::Classifier(const ScoringNet& scoring, const ImageItems& items, ImageRunOptions options)
    : runner_(scoring, items, WithScores(scoring, std::move(options))) {
  ChooseScores(scoring);
}

void Classifier::ChooseScores(const ScoringNet& scoring) {
  const ImageRunOptions& options = runner_.options();
  const int64_t rows = runner_.rows();
  std::vector<std::string> candidates, outputs;
  for (const NetOutput& output : runner_.net().outputs()) {
    outputs.push_back(output.name + " " + output.value.shape().ToString());
    if (ClassesOf(output.value.shape(), rows) > 1) candidates.push_back(output.name);
  }
  if (!options.net.outputs.empty()) {
    scores_ = options.net.outputs[0];
  } else {
    if (candidates.size() != 1) {
      throw UserError((candidates.empty() ? "no output of the net holds the scores of classes, batch x classes"
                                          : "several outputs of the net may hold the scores of the classes") +
                      std::string("; it has ") + Listed(outputs, {.quoted = true}) + "; " +
                      (FindsObjects(scoring.file.net) ? "it finds objects, which crema detect shows"
                                                      : "say which with --blob=NAME") +
                      (candidates.empty() ? ", or let crema extract write what it makes, also of each pixel" : ""));
    }
    scores_ = candidates[0];
  }
  const Shape shape = runner_.net().blob(scores_).shape();
  classes_ = static_cast<int>(ClassesOf(shape, rows));
  if (classes_ == 0) {
    throw UserError("blob \"" + scores_ + "\" is " + shape.ToString() + " for " + std::to_string(rows) +
                    (options.views > 1 ? " views" : " images") +
                    "; scores are batch x classes, with nothing but 1 behind; crema extract writes any blob");
  }
  row_ = classes_;
  const NetParameter& net = scoring.file.net;
  const LayerParameter* maker = MakerOf(net, StateOf(net, options.net), scores_);
  probabilities_ = maker != nullptr && maker->type() == "Softmax";
  sequences_ = maker != nullptr && maker->type() == "CtcDecoder";
  if (sequences_ && options.views > 1) {
    throw UserError("\"" + scores_ + "\" holds sequences of labels, which have no mean; leave --views out");
  }
  if (sequences_) {
    classes_ = static_cast<int>(runner_.net().blob(maker->bottom(0)).shape()[2]);
    blank_ = maker->ctc_decoder_param().blank_label();
  }
}

void Classifier::Run(const std::shared_ptr<const ImageItems>& items,
                     const std::function<void(const ScoredImage&)>& then) {
  const int views = runner_.options().views;
  std::vector<float> means(static_cast<size_t>(row_));
  runner_.Run(items, [&](const ImageBatch& batch) {
    const float* scores = runner_.net().blob(scores_).f32();
    for (int64_t row = 0; row < batch.count; ++row) {
      ScoredImage image;
      image.index = batch.first + row;
      image.label = batch.labels[row].number;
      image.problem = batch.problems[row];
      if (const size_t labels = batch.labels[row].several.size(); image.problem.empty() && labels > 0) {
        image.problem = "has " + std::to_string(labels) +
                        " labels instead of a class, and only these can be counted; test the net on them with crema "
                        "test";
      }
      const float* of_image = scores + row * views * row_;
      if (views > 1) AverageViews(of_image, views, row_, means.data());
      if (image.problem.empty()) image.scores = {views > 1 ? means.data() : of_image, static_cast<size_t>(row_)};
      then(image);
    }
  });
}

}  // namespace crema
