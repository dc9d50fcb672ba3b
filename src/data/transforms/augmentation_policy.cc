#include "data/transforms/augmentation_policy.h"

#include <cmath>

#include "data/transforms/color_operations.h"

namespace crema {

namespace {

using Operation = AugmentationStep::Operation;

// Whether the opposite is as likely.
bool IsSigned(Operation operation) { return operation >= Operation::kShearX && operation <= Operation::kSharpness; }

}  // namespace

void AugmentationStep::Move(SeenImage::Sampling sampling, SeenImage* seen) const {
  const ImageExtent extent{seen->image.height, seen->image.width};
  switch (operation) {
    case Operation::kShearX:
      return seen->Move(ShearedMap(amount, 0), sampling);
    case Operation::kShearY:
      return seen->Move(ShearedMap(0, amount), sampling);
    case Operation::kTranslateX:
      return seen->Move(ShiftedMap(static_cast<int>(amount), 0), SeenImage::Sampling::kNearest);
    case Operation::kTranslateY:
      return seen->Move(ShiftedMap(0, static_cast<int>(amount)), SeenImage::Sampling::kNearest);
    case Operation::kRotate:
      return seen->Move(
          TurnedMap(extent, extent, amount, {0, 0, extent.height, extent.width}, extent.height, extent.width),
          sampling);
    default:
      return;
  }
}

void AugmentationStep::Apply(SeenImage* seen) const {
  switch (operation) {
    case Operation::kBrightness:
      return ChangeBrightness(1 + amount, seen);
    case Operation::kColor:
      return ChangeColor(1 + amount, seen);
    case Operation::kContrast:
      return ChangeContrast(1 + amount, seen);
    case Operation::kSharpness:
      return ChangeSharpness(1 + amount, seen);
    case Operation::kPosterize:
      return Posterize(static_cast<int>(amount), seen);
    case Operation::kSolarize:
      return Solarize(static_cast<int>(std::ceil(amount)), seen);
    case Operation::kAutoContrast:
      return AutoContrast(seen);
    case Operation::kEqualize:
      return Equalize(seen);
    default:
      return Move(SeenImage::Sampling::kBilinear, seen);
  }
}

void AugmentationStep::ApplyToLabels(SeenImage* seen) const { Move(SeenImage::Sampling::kNearest, seen); }

std::optional<AugmentationPolicy> AugmentationPolicy::Of(const TransformationParameter& param) {
  AugmentationPolicy policy;
  if (param.has_rand_augment()) {
    policy.field_ = "rand_augment";
    policy.operations_ = static_cast<int>(param.rand_augment().operations());
    policy.magnitude_ = static_cast<int>(param.rand_augment().magnitude());
    return policy;
  }
  if (!param.has_trivial_augment()) return {};
  policy.field_ = "trivial_augment";
  policy.wide_ = true;
  return policy;
}

double AugmentationPolicy::AmountOf(Operation operation, int magnitude, const ImageExtent& image) const {
  const double share = static_cast<double>(magnitude) / (kMagnitudes - 1);
  switch (operation) {
    case Operation::kShearX:
    case Operation::kShearY:
      return share * (wide_ ? 0.99 : 0.3);
    case Operation::kTranslateX:
      return share * (wide_ ? 32 : 150.0 / 331 * image.width);
    case Operation::kTranslateY:
      return share * (wide_ ? 32 : 150.0 / 331 * image.height);
    case Operation::kRotate:
      return share * (wide_ ? 135 : 30);
    case Operation::kBrightness:
    case Operation::kColor:
    case Operation::kContrast:
    case Operation::kSharpness:
      return share * (wide_ ? 0.99 : 0.9);
    case Operation::kPosterize:
      return 8 - std::round(share * (wide_ ? 6 : 4));
    case Operation::kSolarize:
      return 255 * (1 - share);
    default:
      return 0;
  }
}

AugmentationStep AugmentationPolicy::Draw(int index, const ImageExtent& image, const RandomStream& random,
                                          uint64_t first) const {
  first += 3 * static_cast<uint64_t>(index);
  AugmentationStep step;
  step.operation = static_cast<Operation>(random.Below(first, AugmentationStep::kOperations));
  const int magnitude = magnitude_ ? *magnitude_ : static_cast<int>(random.Below(first + 1, kMagnitudes));
  step.amount = AmountOf(step.operation, magnitude, image);
  if (IsSigned(step.operation) && random.Below(first + 2, 2) == 1) step.amount = -step.amount;
  return step;
}

void AugmentationPolicy::Apply(const RandomStream& random, uint64_t first, SeenImage* seen) const {
  for (int i = 0; i < operations_; ++i) {
    Draw(i, {seen->image.height, seen->image.width}, random, first).Apply(seen);
  }
}

void AugmentationPolicy::ApplyToLabels(const RandomStream& random, uint64_t first, SeenImage* seen) const {
  for (int i = 0; i < operations_; ++i) {
    Draw(i, {seen->image.height, seen->image.width}, random, first).ApplyToLabels(seen);
  }
}

}  // namespace crema
