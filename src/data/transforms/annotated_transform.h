// What happens to images and their boxes on the way into a net: SSD's transformations (Liu et al., "SSD: Single Shot
// MultiBox Detector", 2016, sections 2.2 and 3.6).
#ifndef CREMA_DATA_TRANSFORMS_ANNOTATED_TRANSFORM_H_
#define CREMA_DATA_TRANSFORMS_ANNOTATED_TRANSFORM_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "crema/data.pb.h"
#include "data/transforms/color_distortion.h"
#include "data/transforms/object_box.h"
#include "data/transforms/part_sampler.h"
#include "data/transforms/transform.h"
#include "image/image.h"

namespace crema {

// The working memory of AnnotatedTransform::Apply, kept from image to image.
struct AnnotatedScratch {
  std::vector<ObjectBox> parts;
  TransformScratch transform;
};

// Which part of which larger image is taken.
struct AnnotatedView {
  ImageExtent canvas;     // of the image, or of a larger one
  int top = 0, left = 0;  // where the image lies in it
  ImageArea part;         // of the canvas
};

// In TRAIN: colours, expansion, a part by batch_sampler; then what Transform does, and the boxes likewise. The random
// numbers of an image are those of its stream: what Transform reads, 64 to 74 the colours, 75 to 78 the expansion, 79
// which part, from 2^40 on those that are drawn. Where YOLO's jitter draws it (yolo_data_type), objects of which a side
// is less than a pixel of what the net sees are left out, as by Darknet. Immutable, so any number of threads may use
// it.
class AnnotatedTransform {
 public:
  // `pixels` is made of the same `param`, for the same phase. Changes nothing in TEST but what Transform does.
  AnnotatedTransform(Transform pixels, const TransformationParameter& param, const AnnotatedDataParameter& boxes,
                     Phase phase);

  const Transform& pixels() const { return pixels_; }
  // What is wrong with an image of that size, with the remedy; empty where nothing is.
  std::string Check(const ImageSize& image) const;

  // Chooses what is seen of an image, and makes its objects those that are seen: in the order they had, with corners in
  // shares of what the net sees, mirrored where it is.
  AnnotatedView Look(const ImageExtent& image, const RandomStream& random, std::vector<ObjectBox>* parts,
                     std::vector<BoxedObject>* objects) const;
  // Transforms the image, which Check must have accepted, to Transform::OutputSize().count() values, and its objects as
  // Look does. Changes the image.
  void Apply(Image* image, const RandomStream& random, AnnotatedScratch* scratch, std::vector<BoxedObject>* objects,
             float* out) const;

 private:
  void Expand(const ImageExtent& image, const RandomStream& random, AnnotatedView* view,
              std::vector<BoxedObject>* objects) const;
  void TakePart(const RandomStream& random, AnnotatedView* view, std::vector<ObjectBox>* parts,
                std::vector<BoxedObject>* objects) const;
  // Makes corners shares of what the part is resized to, where that has a border.
  void FitBoxes(const ImageExtent& part, std::vector<BoxedObject>* objects) const;
  bool IsKept(const ObjectBox& part, const ObjectBox& object) const;
  void KeepSeen(const ObjectBox& part, std::vector<BoxedObject>* objects) const;

  Transform pixels_;
  ColorDistortion distortion_;
  PartSampler sampler_;
  ExpansionParameter expansion_;
  bool expands_ = false, constrains_ = false, jitters_ = false;
  EmitConstraint emission_;
  std::vector<uint8_t> around_;  // what is around images that are made larger, of each channel or of all
};

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_ANNOTATED_TRANSFORM_H_
