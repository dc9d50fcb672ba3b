// Random parts of images around their objects: SSD's batch_sampler (Liu et al., "SSD: Single Shot MultiBox Detector",
// 2016, section 2.2), or YOLO's jitter, whatever objects there are.
#ifndef CREMA_DATA_TRANSFORMS_PART_SAMPLER_H_
#define CREMA_DATA_TRANSFORMS_PART_SAMPLER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "crema/data.pb.h"
#include "data/transforms/object_box.h"
#include "data/transforms/transform_check.h"

namespace crema {

// Immutable, so any number of threads may use it.
class PartSampler {
 public:
  PartSampler() = default;  // draws nothing
  explicit PartSampler(const AnnotatedDataParameter& param)
      : samplers_(param.batch_sampler().begin(), param.batch_sampler().end()),
        jitters_(param.yolo_data_type() != 0),
        jitter_(param.yolo_data_jitter()) {}

  // The first field that is out of range or not supported; fields are below annotated_data_param.
  static std::optional<TransformMistake> FindMistake(const AnnotatedDataParameter& param);

  bool draws() const { return jitters_ || !samplers_.empty(); }
  // One of all parts that fulfil their constraints, each as likely; none where there is no such part. Reads number
  // `first` of `random`, and trial t of sampler s those from ((s + 1) << 40) + 4 t on; a jitter reads
  // those of the first. `found` is working memory.
  std::optional<ObjectBox> Draw(std::span<const BoxedObject> objects, const RandomStream& random, uint64_t first,
                                std::vector<ObjectBox>* found) const;

 private:
  std::vector<BatchSampler> samplers_;
  bool jitters_ = false;
  float jitter_ = 0;  // how much shorter sides are at most, as a share of them
};

// Width and height of the part follow from its scale, and from its proportions as far as they leave it within the
// image. Reads the numbers `first` to `first` + 3.
ObjectBox DrawPart(const Sampler& sampler, const RandomStream& random, uint64_t first);

// Whether one of the objects at least fulfils all that is asked for; true where nothing is.
bool Fulfils(const ObjectBox& part, std::span<const BoxedObject> objects, const SampleConstraint& constraint);

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_PART_SAMPLER_H_
