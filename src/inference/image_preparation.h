// From an image file or a database record to what a net sees.
#ifndef CREMA_INFERENCE_IMAGE_PREPARATION_H_
#define CREMA_INFERENCE_IMAGE_PREPARATION_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "crema/data.pb.h"
#include "data/databases/datum.h"
#include "data/databases/image_size.h"
#include "data/transforms/random_resize.h"
#include "data/transforms/transform.h"
#include "image/image.h"
#include "image/resize.h"

namespace crema {

// The working memory of one thread, kept from image to image.
struct PreparationBuffers {
  Image decoded, resized;
  ResizeBuffers resize;
  TransformScratch transform;
  std::vector<float> values, whole;
};

// How an image is stored: as a file of some format, or as values, which are bytes or floats.
enum class StoredAs { kCompressed, kBytes, kFloats };

// Transforms images as a data layer with that transform_param does in TEST, but never mirrors, and takes the middle of
// random sizes. Images of a layer (`of_layer`: its own files, or records of a database) are as large as they are to be
// for that, and only resized before where neither a crop_size nor a mean image nor a resize_ field says how they become
// as large as the net's input. Other images may have any size. Where no resize_ field brings them to another one, they
// are first resized to that of the mean image, of whose middle the input takes its part; else, with a crop_size, until
// their shorter side has that many pixels; else to the size of the net's input, whatever their proportions, as Caffe's
// cpp_classification does. With several views (image_views.h) the input is cut out of what is resized where that is
// larger, also without a crop_size. Immutable, so any number of threads may use it.
class ImagePreparation {
 public:
  // `input` is the net's, `mean_file` where param.mean_file() was found. Throws UserError where fields contradict each
  // other or cannot give an image of that size.
  // `rgb`: what is decoded goes into the net as red, green, blue; raw records stay as they are.
  ImagePreparation(const TransformationParameter& param, const std::string& mean_file, const ImageSize& input,
                   bool rgb = false, int views = 1);

  // The input of a net that does not say it: what becomes of an image that is stored so. Fields that contradict each
  // other are left to the constructor. Throws as ReadMean.
  static ImageSize InputFor(const TransformationParameter& param, const std::string& mean_file, const ImageSize& image,
                            StoredAs stored, bool of_layer);

  const ImageSize& input() const { return input_; }
  // Whether images that are of no layer are resized until their shorter side is crop_size.
  bool fits_crop() const { return !resizes_ && !scales_ && mean_.height == 0 && crop_ > 0; }
  int views() const { return views_; }
  // What views are cut out of, of an image of that size: resized, with its border.
  ImageExtent ExtentOfWhole(bool of_layer, const ImageSize& image) const;
  // Where in the input an image of that size lies, where nothing is cropped: not all over it where there is a border.
  ImageArea PlaceInInput(const ImageExtent& image) const;

  // All write views() x input().count() values and return what is wrong with the image, empty when nothing is.
  [[nodiscard]] std::string FromFile(std::span<const uint8_t> bytes, bool of_layer, PreparationBuffers* buffers,
                                     float* out) const;
  [[nodiscard]] std::string FromRecord(const DatumView& record, PreparationBuffers* buffers, float* out) const;

 private:
  [[nodiscard]] std::string Decode(std::span<const uint8_t> bytes, Image* image) const;
  [[nodiscard]] std::string FromDecoded(bool of_layer, PreparationBuffers* buffers, float* out) const;
  [[nodiscard]] std::string CheckSize(const ImageSize& size,
                                      Transform::Values values = Transform::Values::kBytes) const;
  // Lets `write` write an image of that size, of which `out` gets the views.
  template <typename Write>
  void WriteViews(const ImageSize& size, PreparationBuffers* buffers, float* out, const Write& write) const;
  // The size to which an image of that size is resized before it is transformed, be it to still another one.
  ImageExtent ResizedBefore(bool of_layer, int height, int width) const;

  ImageSize input_;
  bool rgb_;
  int views_;
  Resizer resizer_;
  bool resizes_;                        // as resize_ fields say
  std::optional<RandomResize> random_;  // of the middles of its ranges
  bool scales_;                         // it changes the shorter side, and not only what is in proportion to it
  ImageExtent mean_;                    // of the mean image; 0: none
  int crop_;                            // 0: none
  int border_;                          // of `pad`, on each side
  Transform transform_;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_IMAGE_PREPARATION_H_
