#include <string>
#include <utility>

#include "base/number_text.h"
#include "data/transforms/transform_check.h"

namespace crema {

namespace {

using Mistake = std::optional<TransformMistake>;

Mistake CheckResizeParam(const TransformationParameter& param) {
  if (!param.has_resize_param()) return {};
  const ResizeParameter& resize = param.resize_param();
  const auto mistake = [](const std::string& field, const std::string& message) {
    return TransformMistake{"resize_param." + field, message};
  };
  if (resize.prob() != 1) {
    return mistake("prob",
                   "prob is " + FormatNumber(resize.prob()) +
                       ", but all images of a batch must be of one size; set it to 1, and keep one resize_param");
  }
  if (resize.resize_mode() == ResizeParameter::FIT_SMALL_SIZE) {
    return mistake("resize_mode",
                   "FIT_SMALL_SIZE is not supported; to keep the proportions take resize_shorter_side with a crop_size "
                   "instead of resize_param, or, where there are boxes, FIT_LARGE_SIZE_AND_PAD");
  }
  for (const float value : resize.pad_value()) {
    if (Mistake found = CheckRange("resize_param.pad_value", value, {0, 255}, "it is what a pixel holds")) return found;
  }
  const bool fits = resize.resize_mode() == ResizeParameter::FIT_LARGE_SIZE_AND_PAD;
  for (const auto& [field, set] : {std::pair("multi_scale", param.multi_scale()),
                                   std::pair("max_rotation_angle", param.max_rotation_angle() > 0)}) {
    if (!fits || !set) continue;
    return TransformMistake{field, std::string(field) +
                                       " is not done to images with the border of FIT_LARGE_SIZE_AND_PAD; remove one "
                                       "of them"};
  }
  if (resize.height() == 0 || resize.width() == 0) {
    return mistake(resize.height() == 0 ? "height" : "width", "height and width must be given, in pixels");
  }
  if (resize.height() > kMostPixels || resize.width() > kMostPixels) {
    return mistake(resize.height() > kMostPixels ? "height" : "width",
                   "height and width must be at most " + std::to_string(kMostPixels) + " pixels, got " +
                       std::to_string(resize.height()) + " and " + std::to_string(resize.width()));
  }
  for (const auto& [field, pixels] : {std::pair{"resize_height", param.resize_height()},
                                      {"resize_width", param.resize_width()},
                                      {"resize_shorter_side", param.resize_shorter_side()}}) {
    if (pixels == 0) continue;
    return TransformMistake{field, std::string(field) + " and resize_param are both set; keep one of them"};
  }
  return {};
}

Mistake CheckProb(const std::string& field, float prob) {
  return CheckRange(field, prob, kFraction, "it is a share of the images");
}

Mistake CheckDistortion(const DistortionParameter& distort) {
  const std::pair<const char*, float> probs[] = {{"brightness_prob", distort.brightness_prob()},
                                                 {"contrast_prob", distort.contrast_prob()},
                                                 {"hue_prob", distort.hue_prob()},
                                                 {"saturation_prob", distort.saturation_prob()},
                                                 {"random_order_prob", distort.random_order_prob()}};
  for (const auto& [field, prob] : probs) {
    if (Mistake mistake = CheckProb(std::string("distort_param.") + field, prob)) return mistake;
  }
  if (Mistake mistake = CheckRange("distort_param.brightness_delta", distort.brightness_delta(), {0, 255})) {
    return mistake;
  }
  if (Mistake mistake = CheckRange("distort_param.hue_delta", distort.hue_delta(), {0, 180})) return mistake;
  const auto factors = [](const std::string& name, float low, float high) -> Mistake {
    if (low >= 0 && low <= high && high <= 1000) return {};
    return TransformMistake{"distort_param." + name + "_lower",
                            name + "_lower is " + FormatNumber(low) + " and " + name + "_upper " + FormatNumber(high) +
                                "; factors are drawn between them, so they must be from 0 on, the lower one first"};
  };
  if (Mistake mistake = factors("contrast", distort.contrast_lower(), distort.contrast_upper())) return mistake;
  return factors("saturation", distort.saturation_lower(), distort.saturation_upper());
}

Mistake CheckExpansion(const TransformationParameter& param) {
  if (!param.has_expand_param()) return {};
  if (Mistake mistake = CheckProb("expand_param.prob", param.expand_param().prob())) return mistake;
  const float ratio = param.expand_param().max_expand_ratio();
  if (Mistake mistake = CheckRange("expand_param.max_expand_ratio", ratio, {1, 16})) return mistake;
  if (param.has_mean_file() && param.expand_param().prob() > 0 && ratio > 1) {
    return TransformMistake{"expand_param",
                            "larger images are filled with mean_value, but mean_file is set; give one "
                            "mean_value per channel instead"};
  }
  return {};
}

Mistake CheckEmission(const TransformationParameter& param) {
  const EmitConstraint& emit = param.emit_constraint();
  if (emit.emit_type() != EmitConstraint::MIN_OVERLAP) return {};
  if (emit.has_emit_overlap() && emit.emit_overlap() >= 0 && emit.emit_overlap() <= 1) return {};
  return TransformMistake{"emit_constraint.emit_overlap",
                          "MIN_OVERLAP needs emit_overlap, the share of an object's "
                          "area that must be seen, from 0 to 1"};
}

}  // namespace

std::optional<TransformMistake> FindMistakeOfSsd(const TransformationParameter& param) {
  if (Mistake mistake = CheckResizeParam(param)) return mistake;
  if (Mistake mistake = CheckDistortion(param.distort_param())) return mistake;
  if (Mistake mistake = CheckExpansion(param)) return mistake;
  if (Mistake mistake = CheckEmission(param)) return mistake;
  // SSD itself does not ask for the probability.
  NoiseParameter noise = param.noise_param();
  noise.clear_prob();
  if (noise.ByteSizeLong() == 0) return {};
  return TransformMistake{"noise_param", "noise is not supported; remove noise_param"};
}

}  // namespace crema
