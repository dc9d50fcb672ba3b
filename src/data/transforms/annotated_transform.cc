#include "data/transforms/annotated_transform.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace crema {

namespace {

enum TransformNumber : uint64_t {
  kColors = 64,
  kExpands = kColors + ColorDistortion::kNumbers,
  kRatio,
  kTop,
  kLeft,
  kPart,
};

constexpr ObjectBox kWhole = {0, 0, 1, 1};

// Boxes of which a side is less than `least` pixels, where shares are of an image of that size.
void EraseSmaller(const ImageExtent& of, float least, std::vector<BoxedObject>* objects) {
  std::erase_if(*objects, [&](const BoxedObject& object) {
    return !(object.box.width() * static_cast<float>(of.width) >= least &&
             object.box.height() * static_cast<float>(of.height) >= least);
  });
}

}  // namespace

AnnotatedTransform::AnnotatedTransform(Transform pixels, const TransformationParameter& param,
                                       const AnnotatedDataParameter& boxes, Phase phase)
    : pixels_(std::move(pixels)), around_(1, 0) {
  if (param.mean_value_size() > 0) around_.clear();
  for (const float mean : param.mean_value()) {
    around_.push_back(static_cast<uint8_t>(std::lrint(std::clamp(mean, 0.0f, 255.0f))));
  }
  constrains_ = param.has_emit_constraint();
  emission_ = param.emit_constraint();
  if (phase != TRAIN) return;
  distortion_ = ColorDistortion(param.distort_param());
  sampler_ = PartSampler(boxes);
  jitters_ = boxes.yolo_data_type() != 0;
  expansion_ = param.expand_param();
  // As SSD does, ratios that make no difference are not drawn.
  expands_ = param.has_expand_param() && expansion_.prob() > 0 && expansion_.max_expand_ratio() >= 1.01f;
}

std::string AnnotatedTransform::Check(const ImageSize& image) const {
  std::string problem = pixels_.Check(image);
  if (!problem.empty()) return problem;
  const bool changes = image.channels == 3 || (image.channels == 1 && !distortion_.needs_colors());
  if (!distortion_.changes() || changes) return {};
  return "distort_param changes images of 3 channels, but the image is " + image.ToString() +
         " (channels x height x width); set force_color: true, or, where the net takes grey images, remove saturation, "
         "hue and random_order";
}

AnnotatedView AnnotatedTransform::Look(const ImageExtent& image, const RandomStream& random,
                                       std::vector<ObjectBox>* parts, std::vector<BoxedObject>* objects) const {
  AnnotatedView view{image, 0, 0, {0, 0, image.height, image.width}};
  if (expands_) Expand(image, random, &view, objects);
  if (sampler_.draws()) TakePart(random, &view, parts, objects);
  // What reaches over the border, and boxes that are empty.
  KeepSeen(kWhole, objects);
  // What rounding leaves of boxes that end where the part begins.
  constexpr float kLeast = 1e-3f;  // pixels
  EraseSmaller({view.part.height, view.part.width}, kLeast, objects);
  FitBoxes({view.part.height, view.part.width}, objects);
  // As Darknet does it, of the pixels that the net sees.
  if (jitters_) EraseSmaller(pixels_.ResizedExtent({view.part.height, view.part.width}), 1, objects);
  if (pixels_.Mirrors(random)) {
    for (BoxedObject& object : *objects) object.box = Mirrored(object.box);
  }
  return view;
}

void AnnotatedTransform::FitBoxes(const ImageExtent& part, std::vector<BoxedObject>* objects) const {
  const ImageArea place = pixels_.PlaceOf(part);
  const ImageExtent whole = pixels_.ResizedExtent(part);
  if (place.height == whole.height && place.width == whole.width) return;
  const auto inside = [](float share, int first, int extent, int of) {
    return (static_cast<float>(first) + share * static_cast<float>(extent)) / static_cast<float>(of);
  };
  for (auto& [label, instance, box, difficult] : *objects) {
    box = {inside(box.xmin, place.left, place.width, whole.width),
           inside(box.ymin, place.top, place.height, whole.height),
           inside(box.xmax, place.left, place.width, whole.width),
           inside(box.ymax, place.top, place.height, whole.height)};
  }
}

void AnnotatedTransform::Expand(const ImageExtent& image, const RandomStream& random, AnnotatedView* view,
                                std::vector<BoxedObject>* objects) const {
  if (!(random.Uniform(kExpands) < expansion_.prob())) return;
  const float ratio = 1 + (expansion_.max_expand_ratio() - 1) * random.Uniform(kRatio);
  const auto larger = [ratio](int side) { return static_cast<int>(static_cast<float>(side) * ratio); };
  view->canvas = {larger(image.height), larger(image.width)};
  const auto place = [&random](uint64_t number, int room) {
    return static_cast<int>(static_cast<float>(room) * random.Uniform(number));
  };
  view->top = place(kTop, view->canvas.height - image.height);
  view->left = place(kLeft, view->canvas.width - image.width);
  view->part = {0, 0, view->canvas.height, view->canvas.width};
  const auto height = static_cast<float>(image.height), width = static_cast<float>(image.width);
  // What lies beside the image shows nothing.
  std::erase_if(*objects, [](BoxedObject& object) { return !Project(kWhole, &object.box); });
  KeepSeen({static_cast<float>(-view->left) / width, static_cast<float>(-view->top) / height,
            static_cast<float>(view->canvas.width - view->left) / width,
            static_cast<float>(view->canvas.height - view->top) / height},
           objects);
}

void AnnotatedTransform::TakePart(const RandomStream& random, AnnotatedView* view, std::vector<ObjectBox>* parts,
                                  std::vector<BoxedObject>* objects) const {
  const std::optional<ObjectBox> drawn = sampler_.Draw(*objects, random, kPart, parts);
  if (!drawn) return;
  const ObjectBox part = Clipped(*drawn);
  const auto height = static_cast<float>(view->canvas.height), width = static_cast<float>(view->canvas.width);
  view->part.top = std::min(static_cast<int>(part.ymin * height), view->canvas.height - 1);
  view->part.left = std::min(static_cast<int>(part.xmin * width), view->canvas.width - 1);
  view->part.height =
      std::clamp(static_cast<int>(part.ymax * height - part.ymin * height), 1, view->canvas.height - view->part.top);
  view->part.width =
      std::clamp(static_cast<int>(part.xmax * width - part.xmin * width), 1, view->canvas.width - view->part.left);
  // Boxes are those of the pixels that are cut out.
  const auto left = static_cast<float>(view->part.left), top = static_cast<float>(view->part.top);
  KeepSeen({left / width, top / height, (left + static_cast<float>(view->part.width)) / width,
            (top + static_cast<float>(view->part.height)) / height},
           objects);
}

bool AnnotatedTransform::IsKept(const ObjectBox& part, const ObjectBox& object) const {
  if (!constrains_) return true;
  if (emission_.emit_type() == EmitConstraint::MIN_OVERLAP) return Coverage(object, part) > emission_.emit_overlap();
  const float x = (object.xmin + object.xmax) / 2, y = (object.ymin + object.ymax) / 2;
  return x >= part.xmin && x <= part.xmax && y >= part.ymin && y <= part.ymax;
}

void AnnotatedTransform::KeepSeen(const ObjectBox& part, std::vector<BoxedObject>* objects) const {
  size_t kept = 0;
  for (BoxedObject object : *objects) {
    if (IsKept(part, object.box) && Project(part, &object.box)) (*objects)[kept++] = object;
  }
  objects->resize(kept);
}

void AnnotatedTransform::Apply(Image* image, const RandomStream& random, AnnotatedScratch* scratch,
                               std::vector<BoxedObject>* objects, float* out) const {
  const AnnotatedView view = Look({image->height, image->width}, random, &scratch->parts, objects);
  // What is seen of the image itself.
  ImageArea seen;
  seen.top = std::clamp(view.part.top - view.top, 0, image->height);
  seen.left = std::clamp(view.part.left - view.left, 0, image->width);
  seen.height = std::clamp(view.part.top + view.part.height - view.top, 0, image->height) - seen.top;
  seen.width = std::clamp(view.part.left + view.part.width - view.left, 0, image->width) - seen.left;
  if (distortion_.changes()) distortion_.Apply(random, kColors, seen, image);
  if (seen.height == view.part.height && seen.width == view.part.width) {
    return pixels_.ApplyToPart(*image, seen, random, &scratch->transform, out);
  }
  const int top = seen.top + view.top - view.part.top, left = seen.left + view.left - view.part.left;
  FramedImage framed{*image, seen, top, left, view.part.height, view.part.width, around_};
  if (seen.height == 0 || seen.width == 0) {
    framed.seen = {};
    framed.top = framed.left = 0;
  }
  pixels_.ApplyFramed(framed, random, &scratch->transform, out);
}

}  // namespace crema
