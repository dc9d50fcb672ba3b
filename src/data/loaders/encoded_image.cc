#include "data/loaders/encoded_image.h"

#include "image/codec.h"

namespace crema {

namespace {

ImageSize SizeOf(const ImageInfo& info, DecodeOptions::Colors colors) {
  const int channels = colors == DecodeOptions::Colors::kColor  ? 3
                       : colors == DecodeOptions::Colors::kGray ? 1
                                                                : info.channels;
  return {channels, info.height, info.width};
}

// Where Exif turns the image, the last pixel of a side, which stands for fewer of the file's than the others, may come
// first, and areas would lie off by what it lacks.
int WholeReduction(const ImageInfo& info, int reduction) {
  while (info.orientation > 1 && (info.height % reduction != 0 || info.width % reduction != 0)) reduction /= 2;
  return reduction;
}

}  // namespace

std::string EncodedImageSize(std::span<const uint8_t> bytes, const Transform& transform, ImageSize* size) {
  ImageInfo info;
  const std::string problem = ReadImageInfo(bytes, &info);
  if (!problem.empty()) return problem + kBrokenImageRemedy;
  *size = SizeOf(info, transform.colors());
  return {};
}

std::string CheckItemSize(const ImageSize& image, const Transform& transform, Transform::Values values,
                          const ImageSize& item, bool with_boxes) {
  const std::string problem = transform.Check(image, values);
  if (!problem.empty()) return ": " + problem;
  const ImageSize output = transform.OutputSize(image, values);
  if (output == item) return {};
  std::string text = " is " + image.ToString();
  if (output != image) text += ", transformed " + output.ToString();
  text += ", but the first record makes " + item.ToString() + " (channels x height x width); ";
  if (output.channels != item.channels) {
    return text + "all images of a batch must have the same channels: set force_color (or force_gray) in " +
           "transform_param for compressed images, or convert the images again to one number of channels";
  }
  text += "shapes are fixed, so that all images of a data set must come to one size, with batch_size 1, too: set ";
  if (with_boxes) {
    return text +
           "resize_param { height: 300 width: 300 }, or another size, in transform_param, or convert the images " +
           "again to one size (--resize_height, --resize_width)";
  }
  return text +
         "crop_size (of images that are no smaller), resize_height and resize_width, or random_resized_crop in " +
         "transform_param, or convert the images again to one size (--resize_height, --resize_width); ImageSegData " +
         "gives images and label images that are smaller than crop_size a border";
}

std::string LoadEncodedImage(std::span<const uint8_t> bytes, const Transform& transform, const RandomStream& random,
                             const ImageSize& item, ItemScratch& scratch, float* out) {
  DecodeOptions options{transform.colors()};
  ReducedImage reduced;
  if (transform.cuts_random_areas() && FormatOf(bytes) == ImageFormat::kJpeg) {
    ImageInfo info;
    const std::string problem = ReadImageInfo(bytes, &info);
    if (!problem.empty()) return " " + problem + kBrokenImageRemedy;
    reduced.whole = {info.height, info.width};
    options.reduction = reduced.reduction = WholeReduction(info, transform.ReductionFor(reduced.whole, random));
  }
  const std::string problem = DecodeImage(bytes, options, &scratch.decoded);
  if (!problem.empty()) return " " + problem + kBrokenImageRemedy;
  const Image& image = scratch.decoded;
  scratch.whole = reduced.reduction > 1 ? reduced.whole : ImageExtent{image.height, image.width};
  const std::string misfit =
      CheckItemSize({image.channels, image.height, image.width}, transform, Transform::Values::kBytes, item);
  if (!misfit.empty()) return misfit;
  transform.Apply(image, random, &scratch.transform, out, reduced);
  return {};
}

}  // namespace crema
