// Random operations on images: RandAugment and TrivialAugment.
#ifndef CREMA_DATA_TRANSFORMS_AUGMENTATION_POLICY_H_
#define CREMA_DATA_TRANSFORMS_AUGMENTATION_POLICY_H_

#include <cstdint>
#include <optional>

#include "base/random.h"
#include "crema/data.pb.h"
#include "data/transforms/seen_image.h"
#include "image/resize.h"

namespace crema {

// What is done to one image, and how much: parts of a side (shears), pixels (translations), degrees, one less than a
// factor (from brightness to sharpness), bits, or a threshold.
struct AugmentationStep {
  enum class Operation {
    kIdentity,
    kShearX,
    kShearY,
    kTranslateX,
    kTranslateY,
    kRotate,
    kBrightness,
    kColor,
    kContrast,
    kSharpness,
    kPosterize,
    kSolarize,
    kAutoContrast,
    kEqualize
  };
  static constexpr int kOperations = 14;

  Operation operation = Operation::kIdentity;
  double amount = 0;

  void Apply(SeenImage* seen) const;
  // The same of labels: those that do not move pixels leave them alone, and the nearest label counts.
  void ApplyToLabels(SeenImage* seen) const;

 private:
  void Move(SeenImage::Sampling sampling, SeenImage* seen) const;
};

// Ranges and their 31 magnitudes are torchvision's (RandAugment, TrivialAugmentWide). Immutable, so any number of
// threads may use it.
class AugmentationPolicy {
 public:
  static constexpr int kMagnitudes = 31, kMostOperations = 14;

  // What rand_augment or trivial_augment says, if one is there.
  static std::optional<AugmentationPolicy> Of(const TransformationParameter& param);

  const char* field() const { return field_; }
  int operations() const { return operations_; }
  // That number `index` of an image of that size, from three numbers of `random` for each, from `first` on.
  AugmentationStep Draw(int index, const ImageExtent& image, const RandomStream& random, uint64_t first) const;
  // One behind the other.
  void Apply(const RandomStream& random, uint64_t first, SeenImage* seen) const;
  void ApplyToLabels(const RandomStream& random, uint64_t first, SeenImage* seen) const;

 private:
  AugmentationPolicy() = default;
  double AmountOf(AugmentationStep::Operation operation, int magnitude, const ImageExtent& image) const;

  const char* field_ = "";
  bool wide_ = false;  // TrivialAugment's ranges
  int operations_ = 1;
  std::optional<int> magnitude_;  // none: drawn
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_AUGMENTATION_POLICY_H_
