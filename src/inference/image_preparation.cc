#include "inference/image_preparation.h"

#include <optional>
#include <utility>

#include "base/random.h"
#include "crema/error.h"
#include "data/databases/mean_file.h"
#include "data/transforms/transform_check.h"
#include "image/codec.h"
#include "inference/image_views.h"

namespace crema {

namespace {

bool ResizesAlways(const TransformationParameter& param) {
  return FixedResize(param).height > 0 || param.resize_shorter_side() > 0;
}

TransformationParameter WithMiddles(TransformationParameter param) {
  RandomResize::TakeMiddles(&param);
  return param;
}

ImageExtent MeanExtent(const TransformationParameter& param, const std::string& mean_file) {
  if (!param.has_mean_file()) return {};
  const Shape mean = ReadMean(mean_file).shape;
  return {static_cast<int>(mean[1]), static_cast<int>(mean[2])};
}

int CropOf(const TransformationParameter& param, const ImageExtent& mean, const ImageSize& input) {
  if (param.crop_size() > 0) return static_cast<int>(param.crop_size());
  // A mean image larger than a square input is that of images of which the input is the middle, as in Caffe's own nets.
  const bool middle = input.height == input.width && mean.height > input.height && mean.width > input.width;
  return middle ? input.height : 0;
}

void Check(const TransformationParameter& param, int crop, const ImageSize& input) {
  if (const std::optional<TransformMistake> mistake = FindMistake(param)) {
    throw UserError(mistake->field + ": " + mistake->message);
  }
  if (crop > 0 && (crop != input.height || crop != input.width)) {
    throw UserError("crop_size is " + std::to_string(crop) + ", but the net's input is " + input.ToString() +
                    " (channels x height x width); make them equal");
  }
  const int64_t border = 2 * int64_t{param.pad()};
  if (crop == 0 && (border >= input.height || border >= input.width)) {
    throw UserError("pad is " + std::to_string(param.pad()) + ", and the net's input, " + input.ToString() +
                    " (channels x height x width), has no room for an image between such borders; lower pad");
  }
  for (const auto& [field, count] :
       {std::pair("mean_value", param.mean_value_size()), std::pair("std_value", param.std_value_size()),
        std::pair("resize_param.pad_value", param.resize_param().pad_value_size())}) {
    if (count <= 1 || count == input.channels) continue;
    throw UserError("there are " + std::to_string(count) + " " + field + " fields, but the net's input is " +
                    input.ToString() + " (channels x height x width); give one value, or one per channel");
  }
}

// All that the fields say, nothing of it at random. Views are cut out of the whole, and its sizes are not fixed.
Transform TransformOf(TransformationParameter param, const std::string& mean_file, int crop, int views,
                      const ImageSize& input) {
  Check(param, crop, input);
  param.clear_mirror();
  RandomResize::TakeMiddles(&param);
  if (crop > 0) param.set_crop_size(static_cast<uint32_t>(crop));
  if (views > 1) {
    param.clear_crop_size();
    param.clear_random_resized_crop();
    param.clear_fix_crop();
    param.clear_multi_scale();
    RandomResize::Clear(&param);
  }
  return Transform(param, TEST, mean_file);
}

}  // namespace

ImagePreparation::ImagePreparation(const TransformationParameter& param, const std::string& mean_file,
                                   const ImageSize& input, bool rgb, int views)
    : input_(input),
      rgb_(rgb),
      views_(views),
      resizer_(ResizerOf(param)),
      resizes_(ResizesAlways(param)),
      random_(RandomResize::Of(WithMiddles(param))),
      scales_(param.img_rand_resize_upper() > 0),
      mean_(MeanExtent(param, mean_file)),
      crop_(CropOf(param, mean_, input)),
      border_(static_cast<int>(param.pad())),
      transform_(TransformOf(param, mean_file, crop_, views, input)) {}

ImageSize ImagePreparation::InputFor(const TransformationParameter& param, const std::string& mean_file,
                                     const ImageSize& image, StoredAs stored, bool of_layer) {
  if (FindMistake(param)) return image;
  TransformationParameter sizes = param;
  sizes.clear_mean_file();
  const Transform transform(sizes, TEST, "");
  ImageSize size = image;
  if (stored == StoredAs::kCompressed && transform.colors() != DecodeOptions::Colors::kAsStored) {
    size.channels = transform.colors() == DecodeOptions::Colors::kColor ? 3 : 1;
  }
  if (!of_layer && !ResizesAlways(param) && param.has_mean_file()) {
    const ImageExtent mean = MeanExtent(param, mean_file);
    size = {size.channels, mean.height, mean.width};
  }
  return transform.OutputSize(size,
                              stored == StoredAs::kFloats ? Transform::Values::kFloats : Transform::Values::kBytes);
}

ImageExtent ImagePreparation::ResizedBefore(bool of_layer, int height, int width) const {
  const ImageExtent stored{height, width};
  if (resizes_) return stored;
  if (random_) {
    const bool fits = random_->Fits(height, width);
    const ImageExtent from = of_layer || (scales_ && fits) ? stored : WithShorterSide(height, width, crop_);
    return views_ > 1 ? random_->Largest(from.height, from.width) : from;
  }
  if (of_layer && (crop_ > 0 || mean_.height > 0)) return stored;
  if (mean_.height > 0) return mean_;
  if (crop_ > 0) return WithShorterSide(height, width, crop_);
  const bool fits = height + 2 * border_ == input_.height && width + 2 * border_ == input_.width;
  // Of several views the border is what they are cut out of, too.
  if (views_ > 1 && !(of_layer && fits)) return {input_.height, input_.width};
  return {input_.height - 2 * border_, input_.width - 2 * border_};
}

ImageExtent ImagePreparation::ExtentOfWhole(bool of_layer, const ImageSize& image) const {
  const auto [height, width] = ResizedBefore(of_layer, image.height, image.width);
  const ImageSize whole = transform_.OutputSize({image.channels, height, width});
  return {whole.height, whole.width};
}

ImageArea ImagePreparation::PlaceInInput(const ImageExtent& image) const {
  return resizer_.PlaceOf(image, {input_.height, input_.width});
}

template <typename Write>
void ImagePreparation::WriteViews(const ImageSize& size, PreparationBuffers* buffers, float* out,
                                  const Write& write) const {
  if (views_ == 1) return write(out);
  buffers->whole.resize(static_cast<size_t>(size.count()));
  write(buffers->whole.data());
  CutViews(buffers->whole.data(), size, input_, views_, out);
}

std::string ImagePreparation::CheckSize(const ImageSize& size, Transform::Values values) const {
  const std::string problem = transform_.Check(size, values);
  if (!problem.empty()) return problem;
  const ImageSize output = transform_.OutputSize(size, values);
  if (output == input_) return {};
  if (output.channels != input_.channels) {
    return "has " + std::to_string(output.channels) + " channels, but the net's input has " +
           std::to_string(input_.channels) + "; give what the net was trained on";
  }
  if (views_ > 1) {
    if (output.height >= input_.height && output.width >= input_.width) return {};
    return "comes out as " + output.ToString() + ", and is too small to cut the net's input of " + input_.ToString() +
           " (channels x height x width) out of it; set a larger resize_shorter_side, or resize_height and "
           "resize_width";
  }
  return "comes out as " + output.ToString() + ", but the net's input is " + input_.ToString() +
         " (channels x height x width); set resize_height and resize_width to that, or the net's input with --shape to "
         "what comes out; a net that classifies may cut it out of larger ones (resize_shorter_side and crop_size)";
}

std::string ImagePreparation::Decode(std::span<const uint8_t> bytes, Image* image) const {
  DecodeOptions options;
  options.colors = input_.channels == 1 ? DecodeOptions::Colors::kGray : DecodeOptions::Colors::kColor;
  std::string problem = DecodeImage(bytes, options, image);
  if (problem.empty() && rgb_ && image->channels == 3) {
    for (size_t i = 0; i < image->size(); i += 3) std::swap(image->pixels[i], image->pixels[i + 2]);
  }
  return problem;
}

std::string ImagePreparation::FromDecoded(bool of_layer, PreparationBuffers* buffers, float* out) const {
  const Image* image = &buffers->decoded;
  const auto [height, width] = ResizedBefore(of_layer, image->height, image->width);
  if (height != image->height || width != image->width) {
    if (std::string problem = ResizeProblem({image->height, image->width}, {height, width}); !problem.empty()) {
      return problem;
    }
    const ImageArea whole{0, 0, image->height, image->width};
    resizer_.Resize(*image, whole, {height, width}, &buffers->resize, &buffers->resized);
    image = &buffers->resized;
  }
  const ImageSize size{image->channels, image->height, image->width};
  std::string problem = CheckSize(size);
  if (!problem.empty()) return problem;
  WriteViews(transform_.OutputSize(size), buffers, out,
             [&](float* to) { transform_.Apply(*image, RandomStream(0, 0), &buffers->transform, to); });
  return {};
}

std::string ImagePreparation::FromFile(std::span<const uint8_t> bytes, bool of_layer, PreparationBuffers* buffers,
                                       float* out) const {
  const std::string problem = Decode(bytes, &buffers->decoded);
  return problem.empty() ? FromDecoded(of_layer, buffers, out) : problem;
}

std::string ImagePreparation::FromRecord(const DatumView& record, PreparationBuffers* buffers, float* out) const {
  if (record.encoded) {
    const std::string problem = Decode(record.data, &buffers->decoded);
    return problem.empty() ? FromDecoded(true, buffers, out) : problem;
  }
  if (std::string problem = CheckDatum(record); !problem.empty()) return problem;
  const ImageSize& size = record.size;
  if (!record.bytes()) {
    if (std::string problem = CheckSize(size, Transform::Values::kFloats); !problem.empty()) return problem;
    buffers->values.resize(record.float_count);
    record.CopyFloats(buffers->values.data());
    WriteViews(transform_.OutputSize(size, Transform::Values::kFloats), buffers, out,
               [&](float* to) { transform_.Apply(buffers->values.data(), size, RandomStream(0, 0), to); });
    return {};
  }
  const auto [height, width] = ResizedBefore(true, size.height, size.width);
  if (height == size.height && width == size.width) {
    if (std::string problem = CheckSize(size); !problem.empty()) return problem;
    WriteViews(transform_.OutputSize(size), buffers, out, [&](float* to) {
      transform_.Apply(record.data.data(), size, RandomStream(0, 0), &buffers->transform, to);
    });
    return {};
  }
  FromPlanes(record.data.data(), size.channels, size.height, size.width, &buffers->decoded);
  return FromDecoded(true, buffers, out);
}

}  // namespace crema
