#include "inference/image_preparation.h"

#include <optional>
#include <utility>

#include "base/random.h"
#include "crema/error.h"
#include "data/mean_file.h"
#include "data/random_resize.h"
#include "data/transform_check.h"
#include "image/codec.h"

namespace crema {

namespace {

// Of what a Transform does, that which is left after resizing.
TransformationParameter AfterResizing(TransformationParameter param, int crop, int views) {
  param.clear_resize_height();
  param.clear_resize_width();
  param.clear_resize_param();
  param.clear_resize_shorter_side();
  param.clear_random_resized_crop();
  param.clear_fix_crop();
  param.clear_multi_scale();
  RandomResize::Clear(&param);
  param.clear_color_jitter();
  param.clear_force_color();
  param.clear_force_gray();
  param.clear_mirror();
  if (crop > 0) param.set_crop_size(static_cast<uint32_t>(crop));
  if (views > 1) param.clear_crop_size();
  return param;
}

// The middle of random sizes.
uint32_t ShorterSideOf(const TransformationParameter& param) {
  if (param.resize_shorter_side() > 0) return param.resize_shorter_side();
  return (param.img_rand_resize_lower() + param.img_rand_resize_upper()) / 2;
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
  for (const auto& [field, count] :
       {std::pair("mean_value", param.mean_value_size()), std::pair("std_value", param.std_value_size()),
        std::pair("resize_param.pad_value", param.resize_param().pad_value_size())}) {
    if (count <= 1 || count == input.channels) continue;
    throw UserError("there are " + std::to_string(count) + " " + field + " fields, but the net's input is " +
                    input.ToString() + " (channels x height x width); give one value, or one per channel");
  }
}

}  // namespace

ImagePreparation::ImagePreparation(const TransformationParameter& param, const std::string& mean_file,
                                   const ImageSize& input, bool rgb, int views)
    : input_(input),
      rgb_(rgb),
      views_(views),
      fixed_(FixedResize(param)),
      resizer_(ResizerOf(param)),
      shorter_side_(static_cast<int>(ShorterSideOf(param))),
      mean_(MeanExtent(param, mean_file)),
      crop_(CropOf(param, mean_, input)),
      border_(static_cast<int>(param.pad())),
      transform_(AfterResizing(param, crop_, views), TEST, mean_file) {
  Check(param, crop_, input);
}

ImageExtent ImagePreparation::ResizedTo(bool record, int height, int width) const {
  if (fixed_.height > 0) return fixed_;
  if (shorter_side_ > 0) return WithShorterSide(height, width, shorter_side_);
  if (record && (crop_ > 0 || mean_.height > 0)) return {height, width};
  if (mean_.height > 0) return mean_;
  if (crop_ > 0) return WithShorterSide(height, width, crop_);
  return {input_.height, input_.width};
}

ImageExtent ImagePreparation::ExtentOfWhole(bool record, const ImageSize& image) const {
  const auto [height, width] = ResizedTo(record, image.height, image.width);
  return {height + 2 * border_, width + 2 * border_};
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
         " (channels x height x width); set resize_height and resize_width, or resize_shorter_side and crop_size";
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

std::string ImagePreparation::FromDecoded(bool record, PreparationBuffers* buffers, float* out) const {
  const Image* image = &buffers->decoded;
  const auto [height, width] = ResizedTo(record, image->height, image->width);
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

std::string ImagePreparation::FromFile(std::span<const uint8_t> bytes, PreparationBuffers* buffers, float* out) const {
  const std::string problem = Decode(bytes, &buffers->decoded);
  return problem.empty() ? FromDecoded(false, buffers, out) : problem;
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
  const auto [height, width] = ResizedTo(true, size.height, size.width);
  if (height == size.height && width == size.width) {
    if (std::string problem = CheckSize(size); !problem.empty()) return problem;
    WriteViews(transform_.OutputSize(size), buffers, out, [&](float* to) {
      transform_.Apply(record.data.data(), size, RandomStream(0, 0), &buffers->transform, to);
    });
    return {};
  }
  if (size.channels != 1 && size.channels != 3) {
    return "has " + std::to_string(size.channels) + " channels; only images of 1 or 3 can be resized";
  }
  FromPlanes(record.data.data(), size.channels, size.height, size.width, &buffers->decoded);
  return FromDecoded(true, buffers, out);
}

}  // namespace crema
