#include "data/transforms/part_sampler.h"

#include <algorithm>
#include <cmath>

#include "base/number_text.h"

namespace crema {

namespace {

constexpr uint64_t kNumbersPerTrial = 4;

float Between(float low, float high, float share) { return low + (high - low) * share; }

using Mistake = std::optional<TransformMistake>;

Mistake CheckEnds(const std::string& block, const std::string& name, float low, float high, const NumberRange& range) {
  if (Mistake mistake = CheckRange(block + ".min_" + name, low, range)) return mistake;
  if (Mistake mistake = CheckRange(block + ".max_" + name, high, range)) return mistake;
  if (low <= high) return {};
  return TransformMistake{block + ".min_" + name, "min_" + name + " " + FormatNumber(low) + " exceeds max_" + name +
                                                      " " + FormatNumber(high) + "; exchange them"};
}

// Of that size, anywhere in the image. Reads the numbers `first` and `first` + 1.
ObjectBox PlacedPart(float width, float height, const RandomStream& random, uint64_t first) {
  const float left = (1 - width) * random.Uniform(first), top = (1 - height) * random.Uniform(first + 1);
  return {left, top, left + width, top + height};
}

Mistake CheckSampler(const BatchSampler& batch, const std::string& field) {
  if (!batch.use_original_image()) {
    return TransformMistake{
        field + ".use_original_image",
        "use_original_image: false is not supported, parts are drawn of the whole image; remove it"};
  }
  const Sampler& sampler = batch.sampler();
  const std::string of_sampler = field + ".sampler";
  // Below a thousandth nothing of an image is left.
  if (Mistake mistake = CheckEnds(of_sampler, "scale", sampler.min_scale(), sampler.max_scale(), {0.001f, 1})) {
    return mistake;
  }
  if (Mistake mistake = CheckEnds(of_sampler, "aspect_ratio", sampler.min_aspect_ratio(), sampler.max_aspect_ratio(),
                                  {0.001f, 1000})) {
    return mistake;
  }
  const SampleConstraint& asked = batch.sample_constraint();
  const std::string of_constraint = field + ".sample_constraint";
  const auto check = [&](const std::string& name, bool has_low, float low, bool has_high, float high) {
    return CheckEnds(of_constraint, name, has_low ? low : 0, has_high ? high : 1, kFraction);
  };
  if (Mistake mistake = check("jaccard_overlap", asked.has_min_jaccard_overlap(), asked.min_jaccard_overlap(),
                              asked.has_max_jaccard_overlap(), asked.max_jaccard_overlap())) {
    return mistake;
  }
  if (Mistake mistake = check("sample_coverage", asked.has_min_sample_coverage(), asked.min_sample_coverage(),
                              asked.has_max_sample_coverage(), asked.max_sample_coverage())) {
    return mistake;
  }
  return check("object_coverage", asked.has_min_object_coverage(), asked.min_object_coverage(),
               asked.has_max_object_coverage(), asked.max_object_coverage());
}

}  // namespace

std::optional<TransformMistake> PartSampler::FindMistake(const AnnotatedDataParameter& param) {
  if (param.yolo_data_type() != 0 && param.yolo_data_type() != 1) {
    return TransformMistake{"yolo_data_type",
                            "yolo_data_type is " + std::to_string(param.yolo_data_type()) + "; it must be 0 or 1"};
  }
  if (Mistake mistake =
          CheckRange("yolo_data_jitter", param.yolo_data_jitter(), {.low = 0, .high = 1, .below_high = true})) {
    return mistake;
  }
  for (int i = 0; i < param.batch_sampler_size(); ++i) {
    const std::string field = "batch_sampler[" + std::to_string(i) + "]";
    if (Mistake mistake = CheckSampler(param.batch_sampler(i), field)) return mistake;
  }
  return {};
}

std::optional<ObjectBox> PartSampler::Draw(std::span<const BoxedObject> objects, const RandomStream& random,
                                           uint64_t first, std::vector<ObjectBox>* found) const {
  constexpr uint64_t kFirst = uint64_t{1} << 40;
  if (jitters_) {
    const auto side = [&](uint64_t number) { return 1 - jitter_ * random.Uniform(kFirst + number); };
    return PlacedPart(side(0), side(1), random, kFirst + 2);
  }
  found->clear();
  for (size_t s = 0; s < samplers_.size(); ++s) {
    const BatchSampler& batch = samplers_[s];
    const size_t most = batch.has_max_sample() ? found->size() + batch.max_sample() : SIZE_MAX;
    uint64_t number = (s + 1) * kFirst;
    for (uint32_t trial = 0; trial < batch.max_trials() && found->size() < most; ++trial, number += kNumbersPerTrial) {
      const ObjectBox part = DrawPart(batch.sampler(), random, number);
      if (Fulfils(part, objects, batch.sample_constraint())) found->push_back(part);
    }
  }
  if (found->empty()) return {};
  return (*found)[random.Below(first, found->size())];
}

ObjectBox DrawPart(const Sampler& sampler, const RandomStream& random, uint64_t first) {
  const float scale = Between(sampler.min_scale(), sampler.max_scale(), random.Uniform(first));
  const float drawn = Between(sampler.min_aspect_ratio(), sampler.max_aspect_ratio(), random.Uniform(first + 1));
  const float root = std::sqrt(std::clamp(drawn, scale * scale, 1 / (scale * scale)));
  const float width = std::min(1.0f, scale * root), height = std::min(1.0f, scale / root);
  return PlacedPart(width, height, random, first + 2);
}

bool Fulfils(const ObjectBox& part, std::span<const BoxedObject> objects, const SampleConstraint& asked) {
  const bool overlap = asked.has_min_jaccard_overlap() || asked.has_max_jaccard_overlap();
  const bool of_part = asked.has_min_sample_coverage() || asked.has_max_sample_coverage();
  const bool of_object = asked.has_min_object_coverage() || asked.has_max_object_coverage();
  if (!overlap && !of_part && !of_object) return true;
  const auto within = [](float value, bool has_low, float low, bool has_high, float high) {
    return !(has_low && value < low) && !(has_high && value > high);
  };
  return std::any_of(objects.begin(), objects.end(), [&](const BoxedObject& object) {
    return (!overlap ||
            within(IntersectionByUnion(part, object.box), asked.has_min_jaccard_overlap(), asked.min_jaccard_overlap(),
                   asked.has_max_jaccard_overlap(), asked.max_jaccard_overlap())) &&
           (!of_part || within(Coverage(part, object.box), asked.has_min_sample_coverage(), asked.min_sample_coverage(),
                               asked.has_max_sample_coverage(), asked.max_sample_coverage())) &&
           (!of_object ||
            within(Coverage(object.box, part), asked.has_min_object_coverage(), asked.min_object_coverage(),
                   asked.has_max_object_coverage(), asked.max_object_coverage()));
  });
}

}  // namespace crema
