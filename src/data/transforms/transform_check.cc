#include "data/transforms/transform_check.h"

#include <cstdint>
#include <tuple>

#include "base/number_text.h"
#include "data/transforms/augmentation_policy.h"
#include "data/transforms/gaussian_blur.h"
#include "data/transforms/random_resize.h"

namespace crema {

namespace {

using Mistake = std::optional<TransformMistake>;

Mistake CheckResize(const TransformationParameter& param) {
  const bool height = param.resize_height() > 0, width = param.resize_width() > 0;
  if (height != width) {
    return TransformMistake{height ? "resize_height" : "resize_width",
                            std::string(height ? "resize_height" : "resize_width") + " is set without " +
                                (height ? "resize_width" : "resize_height") +
                                "; set both, or resize_shorter_side, which keeps the proportions"};
  }
  if (param.resize_shorter_side() > 0 && height) {
    return TransformMistake{"resize_shorter_side",
                            "resize_shorter_side and resize_height, resize_width are both set; keep "
                            "resize_shorter_side to keep the proportions, else the other two"};
  }
  return {};
}

Mistake CheckBounds(const std::string& field, float lower, float upper, const NumberRange& range) {
  if (Mistake mistake = CheckRange(field + "_lower", lower, range)) return mistake;
  if (Mistake mistake = CheckRange(field + "_upper", upper, range)) return mistake;
  if (lower <= upper) return {};
  return TransformMistake{field + "_lower", field + "_lower " + FormatNumber(lower) + " exceeds " + field + "_upper " +
                                                FormatNumber(upper) + "; exchange them"};
}

Mistake CheckRandomResize(const TransformationParameter& param) {
  const auto lower = static_cast<float>(param.img_rand_resize_lower());
  const auto upper = static_cast<float>(param.img_rand_resize_upper());
  if (lower > 0 || upper > 0) {
    if (Mistake mistake = CheckBounds("img_rand_resize", lower, upper, {1, kMostPixels})) return mistake;
  }
  if (param.rand_resize_ratio_lower() != 0 || param.rand_resize_ratio_upper() != 0) {
    const float least = param.rand_resize_ratio_lower(), most = param.rand_resize_ratio_upper();
    if (Mistake mistake = CheckBounds("rand_resize_ratio", least, most, {1, 100})) return mistake;
  }
  for (const auto& [field, least, most] :
       {std::tuple("vertical_stretch", param.vertical_stretch_lower(), param.vertical_stretch_upper()),
        std::tuple("horizontal_stretch", param.horizontal_stretch_lower(), param.horizontal_stretch_upper())}) {
    if (Mistake mistake = CheckBounds(field, least, most, {0.01f, 100})) return mistake;
  }
  const std::string field = RandomSizeField(param);
  if (field.empty()) return {};
  if (param.crop_size() == 0) {
    return TransformMistake{field, field +
                                       " makes images of many sizes, but all of a batch must be of one; add "
                                       "crop_size, e.g. 224"};
  }
  for (const auto& [other, set] :
       {std::pair("resize_shorter_side", param.resize_shorter_side() > 0),
        std::pair("resize_height", param.resize_height() > 0), std::pair("resize_param", param.has_resize_param()),
        std::pair("random_resized_crop", param.has_random_resized_crop())}) {
    if (set) return TransformMistake{field, field + " and " + other + " are both set; keep one way of resizing"};
  }
  return {};
}

Mistake CheckMeanFile(const TransformationParameter& param) {
  if (!param.has_mean_file()) return {};
  const auto contradicts = [](const std::string& other, const std::string& why) {
    return TransformMistake{"mean_file", "mean_file and " + other + " are both set" + why +
                                             "; give one mean_value per channel instead of mean_file"};
  };
  if (param.mean_value_size() > 0) {
    return TransformMistake{"mean_file", "mean_file and mean_value are both set; keep the one to subtract"};
  }
  if (param.pad() > 0) return contradicts("pad", ", but the mean image has no border");
  if (param.resize_shorter_side() > 0) {
    return contradicts("resize_shorter_side", ", but images of different sizes have no common mean image");
  }
  if (param.has_random_resized_crop()) {
    return contradicts("random_resized_crop", ", but the mean image does not fit what is cut out and resized");
  }
  if (param.max_rotation_angle() > 0) {
    return contradicts("max_rotation_angle", ", but the mean image does not fit what is turned");
  }
  if (param.has_random_erasing()) return contradicts("random_erasing", "");
  for (const auto& [policy, set] : {std::pair("rand_augment", param.has_rand_augment()),
                                    std::pair("trivial_augment", param.has_trivial_augment())}) {
    if (set) return contradicts(policy, ", but the mean image does not fit what is moved");
  }
  return {};
}

// `param`: what RandomArea takes; `block`: its name.
template <typename Parameter>
Mistake CheckArea(const std::string& block, const Parameter& param) {
  const auto mistake = [&](const std::string& field, const std::string& message) {
    return TransformMistake{block + "." + field, message};
  };
  if (Mistake found = CheckRange(block + ".min_area", param.min_area(), kPositiveFraction)) return found;
  if (Mistake found = CheckRange(block + ".max_area", param.max_area(), kPositiveFraction)) return found;
  if (param.min_area() > param.max_area()) {
    return mistake("min_area", "min_area " + FormatNumber(param.min_area()) + " exceeds max_area " +
                                   FormatNumber(param.max_area()) + "; exchange them");
  }
  for (const auto& [field, aspect] :
       {std::pair(".min_aspect", param.min_aspect()), std::pair(".max_aspect", param.max_aspect())}) {
    if (Mistake found = CheckRange(block + field, aspect, {0.01f, 100}, "it is width / height")) return found;
  }
  if (param.min_aspect() > param.max_aspect()) {
    return mistake("min_aspect", "min_aspect " + FormatNumber(param.min_aspect()) + " exceeds max_aspect " +
                                     FormatNumber(param.max_aspect()) + "; exchange them");
  }
  return {};
}

Mistake CheckRandomResizedCrop(const TransformationParameter& param) {
  if (!param.has_random_resized_crop()) return {};
  if (param.crop_size() == 0) {
    return TransformMistake{"random_resized_crop",
                            "random_resized_crop is set without crop_size, the side of its results; add crop_size, "
                            "e.g. 224"};
  }
  return CheckArea("random_resized_crop", param.random_resized_crop());
}

Mistake CheckCropChoice(const TransformationParameter& param) {
  if (!param.fix_crop() && !param.multi_scale()) return {};
  const std::string field = param.multi_scale() ? "multi_scale" : "fix_crop";
  if (param.crop_size() == 0) {
    return TransformMistake{field,
                            field + " is set without crop_size, the side of its results; add crop_size, e.g. 224"};
  }
  if (param.has_random_resized_crop()) {
    return TransformMistake{field, field + " and random_resized_crop are both set; keep one way of cutting out"};
  }
  if (!param.multi_scale()) return {};
  for (const float ratio : param.scale_ratios()) {
    if (Mistake mistake = CheckRange("scale_ratios", ratio, kPositiveFraction, "it is a share of the shorter side")) {
      return mistake;
    }
  }
  if (Mistake mistake = CheckRange("max_distort", param.max_distort(), kNotNegative, "with 0 areas are squares")) {
    return mistake;
  }
  const std::string random_size = RandomSizeField(param);
  for (const auto& [other, set] : {std::pair<std::string, bool>("pad", param.pad() > 0),
                                   {"max_rotation_angle", param.max_rotation_angle() > 0},
                                   {"mean_file", param.has_mean_file()},
                                   {random_size, !random_size.empty()}}) {
    if (set) return TransformMistake{"multi_scale", "multi_scale and " + other + " are both set; keep one of them"};
  }
  return {};
}

Mistake CheckRandomErasing(const TransformationParameter& param) {
  if (!param.has_random_erasing()) return {};
  if (Mistake mistake = CheckRange("random_erasing.probability", param.random_erasing().probability(), kFraction,
                                   "it is a share of the images")) {
    return mistake;
  }
  return CheckArea("random_erasing", param.random_erasing());
}

Mistake CheckRotation(float angle) {
  return CheckRange("max_rotation_angle", angle, {0, 180}, "degrees are drawn from [-x, x]");
}

Mistake CheckColorJitter(const ColorJitterParameter& jitter) {
  const std::pair<const char*, float> fields[] = {
      {"brightness", jitter.brightness()}, {"contrast", jitter.contrast()}, {"saturation", jitter.saturation()}};
  for (const auto& [field, value] : fields) {
    if (Mistake mistake = CheckRange(std::string("color_jitter.") + field, value, kFraction,
                                     "factors are drawn from [1 - x, 1 + x]")) {
      return mistake;
    }
  }
  return CheckRange("color_jitter.hue", jitter.hue(), {0, 0.5}, "shifts are drawn from [-x, x], in turns");
}

// rand_augment and trivial_augment.
Mistake CheckPolicy(const TransformationParameter& param) {
  if (param.has_rand_augment() && param.has_trivial_augment()) {
    return TransformMistake{"trivial_augment",
                            "rand_augment and trivial_augment are both set; keep one policy, trivial_augment where "
                            "nothing is to be tuned"};
  }
  if (!param.has_rand_augment()) return {};
  const RandAugmentParameter& policy = param.rand_augment();
  if (Mistake mistake = CheckRange("rand_augment.operations", policy.operations(),
                                   {1, AugmentationPolicy::kMostOperations}, "so many are done to each image")) {
    return mistake;
  }
  return CheckRange("rand_augment.magnitude", policy.magnitude(), {0, AugmentationPolicy::kMagnitudes - 1},
                    "9 is usual");
}

Mistake CheckBlur(const TransformationParameter& param) {
  if (!param.has_gaussian_blur()) return {};
  const GaussianBlurParameter& blur = param.gaussian_blur();
  if (Mistake mistake =
          CheckRange("gaussian_blur.probability", blur.probability(), kFraction, "it is a share of the images")) {
    return mistake;
  }
  const NumberRange sigmas{.low = 0, .high = GaussianBlur::kMostSigma, .above_low = true};
  for (const auto& [field, sigma] :
       {std::pair("gaussian_blur.min_sigma", blur.min_sigma()), {"gaussian_blur.max_sigma", blur.max_sigma()}}) {
    if (Mistake mistake = CheckRange(field, sigma, sigmas, "it counts pixels")) return mistake;
  }
  if (blur.min_sigma() <= blur.max_sigma()) return {};
  return TransformMistake{"gaussian_blur.min_sigma", "min_sigma " + FormatNumber(blur.min_sigma()) +
                                                         " exceeds max_sigma " + FormatNumber(blur.max_sigma()) +
                                                         "; exchange them"};
}

Mistake CheckValues(const TransformationParameter& param) {
  if (Mistake mistake = CheckRange("scale", param.scale(), kFinite)) return mistake;
  for (const float mean : param.mean_value()) {
    if (Mistake mistake = CheckRange("mean_value", mean, kFinite)) return mistake;
  }
  for (const float deviation : param.std_value()) {
    if (Mistake mistake = CheckRange("std_value", deviation, kPositive,
                                     "values are divided by it, compute_image_mean prints those of a database")) {
      return mistake;
    }
  }
  return {};
}

}  // namespace

std::optional<TransformMistake> CheckRange(const std::string& field, double value, const NumberRange& range,
                                           std::string_view hint) {
  if (range.Holds(value)) return {};
  return TransformMistake{field, range.Complaint(field, value, hint)};
}

std::string RandomSizeField(const TransformationParameter& param) {
  if (!RandomResize::Of(param)) return {};
  if (param.img_rand_resize_upper() > 0) return "img_rand_resize_lower";
  if (param.rand_resize_ratio_upper() > 0) return "rand_resize_ratio_lower";
  if (param.vertical_stretch_lower() != 1) return "vertical_stretch_lower";
  if (param.vertical_stretch_upper() != 1) return "vertical_stretch_upper";
  return param.horizontal_stretch_lower() != 1 ? "horizontal_stretch_lower" : "horizontal_stretch_upper";
}

std::vector<TransformMistake> FieldsWithoutEffect(const TransformationParameter& param) {
  std::vector<TransformMistake> found;
  const auto add = [&found](bool idle, const std::string& field, const std::string& why) {
    if (idle) found.push_back({field, field + " has no effect" + why});
  };
  add(param.random_seed() >= 0, "random_seed", ": the solver's random_seed fixes what is random");
  add(param.more_fix_crop() && !param.fix_crop(), "more_fix_crop", " without fix_crop: true");
  add(param.scale_ratios_size() > 0 && !param.multi_scale(), "scale_ratios", " without multi_scale: true");
  add(param.has_max_distort() && !param.multi_scale(), "max_distort", " without multi_scale: true");
  add(param.allow_upscale() && RandomSizeField(param).empty(), "allow_upscale",
      " without a random size, such as img_rand_resize_lower and img_rand_resize_upper; resize_shorter_side enlarges "
      "small images");
  return found;
}

std::optional<TransformMistake> FindMistake(const TransformationParameter& param) {
  const std::pair<const char*, uint32_t> sides[] = {{"crop_size", param.crop_size()},
                                                    {"pad", param.pad()},
                                                    {"resize_shorter_side", param.resize_shorter_side()},
                                                    {"resize_height", param.resize_height()},
                                                    {"resize_width", param.resize_width()}};
  for (const auto& [field, pixels] : sides) {
    if (Mistake mistake = CheckRange(field, pixels, {0, kMostPixels}, "it counts pixels")) return mistake;
  }
  if (param.force_color() && param.force_gray()) {
    return TransformMistake{"force_gray", "force_color and force_gray are both set; keep one"};
  }
  if (Mistake mistake = CheckValues(param)) return mistake;
  if (Mistake mistake = CheckResize(param)) return mistake;
  if (Mistake mistake = FindMistakeOfSsd(param)) return mistake;
  if (Mistake mistake = CheckRandomResize(param)) return mistake;
  if (Mistake mistake = CheckRotation(param.max_rotation_angle())) return mistake;
  if (Mistake mistake = CheckMeanFile(param)) return mistake;
  if (Mistake mistake = CheckRandomResizedCrop(param)) return mistake;
  if (Mistake mistake = CheckRandomErasing(param)) return mistake;
  if (Mistake mistake = CheckCropChoice(param)) return mistake;
  if (Mistake mistake = CheckPolicy(param)) return mistake;
  if (Mistake mistake = CheckBlur(param)) return mistake;
  return CheckColorJitter(param.color_jitter());
}

}  // namespace crema
