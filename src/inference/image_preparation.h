// From an image file or a database record to what a net sees.
#ifndef CREMA_INFERENCE_IMAGE_PREPARATION_H_
#define CREMA_INFERENCE_IMAGE_PREPARATION_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "crema/data.pb.h"
#include "data/datum.h"
#include "data/image_size.h"
#include "data/transform.h"
#include "image/image.h"
#include "image/resize.h"
#include "inference/image_views.h"

namespace crema {

// The working memory of one thread, kept from image to image.
struct PreparationBuffers {
  Image decoded, resized;
  ResizeBuffers resize;
  TransformScratch transform;
  std::vector<float> values, whole;
};

// Resizes, crops from the centre and transforms as a transform_param says in TEST, but never mirrors. Images are
// resized by resize_height and resize_width, or by resize_shorter_side. Where neither is set they get the size of the
// mean image, of whose middle the input takes its part; else, with a crop_size, their shorter side gets that many
// pixels; else they get the size of the net's input, whatever their proportions, as Caffe's cpp_classification does.
// resize_param keeps them where it says so.
// Records of a database are as large as they are to be for a crop or a mean image, and are resized only where a resize_
// field, or an input of another size without either, asks for it. With several views (image_views.h) the input is cut
// out of what is resized where that is larger, also without a crop_size. Immutable, so any number of threads may use
// it.
class ImagePreparation {
 public:
  // `input` is the net's, `mean_file` where param.mean_file() was found. Throws UserError where fields contradict each
  // other or cannot give an image of that size.
  // `rgb`: what is decoded goes into the net as red, green, blue; raw records stay as they are.
  ImagePreparation(const TransformationParameter& param, const std::string& mean_file, const ImageSize& input,
                   bool rgb = false, int views = 1);

  const ImageSize& input() const { return input_; }
  int views() const { return views_; }
  // What views are cut out of, of an image of that size: resized, with its border.
  ImageExtent ExtentOfWhole(bool record, const ImageSize& image) const;
  // Where in the input an image of that size lies, where nothing is cropped: not all over it where there is a border.
  ImageArea PlaceInInput(const ImageExtent& image) const;

  // All write views() x input().count() values and return what is wrong with the image, empty when nothing is.
  [[nodiscard]] std::string FromFile(std::span<const uint8_t> bytes, PreparationBuffers* buffers, float* out) const;
  [[nodiscard]] std::string FromRecord(const DatumView& record, PreparationBuffers* buffers, float* out) const;

 private:
  [[nodiscard]] std::string Decode(std::span<const uint8_t> bytes, Image* image) const;
  [[nodiscard]] std::string FromDecoded(bool record, PreparationBuffers* buffers, float* out) const;
  [[nodiscard]] std::string CheckSize(const ImageSize& size,
                                      Transform::Values values = Transform::Values::kBytes) const;
  // Lets `write` write an image of that size, of which `out` gets the views.
  template <typename Write>
  void WriteViews(const ImageSize& size, PreparationBuffers* buffers, float* out, const Write& write) const;
  // The size to which an image of that size is resized.
  ImageExtent ResizedTo(bool record, int height, int width) const;

  ImageSize input_;
  bool rgb_;
  int views_;
  ImageExtent fixed_;  // of resize_height and resize_width, or resize_param; 0: none
  Resizer resizer_;
  int shorter_side_;  // 0: none
  ImageExtent mean_;  // of the mean image; 0: none
  int crop_;          // 0: none
  int border_;        // of `pad`, on each side
  Transform transform_;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_IMAGE_PREPARATION_H_
