#include "inference/classifier.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "compiler/selection.h"
#include "crema/error.h"
#include "data/record_source.h"
#include "inference/image_batcher.h"

namespace crema {

namespace {

constexpr uint64_t kUsualBatch = 32;

std::string Names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return text;
}

// Classes of a blob of scores for `batch` images; 0 where it is none.
int64_t ClassesOf(const Shape& shape, int64_t batch) {
  if (shape.axes() < 2 || shape[0] != batch || shape.count(2) != 1) return 0;
  return shape[1];
}

// The type of the layer that makes the blob's last value.
std::string MakerOf(const ScoringNet& scoring, const NetOptions& options, const std::string& blob) {
  const NetState state = StateOf(scoring.file.net, options);
  std::string type;
  for (const LayerParameter& layer : scoring.file.net.layer()) {
    if (TakesPart(state, layer) && std::count(layer.top().begin(), layer.top().end(), blob) > 0) type = layer.type();
  }
  return type;
}

}  // namespace

TransformationParameter Changed(TransformationParameter transform, const TransformationParameter& changes) {
  if (changes.has_mean_file() || changes.mean_value_size() > 0) {
    transform.clear_mean_file();
    transform.clear_mean_value();
  }
  if (changes.std_value_size() > 0) transform.clear_std_value();
  if (changes.has_resize_shorter_side() || changes.has_resize_height() || changes.has_resize_width()) {
    transform.clear_resize_shorter_side();
    transform.clear_resize_height();
    transform.clear_resize_width();
    transform.clear_resize_param();
  }
  transform.MergeFrom(changes);
  return transform;
}

Classifier::Classifier(ScoringNet scoring, const ImageItems& items, ClassifierOptions options)
    : options_(std::move(options)), input_(scoring.input) {
  options_.net.phase = TEST;
  options_.net.backward = false;
  if (options_.batch == 0) options_.batch = static_cast<int64_t>(std::min(kUsualBatch, items.count()));
  const TransformationParameter transform = Changed(scoring.transform, options_.transform);
  says_values_ = scoring.says_transform || transform.has_scale() || transform.has_mean_file() ||
                 transform.mean_value_size() > 0 || transform.std_value_size() > 0;
  const ImageSize input = InputSize(scoring, items, transform);
  try {
    preparation_ = std::make_shared<ImagePreparation>(transform, transform.mean_file(), input, options_.rgb);
  } catch (const UserError& error) {
    throw UserError(scoring.transform_at, "images cannot be made ready: " + error.diagnostics().front().message);
  }
  Compile(scoring, input);
  ChooseScores(scoring);
}

// A deploy net says it. Of a net for training the crop does, or else the images of its own database, or these.
ImageSize Classifier::InputSize(const ScoringNet& scoring, const ImageItems& items,
                                const TransformationParameter& transform) {
  const auto given = std::find_if(options_.net.shapes.begin(), options_.net.shapes.end(),
                                  [&](const auto& entry) { return entry.first == input_; });
  std::optional<Shape> shape;
  if (given != options_.net.shapes.end()) {
    shape = given->second;
    options_.net.shapes.erase(given);
  } else if (scoring.has_shape) {
    for (const LayerParameter& layer : scoring.file.net.layer()) {
      if (layer.type() != "Input" || layer.top_size() != 1 || layer.top(0) != input_) continue;
      const auto& dims = layer.input_param().shape(0).dim();
      shape = Shape(std::vector<int64_t>(dims.begin(), dims.end()));
    }
  }
  if (shape) {
    const auto& dims = shape->dims();
    if (shape->axes() != 4 || std::any_of(dims.begin(), dims.end(), [](int64_t n) { return n < 1 || n > INT32_MAX; })) {
      throw UserError("the net's input \"" + input_ + "\" is " + shape->ToString() +
                      "; expected batch x channels x height x width: it does not take images");
    }
    return {static_cast<int32_t>((*shape)[1]), static_cast<int32_t>((*shape)[2]), static_cast<int32_t>((*shape)[3])};
  }
  std::optional<ImageSize> stored;
  if (RecordSourceExists(scoring.database)) stored = DatabaseImages(OpenRecordSource(scoring.database)).Size(0);
  for (uint64_t i = 0; !stored && i < items.count(); ++i) stored = items.Size(i);
  if (!stored) throw UserError("none of the images can be read, so the net's input has no size");
  if (transform.force_gray()) stored->channels = 1;
  if (transform.force_color()) stored->channels = 3;
  if (transform.crop_size() > 0) {
    stored->height = stored->width = static_cast<int32_t>(transform.crop_size());
  } else if (const ImageExtent resized = FixedResize(transform); resized.height > 0 && resized.width > 0) {
    stored->height = resized.height;
    stored->width = resized.width;
  }
  return *stored;
}

void Classifier::Compile(const ScoringNet& scoring, const ImageSize& input) {
  options_.net.shapes.emplace_back(input_, Shape{options_.batch, input.channels, input.height, input.width});
  net_ = std::make_unique<Net>(scoring.file, options_.net);
  if (options_.scores.empty()) return;
  // Only outputs are sure to be kept.
  const std::vector<std::string> names = net_->blob_names();
  if (std::find(names.begin(), names.end(), options_.scores) == names.end()) {
    throw UserError("the net has no blob \"" + options_.scores + "\" for the scores; it has " + Names(names));
  }
  const std::vector<NetOutput> outputs = net_->outputs();
  if (std::any_of(outputs.begin(), outputs.end(), [&](const auto& one) { return one.name == options_.scores; })) return;
  net_.reset();
  options_.net.keep_all = true;
  net_ = std::make_unique<Net>(scoring.file, options_.net);
}

void Classifier::ChooseScores(const ScoringNet& scoring) {
  std::vector<std::string> candidates, outputs;
  for (const NetOutput& output : net_->outputs()) {
    outputs.push_back(output.name + " " + output.value.shape().ToString());
    if (ClassesOf(output.value.shape(), options_.batch) > 1) candidates.push_back(output.name);
  }
  scores_ = !options_.scores.empty() ? options_.scores : scoring.scores;
  if (scores_.empty()) {
    if (candidates.size() != 1) {
      throw UserError((candidates.empty() ? "no output of the net holds the scores of classes, batch x classes"
                                          : "several outputs of the net may hold the scores of the classes") +
                      std::string("; it has ") + Names(outputs) + "; say which with --blob=NAME");
    }
    scores_ = candidates[0];
  }
  const Shape shape = net_->blob(scores_).shape();
  classes_ = static_cast<int>(ClassesOf(shape, options_.batch));
  if (classes_ == 0) {
    throw UserError("blob \"" + scores_ + "\" is " + shape.ToString() + " for " + std::to_string(options_.batch) +
                    " images; scores are batch x classes, with nothing but 1 behind");
  }
  probabilities_ = MakerOf(scoring, options_.net, scores_) == "Softmax";
}

void Classifier::Run(const std::shared_ptr<const ImageItems>& items,
                     const std::function<void(const ScoredImage&)>& then) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  ImageBatcher batcher(items, preparation_, options_.batch, options_.threads > 0 ? options_.threads : cores);
  Tensor input;
  for (const NetInput& one : net_->inputs()) {
    if (one.name == input_) input = one.value;
  }
  for (ImageBatch batch; batcher.Next(&batch);) {
    std::memcpy(input.f32(), batch.data, input.bytes());
    net_->Forward();
    const float* scores = net_->blob(scores_).f32();
    for (int64_t row = 0; row < batch.count; ++row) {
      ScoredImage image;
      image.index = batch.first + row;
      image.label = batch.labels[row];
      image.problem = batch.problems[row];
      if (image.problem.empty()) image.scores = {scores + row * classes_, static_cast<size_t>(classes_)};
      then(image);
    }
  }
}

}  // namespace crema
