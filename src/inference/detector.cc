#include "inference/detector.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/listed.h"
#include "compiler/selection.h"
#include "crema/error.h"
#include "data/transforms/transform.h"
#include "inference/region_net.h"

namespace crema {

namespace {

constexpr uint64_t kUsualBatch = 8;  // images for detectors are large
constexpr int64_t kRowNumbers = 7;   // image, class, score, corners as shares of the image's sides
constexpr int64_t kBoxNumbers = 5;   // corners in pixels of what the net sees, score
constexpr size_t kMostSizes = 3;     // of images for which nets are kept, besides the first

bool HasTop(const LayerParameter& layer, const std::string& blob) {
  return std::find(layer.top().begin(), layer.top().end(), blob) != layer.top().end();
}

// The layer that makes the wanted blob, or where none is named the only one that makes objects.
const LayerParameter& MakerOfObjects(const ScoringNet& scoring, const ImageRunOptions& options) {
  const NetState state = StateOf(scoring.file.net, options.net);
  const std::string blob = options.net.outputs.empty() ? "" : options.net.outputs[0];
  const LayerParameter* maker = nullptr;
  std::vector<std::string> found;
  int makers = 0;
  for (const LayerParameter& layer : scoring.file.net.layer()) {
    if (!MakesObjects(layer) || layer.top_size() == 0 || !TakesPart(state, layer)) continue;
    found.insert(found.end(), layer.top().begin(), layer.top().end());
    ++makers;
    if (blob.empty() || HasTop(layer, blob)) maker = &layer;
  }
  if (found.empty()) {
    throw UserError(
        "the net has no DetectionOutput layer, nor one of YOLO's, nor ClusterDetections, so it finds no objects; "
        "`crema predict` tells classes");
  }
  if (maker == nullptr || (blob.empty() && makers > 1)) {
    throw UserError(
        (maker != nullptr ? "several layers make objects: " : "no layer makes objects in \"" + blob + "\", but in ") +
        Listed(found, {.quoted = true}) + "; say which with --blob=NAME");
  }
  return *maker;
}

// Nothing says a size for all images.
bool KeepsProportions(const ScoringNet& scoring, const ImageRunOptions& options) {
  const auto& shapes = options.net.shapes;
  const bool has_shape =
      std::any_of(shapes.begin(), shapes.end(), [&](const auto& s) { return s.first == scoring.input; });
  return !scoring.image_info.empty() && !has_shape &&
         FixedResize(Changed(scoring.transform, options.transform)).height == 0;
}

using StoredSize = std::optional<ImageSize>;  // empty: the image cannot be read

// Some of the images, numbered from 0, whose sizes are known.
class ImageRange : public ImageItems {
 public:
  ImageRange(std::shared_ptr<const ImageItems> items, uint64_t first, std::vector<StoredSize> sizes)
      : items_(std::move(items)), first_(first), sizes_(std::move(sizes)) {}

  uint64_t count() const override { return sizes_.size(); }
  std::string Name(uint64_t i) const override { return items_->Name(first_ + i); }
  StoredSize Size(uint64_t i) const override { return sizes_[i]; }
  std::string Load(uint64_t i, const ImagePreparation& preparation, PreparationBuffers* buffers, float* out,
                   ItemLabel* label) const override {
    return items_->Load(first_ + i, preparation, buffers, out, label);
  }

 private:
  std::shared_ptr<const ImageItems> items_;
  uint64_t first_;
  std::vector<StoredSize> sizes_;
};

}  // namespace

Detector::Detector(ScoringNet scoring, const ImageItems& items, const ImageRunOptions& options,
                   const FittedSides& sides)
    : scoring_(std::move(scoring)), options_(options), sides_(sides) {
  AddDetectionOutput(options_.net, &scoring_);
  const LayerParameter& maker = MakerOfObjects(scoring_, options_);
  const bool top_for_each_class = maker.type() == "ClusterDetections";
  const std::string wanted = options_.net.outputs.empty() ? "" : options_.net.outputs[0];
  options_.net.outputs.clear();
  for (int i = 0; i < maker.top_size(); ++i) {
    if (!wanted.empty() && maker.top(i) != wanted) continue;
    blobs_.push_back({maker.top(i), top_for_each_class ? i + 1 : 0});
    options_.net.outputs.push_back(maker.top(i));
  }
  if (maker.type() == "DetectionOutput") {
    const DetectionOutputParameter& param = maker.detection_output_param();
    classes_ = static_cast<int>(param.num_classes());
    if (param.has_confidence_threshold()) scores_above_ = param.confidence_threshold();
  } else if (maker.type() == "Yolov3DetectionOutput") {
    ReadYolo(maker.yolov3_detection_output_param());
  } else if (maker.type() == "YoloDetectionOutput") {
    ReadYolo(maker.yolo_detection_output_param());
  } else {
    classes_ = maker.top_size() + 1;
    most_score_ = std::numeric_limits<float>::infinity();
  }
  fits_ = KeepsProportions(scoring_, options_);
  if (options_.batch == 0) options_.batch = fits_ ? 1 : static_cast<int64_t>(std::min(kUsualBatch, items.count()));
  if (fits_ && options_.batch > 1) {
    throw UserError(
        "the net is told the sizes of images, which keep their proportions, so that each goes through it by "
        "itself; leave the size of batches out, or resize all images to one size");
  }
  // A net that can be told another size takes any.
  ImageExtent extent =
      scoring_.image_info.empty() ? ImageExtent() : FixedResize(Changed(scoring_.transform, options_.transform));
  for (uint64_t i = 0; fits_ && extent.height == 0 && i < items.count(); ++i) {
    extent = Fitted(items.Size(i)).value_or(ImageExtent());
  }
  runner_ = MakeRunner(items, extent);
  const bool crops = runner_->transform().crop_size() > 0;
  if (!crops && runner_->transform().pad() == 0) return;
  throw UserError(scoring_.transform_at, std::string(crops ? "crop_size cuts images" : "pad adds a border to images") +
                                             ", but boxes are shares of whole ones; remove it, so that images are "
                                             "resized to the net's input");
}

template <typename Param>
void Detector::ReadYolo(const Param& param) {
  classes_ = static_cast<int>(param.num_classes()) + 1;
  scores_above_ = param.confidence_threshold();
}

std::optional<ImageExtent> Detector::Fitted(const StoredSize& size) const {
  if (!size) return std::nullopt;
  return FitInto(size->height, size->width, sides_.shorter, sides_.longer).extent;
}

std::unique_ptr<ImageRunner> Detector::MakeRunner(const ImageItems& items, const ImageExtent& extent) const {
  ImageRunOptions options = options_;
  options.extent = extent;
  if (fits_) {
    options.scale_of = [sides = sides_](const ImageSize& stored) {
      return static_cast<float>(FitInto(stored.height, stored.width, sides.shorter, sides.longer).scale);
    };
  }
  if (runner_) options.net.share_with = &runner_->net();
  return std::make_unique<ImageRunner>(scoring_, items, std::move(options));
}

ImageRunner& Detector::RunnerFor(const ImageItems& items, const ImageExtent& extent) {
  const auto fits = [&](const std::unique_ptr<ImageRunner>& runner) {
    return runner->input().height == extent.height && runner->input().width == extent.width;
  };
  if (fits(runner_)) return *runner_;
  auto at = std::find_if(others_.begin(), others_.end(), fits);
  if (at == others_.end()) {
    if (others_.size() == kMostSizes) others_.erase(others_.begin());
    at = others_.insert(others_.end(), MakeRunner(items, extent));
  }
  std::rotate(at, at + 1, others_.end());
  return *others_.back();
}

void Detector::Run(const std::shared_ptr<const ImageItems>& items, float threshold,
                   const std::function<void(const DetectedImage&)>& then) {
  if (!fits_) return RunThrough(*runner_, items, 0, threshold, then);
  StoredSize next = items->count() > 0 ? items->Size(0) : StoredSize();
  for (uint64_t first = 0, end; first < items->count(); first = end) {
    // Images that cannot be read go with those before them.
    std::vector<StoredSize> sizes = {next};
    const std::optional<ImageExtent> extent = Fitted(next);
    for (end = first + 1; end < items->count(); ++end) {
      next = items->Size(end);
      const std::optional<ImageExtent> other = Fitted(next);
      if (other && (!extent || other->height != extent->height || other->width != extent->width)) break;
      sizes.push_back(next);
    }
    ImageRunner& runner = extent ? RunnerFor(*items, *extent) : *runner_;
    RunThrough(runner, std::make_shared<ImageRange>(items, first, std::move(sizes)), first, threshold, then);
  }
}

struct Detector::Found {
  const ImagePreparation& preparation;
  float threshold;
  std::vector<DetectedImage> images;
  std::vector<ImageSize> sizes;  // as stored

  // Corners are shares of the sides of what the net sees.
  void Add(size_t image, int label, float score, const std::array<float, 4>& corners) {
    if (!(score >= threshold) || !images[image].problem.empty()) return;
    const auto [channels, height, width] = sizes[image];
    const ImageSize& input = preparation.input();
    const ImageArea place = preparation.PlaceInInput({height, width});
    const auto pixel = [](float share, int of, int first, int extent, int pixels) {
      if (extent != of)
        share = (share * static_cast<float>(of) - static_cast<float>(first)) / static_cast<float>(extent);
      return std::clamp(share, 0.0f, 1.0f) * static_cast<float>(pixels);
    };
    const auto x = [&](float share) { return pixel(share, input.width, place.left, place.width, width); };
    const auto y = [&](float share) { return pixel(share, input.height, place.top, place.height, height); };
    const DetectedObject object = {label, score, x(corners[0]), y(corners[1]), x(corners[2]), y(corners[3])};
    // What lies beside the image is cut off to nothing.
    if (object.xmax > object.xmin && object.ymax > object.ymin) images[image].objects.push_back(object);
  }

  // As DetectionOutput and the layers of YOLO make them.
  void AddRows(const Tensor& rows) {
    const float* const end = rows.f32() + rows.count();
    for (const float* row = rows.f32(); row < end; row += kRowNumbers) {
      // Behind the images of the last batch are empty ones.
      if (!(row[0] >= 0 && row[0] < static_cast<float>(images.size()))) continue;
      Add(static_cast<size_t>(row[0]), static_cast<int>(row[1]), row[2], {row[3], row[4], row[5], row[6]});
    }
  }

  // As ClusterDetections makes them, for each image as many; rows of 0 are none.
  void AddBoxes(const Tensor& boxes, int label) {
    const auto width = static_cast<float>(preparation.input().width);
    const auto height = static_cast<float>(preparation.input().height);
    for (size_t image = 0; image < images.size(); ++image) {
      const int64_t of_image = boxes.shape()[1] * kBoxNumbers;
      const float* const first = boxes.f32() + static_cast<int64_t>(image) * of_image;
      for (const float* row = first; row < first + of_image; row += kBoxNumbers) {
        if (!(row[2] > row[0] && row[3] > row[1])) continue;
        Add(image, label, row[4], {row[0] / width, row[1] / height, row[2] / width, row[3] / height});
      }
    }
  }
};

void Detector::RunThrough(ImageRunner& runner, const std::shared_ptr<const ImageItems>& items, uint64_t first,
                          float threshold, const std::function<void(const DetectedImage&)>& then) {
  runner.Run(items, [&](const ImageBatch& batch) {
    Found found{runner.preparation(), threshold, std::vector<DetectedImage>(static_cast<size_t>(batch.count)), {}};
    found.sizes.resize(found.images.size());
    for (size_t i = 0; i < found.images.size(); ++i) {
      DetectedImage& image = found.images[i];
      image.index = first + batch.first + i;
      image.problem = batch.problems[i];
      const std::optional<ImageSize> size = items->Size(batch.first + i);
      if (size) found.sizes[i] = *size;
      if (!size && image.problem.empty()) image.problem = "is gone while it was looked at";
    }
    for (const ObjectBlob& blob : blobs_) {
      const Tensor objects = runner.net().blob(blob.name);
      blob.label > 0 ? found.AddBoxes(objects, blob.label) : found.AddRows(objects);
    }
    for (DetectedImage& image : found.images) {
      std::stable_sort(image.objects.begin(), image.objects.end(),
                       [](const DetectedObject& a, const DetectedObject& b) { return a.score > b.score; });
      then(image);
    }
  });
}

}  // namespace crema
