#include "inference/image_runner.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "compiler/selection.h"
#include "crema/error.h"
#include "data/loaders/ordered_work.h"
#include "data/transforms/transform.h"
#include "graph/batch_norm_modes.h"
#include "graph/program.h"
#include "inference/own_images.h"
#include "report/assumed_inputs.h"
#include "schema/dummy_shape.h"

namespace crema {

namespace {

constexpr uint64_t kUsualRows = 32;
constexpr int64_t kInfoNumbers = 3;  // of an image: height and width as the net sees it, what it was scaled by

// What DummyData layers make for each image of the file's `batch`, for `rows` of them.
BlobShapes DummyShapes(const NetFile& file, const NetOptions& options, int64_t batch, int64_t rows) {
  const NetState state = StateOf(file.net, options);
  BlobShapes shapes;
  for (const LayerParameter& layer : file.net.layer()) {
    if (layer.type() != "DummyData" || !TakesPart(state, layer)) continue;
    for (int top = 0; top < layer.top_size(); ++top) {
      Shape shape = ShapeOf(layer.dummy_data_param(), top);
      const auto given = [&](const auto& entry) { return entry.first == layer.top(top); };
      if (shape.axes() == 0 || shape[0] != batch || std::any_of(options.shapes.begin(), options.shapes.end(), given))
        continue;
      shape.set(0, rows);
      shapes.emplace_back(layer.top(top), shape);
    }
  }
  return shapes;
}

}  // namespace

TransformationParameter Changed(TransformationParameter transform, TransformationParameter changes) {
  if (changes.has_mean_file() || changes.mean_value_size() > 0) {
    transform.clear_mean_file();
    transform.clear_mean_value();
  }
  if (changes.std_value_size() > 0) transform.clear_std_value();
  const bool fits = transform.resize_param().resize_mode() == ResizeParameter::FIT_LARGE_SIZE_AND_PAD;
  if (fits && changes.resize_height() > 0 && changes.resize_width() > 0) {
    transform.mutable_resize_param()->set_height(changes.resize_height());
    transform.mutable_resize_param()->set_width(changes.resize_width());
    changes.clear_resize_height();
    changes.clear_resize_width();
  } else if (changes.has_resize_shorter_side() || changes.has_resize_height() || changes.has_resize_width()) {
    transform.clear_resize_shorter_side();
    transform.clear_resize_height();
    transform.clear_resize_width();
    transform.clear_resize_param();
    RandomResize::Clear(&transform);
  }
  transform.MergeFrom(changes);
  return transform;
}

ImageRunner::ImageRunner(const ScoringNet& scoring, const ImageItems& items, ImageRunOptions options)
    : options_(std::move(options)),
      transform_(Changed(scoring.transform, options_.transform)),
      input_(scoring.input),
      image_info_(scoring.image_info),
      of_layer_(items.of_layer() || scoring.reader.empty() || scoring.reader == "MemoryData"),
      says_values_(scoring.says_transform || transform_.has_scale() || transform_.has_mean_file() ||
                   transform_.mean_value_size() > 0 || transform_.std_value_size() > 0) {
  options_.net.phase = TEST;
  options_.net.backward = false;
  uint64_t images = static_cast<uint64_t>(options_.batch);
  if (images == 0) images = std::max<uint64_t>(1, kUsualRows / static_cast<uint64_t>(options_.views));
  options_.batch = static_cast<int64_t>(std::min(images, items.count()));
  ImageSize input = InputSize(scoring, items);
  if (options_.extent.height > 0) {
    input.height = options_.extent.height;
    input.width = options_.extent.width;
    TransformationParameter resize;
    resize.set_resize_height(static_cast<uint32_t>(input.height));
    resize.set_resize_width(static_cast<uint32_t>(input.width));
    transform_ = Changed(transform_, resize);
  }
  try {
    preparation_ =
        std::make_shared<ImagePreparation>(transform_, transform_.mean_file(), input, options_.rgb, options_.views);
  } catch (const UserError& error) {
    // What flags changed is no mistake of the net's.
    const Location where = options_.transform.ByteSizeLong() > 0 ? Location{} : scoring.transform_at;
    throw UserError(where, "images cannot be made ready: " + error.diagnostics().front().message);
  }
  CheckViews(scoring, items);
  Compile(scoring, input);
}

// A deploy net says it. Of a net for training the crop does, or else the images of its own database, or these.
ImageSize ImageRunner::InputSize(const ScoringNet& scoring, const ImageItems& items) {
  const auto given = std::find_if(options_.net.shapes.begin(), options_.net.shapes.end(),
                                  [&](const auto& entry) { return entry.first == input_; });
  std::optional<Shape> shape;
  if (given != options_.net.shapes.end()) {
    shape = given->second;
    options_.net.shapes.erase(given);
  } else if (scoring.has_shape) {
    for (const LayerParameter& layer : scoring.file.net.layer()) {
      const auto top = std::find(layer.top().begin(), layer.top().end(), input_);
      if (layer.type() != "Input" || top == layer.top().end()) continue;
      const auto& shapes = layer.input_param().shape();
      const auto& dims = shapes.Get(shapes.size() == 1 ? 0 : static_cast<int>(top - layer.top().begin())).dim();
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
  const auto input_for = [&](const ImageItems& of, uint64_t i, const ImageSize& size) {
    return ImagePreparation::InputFor(transform_, transform_.mean_file(), size, of.stored_as(i), of.of_layer());
  };
  const bool are_own = items.of_layer() && scoring.database.empty();  // not looked for a second time
  if (!are_own) {
    try {
      if (const std::shared_ptr<const ImageItems> own = OwnImages(scoring)) {
        own_size_ = own->Size(0);
        if (own_size_) return input_for(*own, 0, *own_size_);
      }
    } catch (const UserError&) {  // of data that nobody asked for
    } catch (const EnvironmentError&) {
    }
  }
  for (uint64_t i = 0; i < items.count(); ++i) {
    if (const std::optional<ImageSize> size = items.Size(i)) return input_for(items, i, *size);
  }
  throw UserError("none of the images can be read, so the net's input has no size");
}

std::string ImageRunner::note() const {
  if (of_layer_ || !preparation_->fits_crop()) return {};
  const int crop = input().height;
  const int shorter = own_size_ ? std::min(own_size_->height, own_size_->width) : 0;
  if (shorter == crop) return {};
  return "the data layer takes the centre of " + std::to_string(crop) + "x" + std::to_string(crop) +
         " (crop_size) out of images as they are" +
         (shorter > 0 ? ", the first of which has " + std::to_string(shorter) + " pixels on its shorter side" : "") +
         "; those given here are resized until that side has " + std::to_string(crop) +
         ", so that the net sees more of them: give --shorter_side=" + (shorter > 0 ? std::to_string(shorter) : "N") +
         " to resize them as large as those";
}

// Views of images that are no larger than they are would be one and the same: the first image tells.
void ImageRunner::CheckViews(const ScoringNet& scoring, const ImageItems& items) const {
  if (options_.views == 1) return;
  if (!image_info_.empty()) {
    throw UserError("the net is told the sizes of images (\"" + image_info_ + "\"), and sees each as a whole; leave " +
                    "--views out");
  }
  if (options_.views == 2) return;
  std::optional<ImageSize> stored;
  uint64_t first = 0;
  while (first < items.count() && !(stored = items.Size(first))) ++first;
  if (!stored) return;
  const ImageExtent whole = preparation_->ExtentOfWhole(items.of_layer(), *stored);
  const int height = input().height, width = input().width;
  if (whole.height > height && whole.width > width) return;
  // The input of a net for training may be as large as images are resized, whatever that is.
  const ImageExtent resized = FixedResize(transform_);
  const bool follows = !scoring.has_shape && resized.height == height && resized.width == width;
  const auto larger = [](int side) { return std::to_string((side * 8 + 6) / 7); };  // as 256 to 224
  throw UserError(
      Location{items.Name(first)},
      "comes out as " + std::to_string(whole.height) + "x" + std::to_string(whole.width) +
          " (height x width) and the net's input is " + std::to_string(height) + "x" + std::to_string(width) +
          ", so that there are no corners to cut out of it; " +
          (follows
               ? "say how large its input is, with --shape=" + input_ + "=N,C,H,W or crop_size in transform_param"
               : "resize images larger, as with " +
                     (height == width ? "--shorter_side=" + larger(height) + " (resize_shorter_side in transform_param)"
                                      : "--resize=" + larger(height) + "x" + larger(width))) +
          ", or take --views=2, the image and its mirror image");
}

void ImageRunner::Compile(const ScoringNet& scoring, const ImageSize& input) {
  options_.net.shapes.emplace_back(input_, Shape{rows(), input.channels, input.height, input.width});
  if (!image_info_.empty()) options_.net.shapes.emplace_back(image_info_, Shape{options_.batch, kInfoNumbers});
  try {
    net_ = std::make_unique<Net>(scoring.file, options_.net);
  } catch (const UserError&) {
    // What is made up beside the images was for as many as the file's own batch has.
    BlobShapes shapes = DummyShapes(scoring.file, options_.net, scoring.batch, rows());
    if (shapes.empty()) throw;
    std::move(shapes.begin(), shapes.end(), std::back_inserter(options_.net.shapes));
    net_ = std::make_unique<Net>(scoring.file, options_.net);
  }
}

std::vector<Diagnostic> ImageRunner::warnings() const {
  if (rows() == 1) return {};
  const CompiledNet& compiled = net_->compiled();
  const Node* first = nullptr;
  int layers = 0;
  for (const Node& node : compiled.graph.nodes) {
    if (!NormalizesByBatch(*node.param, TEST)) continue;
    if (layers++ == 0) first = &node;
  }
  if (!first) return {};
  const bool segnet = first->param->type() == "BN";
  Diagnostic warning;
  warning.severity = Diagnostic::Severity::kWarning;
  if (compiled.file.source) warning.where = compiled.file.source->Layer(first->index_in_file);
  warning.message = "layer \"" + first->name() + "\" (" + first->type->name + ")" +
                    (layers > 1 ? " and " + std::to_string(layers - 1) + " more" : "") +
                    (layers > 1 ? " normalise" : " normalises") + " by the " +
                    (options_.views > 1 ? "views" : "images") + " of each pass, of which there are " +
                    std::to_string(rows()) + ": what comes of an image depends on those beside it. " +
                    (segnet ? "--batch=1 lets each stand for itself; write bn_mode: INFERENCE where the weights hold "
                              "the statistics of the training data (crema bn_statistics gathers them)"
                            : "Leave use_global_stats: false out, so that running statistics are used; --batch=1 lets "
                              "each stand for itself");
  return {warning};
}

void ImageRunner::WriteInfo(const ImageItems& items, const ImageBatch& batch, const Tensor& info) const {
  for (int64_t i = 0; i < options_.batch; ++i) {
    float scale = 1;
    if (options_.scale_of && i < batch.count) {
      const std::optional<ImageSize> stored = items.Size(batch.first + static_cast<uint64_t>(i));
      if (stored) scale = options_.scale_of(*stored);
    }
    const float numbers[kInfoNumbers] = {static_cast<float>(input().height), static_cast<float>(input().width), scale};
    std::copy(numbers, numbers + kInfoNumbers, info.f32() + i * kInfoNumbers);
  }
}

void ImageRunner::Run(const std::shared_ptr<const ImageItems>& items,
                      const std::function<void(const ImageBatch&)>& then) {
  ImageBatcher batcher(items, preparation_, options_.batch, WorkThreads(options_.threads));
  Tensor input, info;
  for (const NetInput& one : net_->inputs()) {
    if (one.name == input_) input = one.value;
    if (one.name == image_info_) info = one.value;
  }
  for (ImageBatch batch; batcher.Next(&batch);) {
    std::memcpy(input.f32(), batch.data, input.bytes());
    if (info.defined()) WriteInfo(*items, batch, info);
    net_->Forward();
    then(batch);
  }
}

}  // namespace crema
