// From a stored image to what a net sees: transform_param.
#ifndef CREMA_DATA_TRANSFORMS_TRANSFORM_H_
#define CREMA_DATA_TRANSFORMS_TRANSFORM_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "crema/data.pb.h"
#include "crema/state.pb.h"
#include "data/databases/image_size.h"
#include "data/databases/mean_file.h"
#include "data/transforms/augmentation_policy.h"
#include "data/transforms/color_jitter.h"
#include "data/transforms/crop_choice.h"
#include "data/transforms/gaussian_blur.h"
#include "data/transforms/random_area.h"
#include "data/transforms/random_resize.h"
#include "data/transforms/seen_image.h"
#include "image/affine.h"
#include "image/codec.h"
#include "image/image.h"
#include "image/resize.h"
#include "image/resizer.h"

namespace crema {

// The working memory of Transform::Apply, kept from image to image.
struct TransformScratch {
  Image image, resized;
  ResizeBuffers buffers;
  std::vector<PixelRun> runs;
  SeenImage seen;
  BlurBuffers blur;
  std::vector<float> values;  // of a row
};

// An image that was decoded at 1/reduction of its size (DecodeOptions::reduction); `whole` is that size.
struct ReducedImage {
  int reduction = 1;
  ImageExtent whole;
};

// What resize_height and resize_width, or resize_param, resize to; zeros where they do not.
ImageExtent FixedResize(const TransformationParameter& param);
// What becomes of the proportions there.
Resizer ResizerOf(const TransformationParameter& param);

// Size of all results that are made of images of bytes, where the transform alone fixes it.
std::optional<ImageExtent> FixedExtentOf(const TransformationParameter& param);

// TransformationParameter (proto/crema/data.proto) says what is done in which order. The random numbers of an image are
// those of its stream: 0 mirror, 1 and 2 the crop's row and column, 3 to 5 brightness, contrast and saturation, 6 to 45
// the rectangle of random_resized_crop, 80 mirror_vertical, 81 the angle, 82 whether something is erased, 83 to 122
// what, 123 to 127 the size, 128 to 130 what crop of several sizes or at a fixed place, 131 hue, 132 and 133 the blur,
// 134 to 175 the operations of rand_augment or trivial_augment. Immutable, so any number of threads may use it.
class Transform {
 public:
  // What becomes of images of bytes with a side below crop_size, which Check refuses otherwise: they get a border at
  // the bottom and at the right, beside that of `pad`, so that they have that size.
  enum class SmallImages { kRefused, kPadded };

  // `mean_file` is where param.mean_file() was found; read here. It does not go with kPadded. Throws UserError where a
  // field is wrong or fields contradict each other (transform_check.h) or the mean image, and as ReadMean.
  Transform(const TransformationParameter& param, Phase phase, const std::string& mean_file,
            SmallImages small_images = SmallImages::kRefused);
  // The same with the mean image that was read from there, if any, whatever param.mean_file() says.
  Transform(const TransformationParameter& param, Phase phase, const std::string& mean_file,
            std::optional<MeanImage> mean, SmallImages small_images);

  // As FixedExtentOf.
  const std::optional<ImageExtent>& fixed_extent() const { return fixed_extent_; }
  // What images are to be decoded to: as force_color and force_gray say, else as they are stored.
  DecodeOptions::Colors colors() const { return colors_; }

  // Values of a record: floats are neither resized nor changed in colour.
  enum class Values { kBytes, kFloats };
  // Size of the result for an image of that size.
  ImageSize OutputSize(const ImageSize& image, Values values = Values::kBytes) const;
  // What an image of bytes of that size is resized to, where sizes are not random, and where in it the image lies.
  ImageExtent ResizedExtent(const ImageExtent& image) const;
  ImageArea PlaceOf(const ImageExtent& image) const { return resizer_.PlaceOf(image, ResizedExtent(image)); }
  // How much of an image of bytes of that size, resized where it is, a result can show.
  ImageExtent ShownExtent(const ImageExtent& image) const;
  // What is wrong, with the remedy, where an image does not fit the crop, the mean image, or the number of mean or
  // standard values; empty where it fits.
  std::string Check(const ImageSize& image, Values values = Values::kBytes) const;

  // Whether the image of that stream is mirrored left and right.
  bool Mirrors(const RandomStream& random) const { return mirror_ && random.Below(kMirror, 2) == 1; }

  // Whether random_resized_crop acts.
  bool cuts_random_areas() const { return random_area_.has_value(); }
  // The largest DecodeOptions::reduction that leaves what random_resized_crop will cut out of an image of size `whole`
  // at least as large as the result; else 1.
  int ReductionFor(const ImageExtent& whole, const RandomStream& random) const;

  // Transform one image, which Check must have accepted, to OutputSize().count() values: planes one after the other
  // (the form of Datums), or an image in memory. `reduced.whole` matters only where reduced.reduction is above 1.
  void Apply(const uint8_t* planes, const ImageSize& size, const RandomStream& random, TransformScratch* scratch,
             float* out) const;
  void Apply(const float* planes, const ImageSize& size, const RandomStream& random, float* out) const;
  void Apply(const Image& image, const RandomStream& random, TransformScratch* scratch, float* out,
             const ReducedImage& reduced = {}) const;
  // The same of a part of an image instead of the whole; not for random_resized_crop, multi_scale and
  // max_rotation_angle.
  void ApplyToPart(const Image& image, const ImageArea& part, const RandomStream& random, TransformScratch* scratch,
                   float* out) const;
  // The same of a larger image that it lies in.
  void ApplyFramed(const FramedImage& image, const RandomStream& random, TransformScratch* scratch, float* out) const;

  // The label image that belongs to an image of its size: moved as Apply moves the whole of that, to as many values of
  // one channel. Its numbers stay as they are, also where pixels are erased, and the nearest one counts where it is
  // resized or turned; `border` is where the image is not. Not for multi_scale.
  void ApplyToLabels(const Image& labels, const RandomStream& random, TransformScratch* scratch, float border,
                     float* out) const;

 private:
  // 64 to 79 are AnnotatedTransform's.
  enum RandomNumber : uint64_t {
    kMirror = 0,
    kTop = 1,
    kLeft = 2,
    kJitter = 3,
    kArea = 6,
    kMirrorVertical = 80,
    kAngle = 81,
    kErases = 82,
    kErased = 83,
    kResize = 123,
    kCropChoice = 128,
    kHue = 131,
    kBlur = 132,
    kPolicy = 134
  };

  // The part of an image that is seen, and where it lies in a result of `height` x `width`; what is not covered is
  // border.
  struct Window {
    ImageArea part;  // of the image, as large as the result; may reach beyond it
    ImageArea seen;
    std::span<const PixelRun> runs;  // what is covered of each row of `seen`; empty: all
    int top = 0, left = 0, height = 0, width = 0;
    bool mirrored = false, upside_down = false;

    // Less what lies beside that place of the image.
    void Limit(const ImageArea& place);
    bool covers() const { return runs.empty() && seen.height == height && seen.width == width; }
    // What is covered of row y of `seen`, and where it begins in a plane of the result.
    PixelRun RunOf(int y) const { return runs.empty() ? PixelRun{0, seen.width} : runs[static_cast<size_t>(y)]; }
    int64_t PlaceOf(int y, const PixelRun& run) const {
      return int64_t{upside_down ? top + seen.height - 1 - y : top + y} * width + left +
             (mirrored ? seen.width - run.first - run.count : run.first);
    }
  };

  // As ResizedExtent of the image of that stream, where sizes are random.
  ImageExtent DrawnExtent(const ImageExtent& image, const RandomStream& random) const;
  Window WindowOf(int height, int width, const RandomStream& random) const;
  // That of a result of random_resized_crop or multi_scale.
  Window WholeWindow(const RandomStream& random) const;
  // That of an image of size `whole` that is turned, in the result already, and where its pixels come from.
  Window TurnedWindow(const ImageExtent& whole, const RandomStream& random, std::vector<PixelRun>* runs,
                      AffineMap* map) const;
  bool MirrorsVertically(const RandomStream& random) const;
  bool cuts_sizes() const { return crop_choice_ && crop_choice_->resizes(); }
  // multi_scale.
  void ApplyToChoice(const Image& image, const RandomStream& random, TransformScratch* scratch, float* out) const;
  float MeanOf(int64_t channel) const;
  float FactorOf(int64_t channel) const;
  template <typename Value>
  void ApplyToPlanes(const Value* planes, const ImageSize& size, const RandomStream& random, float* out) const;
  // Whether bytes change before they become values.
  bool changes_bytes() const { return policy_ || blur_; }
  // Why colours and bytes of such an image cannot be changed as they would; empty where they can.
  std::string ChangeProblem(const ImageSize& image, Values values) const;
  void WritePixels(const Image& image, const Window& window, const RandomStream& random, TransformScratch* scratch,
                   float* out) const;
  // What is seen of the image, where the result has it, as bytes.
  static void Place(const Image& image, const Window& window, SeenImage* seen);
  // Where bytes change: the policy, colours and, where sigma is above 0, the blur, and what becomes of them.
  void WriteSeen(const Image& image, const Window& window, const RandomStream& random, double sigma,
                 TransformScratch* scratch, float* out) const;
  std::optional<ColorChange> DrawChange(const Image& image, const Window& window, const RandomStream& random) const;
  void WriteValues(const Image& image, const Window& window, const std::optional<ColorChange>& change,
                   float* out) const;
  void WriteLabels(const Image& labels, const Window& window, const RandomStream& random, TransformScratch* scratch,
                   float border, float* out) const;
  // Where a policy moves them.
  void WriteSeenLabels(const Image& labels, const Window& window, const RandomStream& random, TransformScratch* scratch,
                       float border, float* out) const;
  void SubtractMeanImage(const Window& window, int channels, float* out) const;
  void Erase(const Window& window, int channels, const RandomStream& random, float* out) const;

  float scale_;
  bool mirror_, train_;
  bool pads_small_;
  int32_t crop_, pad_, shorter_side_, resize_height_, resize_width_;
  Resizer resizer_;
  size_t border_values_;  // of resize_param
  DecodeOptions::Colors colors_;
  std::optional<ImageExtent> fixed_extent_;
  std::optional<RandomResize> random_resize_;
  // In TRAIN alone.
  bool mirror_vertical_ = false;
  float max_angle_ = 0, erasing_probability_ = 0;
  std::optional<RandomArea> random_area_, erased_area_;
  std::optional<CropChoice> crop_choice_;
  ColorJitter jitter_;
  std::optional<AugmentationPolicy> policy_;
  std::optional<GaussianBlur> blur_;
  std::vector<float> mean_values_, std_values_;
  std::string mean_file_;
  std::optional<MeanImage> mean_;
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_TRANSFORM_H_
