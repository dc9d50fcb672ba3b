#include "inference/detector.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "compiler/selection.h"
#include "crema/error.h"

namespace crema {

namespace {

constexpr uint64_t kUsualBatch = 8;  // images for detectors are large
constexpr int64_t kRowNumbers = 7;   // image, class, score, corners

// The DetectionOutput layer that makes `blob`, or where that is empty the only one.
const LayerParameter& MakerOfObjects(const ScoringNet& scoring, const ImageRunOptions& options) {
  const NetState state = StateOf(scoring.file.net, options.net);
  const LayerParameter* maker = nullptr;
  std::vector<std::string> found;
  for (const LayerParameter& layer : scoring.file.net.layer()) {
    if (layer.type() != "DetectionOutput" || layer.top_size() != 1 || !TakesPart(state, layer)) continue;
    found.push_back(layer.top(0));
    if (options.blob.empty() || layer.top(0) == options.blob) maker = &layer;
  }
  if (found.empty()) {
    throw UserError("the net has no DetectionOutput layer, so it finds no objects; `crema predict` tells classes");
  }
  if (maker == nullptr || (options.blob.empty() && found.size() > 1)) {
    throw UserError((maker != nullptr ? "several DetectionOutput layers make objects: "
                                      : "no DetectionOutput layer makes \"" + options.blob + "\", but ") +
                    QuotedNames(found) + "; say which with --blob=NAME");
  }
  return *maker;
}

ImageRunOptions OptionsFor(const LayerParameter& maker, const ImageItems& items, ImageRunOptions options) {
  if (options.batch == 0) options.batch = static_cast<int64_t>(std::min(kUsualBatch, items.count()));
  options.blob = maker.top(0);
  return options;
}

}  // namespace

Detector::Detector(const ScoringNet& scoring, const ImageItems& items, const ImageRunOptions& options)
    : Detector(MakerOfObjects(scoring, options), scoring, items, options) {}

Detector::Detector(const LayerParameter& maker, const ScoringNet& scoring, const ImageItems& items,
                   const ImageRunOptions& options)
    : runner_(scoring, items, OptionsFor(maker, items, options)),
      objects_(maker.top(0)),
      classes_(static_cast<int>(maker.detection_output_param().num_classes())),
      scores_above_(maker.detection_output_param().has_confidence_threshold()
                        ? maker.detection_output_param().confidence_threshold()
                        : -std::numeric_limits<float>::max()) {
  const bool crops = runner_.transform().crop_size() > 0;
  if (!crops && runner_.transform().pad() == 0) return;
  throw UserError(scoring.transform_at, std::string(crops ? "crop_size cuts images" : "pad adds a border to images") +
                                            ", but boxes are shares of whole ones; remove it, so that images are "
                                            "resized to the net's input");
}

void Detector::Run(const std::shared_ptr<const ImageItems>& items, float threshold,
                   const std::function<void(const DetectedImage&)>& then) {
  runner_.Run(items, [&](const ImageBatch& batch) {
    std::vector<DetectedImage> images(static_cast<size_t>(batch.count));
    std::vector<ImageSize> sizes(images.size());
    for (size_t i = 0; i < images.size(); ++i) {
      images[i].index = batch.first + i;
      images[i].problem = batch.problems[i];
      const std::optional<ImageSize> size = items->Size(images[i].index);
      if (size) sizes[i] = *size;
      if (!size && images[i].problem.empty()) images[i].problem = "is gone while it was looked at";
    }
    const Tensor rows = runner_.net().blob(objects_);
    const float* const end = rows.f32() + rows.count();
    for (const float* row = rows.f32(); row < end; row += kRowNumbers) {
      // Behind the images of the last batch are empty ones.
      if (!(row[0] >= 0 && row[0] < static_cast<float>(images.size())) || !(row[2] >= threshold)) continue;
      const auto image = static_cast<size_t>(row[0]);
      if (!images[image].problem.empty()) continue;
      const auto width = static_cast<float>(sizes[image].width), height = static_cast<float>(sizes[image].height);
      const auto pixel = [](float share, float extent) { return std::clamp(share, 0.0f, 1.0f) * extent; };
      images[image].objects.push_back({static_cast<int>(row[1]), row[2], pixel(row[3], width), pixel(row[4], height),
                                       pixel(row[5], width), pixel(row[6], height)});
    }
    for (DetectedImage& image : images) {
      std::stable_sort(image.objects.begin(), image.objects.end(),
                       [](const DetectedObject& a, const DetectedObject& b) { return a.score > b.score; });
      then(image);
    }
  });
}

}  // namespace crema
