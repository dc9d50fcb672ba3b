#include "data/loaders/video_loader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "crema/error.h"
#include "data/loaders/encoded_image.h"
#include "data/loaders/image_list_loader.h"

namespace crema {

namespace {

int ChannelsOf(const VideoClip& clip) { return clip.is_flow() ? 1 : 3; }

// Value i of the `channels` of image `image`.
float ChannelValue(const google::protobuf::RepeatedField<float>& values, int image, int channels, int i) {
  return values[(image * channels + i) % values.size()];
}

// What is subtracted from image `image` of an item.
MeanImage MeanOfImage(const MeanImage& all, const VideoClip& clip, int image) {
  const int64_t channels = ChannelsOf(clip), height = all.shape[-2], width = all.shape[-1], plane = height * width;
  MeanImage mean;
  mean.shape = Shape{channels, height, width};
  for (int64_t c = 0; c < channels; ++c) {
    const int64_t at = clip.is_volume() ? c * clip.frames() + image : image * channels + c;
    const auto begin = all.values.begin() + at * plane;
    mean.values.insert(mean.values.end(), begin, begin + plane);
  }
  return mean;
}

}  // namespace

ClipMean ReadClipMean(const std::string& path, const VideoClip& clip) {
  ClipMean mean{clip.is_volume() ? ReadVolumeMean(path) : ReadMean(path), path};
  const Shape& shape = mean.image.shape;
  const Shape wanted = clip.ShapeOf({ChannelsOf(clip), static_cast<int>(shape[-2]), static_cast<int>(shape[-1])});
  if (shape == wanted) return mean;
  throw UserError("mean file \"" + path + "\" is " + shape.ToString() + ", but items are " + wanted.ToString() +
                  (clip.is_volume() ? " (channels x length" : " (channels") +
                  " x height x width) before they are cropped; give mean_value instead");
}

std::optional<VideoMistake> ClipTransforms::FindMistake(const TransformationParameter& param, const VideoClip& clip) {
  const int all = clip.is_volume() ? ChannelsOf(clip) : clip.images() * ChannelsOf(clip);
  for (const auto& [field, count] :
       {std::pair("mean_value", param.mean_value_size()), {"std_value", param.std_value_size()}}) {
    if (count == 0 || all % count == 0) continue;
    return VideoMistake{field, "there are " + std::to_string(count) + " " + field + " fields, but an item has " +
                                   std::to_string(all) +
                                   " channels; give one value, or as many as they can be divided by, which are "
                                   "repeated for the others"};
  }
  return {};
}

ClipTransforms::ClipTransforms(const TransformationParameter& param, Phase phase, const VideoClip& clip,
                               const ClipMean* mean) {
  const int channels = ChannelsOf(clip), means = param.mean_value_size(), deviations = param.std_value_size();
  CREMA_CHECK(!FindMistake(param, clip));
  // After so many images the values are those of the first one again.
  const auto images_of = [&](int count) { return std::lcm(std::max(1, count), channels) / channels; };
  const int of_values = std::lcm(std::lcm(images_of(means), images_of(deviations)), clip.is_flow() ? 2 : 1);
  const std::string path = mean != nullptr ? mean->path : "";
  const int period = mean != nullptr ? clip.images() : of_values;
  for (int image = 0; image < period; ++image) {
    TransformationParameter own = param;
    own.clear_is_flow();
    own.clear_mean_value();
    own.clear_std_value();
    for (int c = 0; c < (means > 1 ? channels : means); ++c) {
      own.add_mean_value(ChannelValue(param.mean_value(), image, channels, c));
    }
    for (int c = 0; c < (deviations > 1 ? channels : deviations); ++c) {
      own.add_std_value(ChannelValue(param.std_value(), image, channels, c));
    }
    std::optional<MeanImage> own_mean;
    if (mean != nullptr) own_mean = MeanOfImage(mean->image, clip, image);
    plain_.emplace_back(own, phase, path, own_mean, Transform::SmallImages::kRefused);
    if (!param.is_flow()) continue;
    // (255 - v - mean) scale is (v - (255 - mean)) (-scale).
    if (own_mean) {
      for (float& value : own_mean->values) value = 255 - value;
    } else {
      if (means == 0) own.add_mean_value(0);
      for (float& value : *own.mutable_mean_value()) value = 255 - value;
    }
    own.set_scale(-own.scale());
    inverted_.emplace_back(own, phase, path, std::move(own_mean), Transform::SmallImages::kRefused);
  }
}

const Transform& ClipTransforms::Of(int image, const RandomStream& random) const {
  const size_t of_period = static_cast<size_t>(image) % plain_.size();
  const bool inverts = !inverted_.empty() && image % 2 == 0 && plain_[of_period].Mirrors(random);
  return inverts ? inverted_[of_period] : plain_[of_period];
}

VideoLoader::VideoLoader(std::shared_ptr<const ImageList> list, VideoClip clip, ClipTransforms transforms,
                         SampleOrder order)
    : list_(std::move(list)), clip_(std::move(clip)), transforms_(std::move(transforms)), order_(order) {
  CREMA_CHECK(!list_->entries.empty());
  order_.records = list_->entries.size();
  image_size_ = FirstImageSize();
  item_shape_ = clip_.ShapeOf(image_size_);
}

ImageSize VideoLoader::FirstImageSize() const {
  const Transform& transform = transforms_.first();
  if (const auto extent = transform.fixed_extent()) return {ChannelsOf(clip_), extent->height, extent->width};
  ItemScratch scratch;
  ImageSize size;
  const int frame = clip_.RangeOf(list_->entries[0].number).first;
  std::string problem = EncodedImageSize(ReadFrame(0, frame, 0, scratch), transform, &size);
  if (!problem.empty()) throw UserError("frame \"" + scratch.path + "\"" + list_->PlaceOf(0) + " " + problem);
  problem = transform.Check(size);
  if (!problem.empty()) throw UserError("frame \"" + scratch.path + "\"" + list_->PlaceOf(0) + ": " + problem);
  return transform.OutputSize(size);
}

int64_t VideoLoader::label_count() const { return std::max<int64_t>(1, static_cast<int64_t>(list_->label_count)); }

std::span<const uint8_t> VideoLoader::ReadFrame(size_t entry, int frame, int component, ItemScratch& scratch) const {
  clip_.PathOf(*list_, entry, frame, component, &scratch.path);
  int error = 0;
  const std::span<const uint8_t> bytes = ReadImageFile(scratch, &error);
  if (error == 0) return bytes;
  if (error == ENOENT || error == ENOTDIR) FrameIsAbsent(*list_, entry, clip_, scratch.path);
  const std::string name = "frame \"" + scratch.path + "\"" + list_->PlaceOf(entry);
  if (error == EISDIR) throw UserError(name + " is a folder; correct name_pattern");
  if (error == ESPIPE) throw UserError(name + " is a pipe or device; correct name_pattern");
  throw EnvironmentError("cannot read " + name + ": " + std::strerror(error));
}

void VideoLoader::Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const {
  const size_t entry = EntryAt(position);
  const RandomStream random = order_.RandomAt(position);
  clip_.Choose(list_->entries[entry].number, random, &scratch.frames);
  const int components = clip_.is_flow() ? 2 : 1;
  if (clip_.is_volume()) scratch.floats.resize(static_cast<size_t>(image_size_.count()));
  ImageExtent first;
  for (int image = 0; image < clip_.images(); ++image) {
    const int frame = scratch.frames[static_cast<size_t>(image / components)];
    const std::span<const uint8_t> bytes = ReadFrame(entry, frame, image % components, scratch);
    float* const values = clip_.is_volume() ? scratch.floats.data() : data + image * image_size_.count();
    const std::string problem =
        LoadEncodedImage(bytes, transforms_.Of(image, random), random, image_size_, scratch, values);
    if (!problem.empty()) throw UserError("frame \"" + scratch.path + "\"" + list_->PlaceOf(entry) + problem);
    if (image == 0) first = scratch.whole;
    if (scratch.whole.height != first.height || scratch.whole.width != first.width) {
      throw UserError("frame \"" + scratch.path + "\"" + list_->PlaceOf(entry) + " is " +
                      std::to_string(scratch.whole.height) + "x" + std::to_string(scratch.whole.width) +
                      ", but the first of the item is " + std::to_string(first.height) + "x" +
                      std::to_string(first.width) + " (height x width); extract the frames of a video in one size");
    }
    if (clip_.is_volume()) Place(image, values, data);
  }
  *label = static_cast<float>(list_->entries[entry].label);
  std::ranges::copy(list_->NumbersOf(entry), label);
}

void VideoLoader::Place(int image, const float* values, float* data) const {
  const int64_t plane = int64_t{image_size_.height} * image_size_.width;
  for (int64_t c = 0; c < image_size_.channels; ++c) {
    std::copy_n(values + c * plane, plane, data + (c * clip_.frames() + image) * plane);
  }
}

std::string VideoLoader::Describe(uint64_t position) const { return "video " + list_->Named(EntryAt(position)); }

}  // namespace crema
