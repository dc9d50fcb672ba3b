#include "layers/image_source.h"

#include <algorithm>
#include <utility>

#include "data/transforms/transform_check.h"

namespace crema {

void ImageSource::CheckFields(LayerSetup& setup) {
  setup.ExpectTops(1, most_tops());
  transform_ = setup.param().transform_param();
  if (const auto mistake = FindMistake(transform_)) setup.Fail("transform_param." + mistake->field, mistake->message);
  for (const TransformMistake& idle : FieldsWithoutEffect(transform_)) {
    setup.Warn("transform_param." + idle.field, idle.message);
  }
  CheckFieldsOfSsd(setup);
  mean_file_ = setup.ResolvePath(transform_.mean_file());
  CheckImageFields(setup);
  if (transform_.is_flow() && !reads_flow()) {
    setup.Fail("transform_param.is_flow",
               "is_flow is for optical flow, which layer \"VideoData\" reads (modality: FLOW); remove it");
  }
}

void ImageSource::CheckFieldsOfSsd(LayerSetup& setup) const {
  std::string without_effect;
  for (const int mode : transform_.resize_param().interp_mode()) {
    if (mode == ResizeParameter::LINEAR) continue;
    without_effect += (without_effect.empty() ? "" : ", ") +
                      ResizeParameter::Interp_mode_Name(static_cast<ResizeParameter::Interp_mode>(mode));
  }
  if (!without_effect.empty()) {
    setup.Warn("transform_param.resize_param.interp_mode",
               "images are resized as LINEAR does; " + without_effect + " in interp_mode does nothing");
  }
  if (does_as_ssd()) return;
  for (const auto& [field, set] : {std::pair{"distort_param", transform_.has_distort_param()},
                                   {"expand_param", transform_.has_expand_param()},
                                   {"emit_constraint", transform_.has_emit_constraint()}}) {
    if (!set) continue;
    setup.Fail(std::string("transform_param.") + field,
               std::string(field) + " is for images with boxes, which layer \"AnnotatedData\" reads; remove it" +
                   (field == std::string("distort_param") ? ", or take color_jitter" : ""));
  }
}

std::vector<Shape> ImageSource::TopShapes(LayerSetup& setup) {
  const Shape data = DataShape(setup);
  item_shape_ = Shape({data.dims().begin() + 1, data.dims().end()});
  if (setup.tops() == 1) return {data};
  const Shape labels = LabelShape(setup, data[0]);
  item_labels_ = labels.count() / data[0];
  return {data, labels};
}

Shape ImageSource::LabelShape(LayerSetup& setup, int64_t items) {
  const int64_t of_item = LabelCount(setup, items), count = items * std::max<int64_t>(1, of_item);
  const Shape* const given = setup.shape_override(1);
  const Shape label = given ? *given : of_item > 0 ? Shape{items, of_item} : Shape{items};
  if (label.count() != count) {
    setup.Fail("top", "\"" + setup.param().top(1) + "\" cannot be " + label.ToString() + ": a batch has " +
                          std::to_string(count) + " labels");
  }
  return label;
}

std::shared_ptr<const ItemLoader> ImageSource::MakeLoader(const SampleOrder& order) const {
  auto loader = MakeImageLoader(MakeTransform(), order);
  if (loader->item_shape() != item_shape_) {
    throw UserError("the net was compiled for images of " + item_shape_.ToString() + ", but those of \"" + source() +
                    "\" are " + loader->item_shape().ToString() + " (" + axes_of_items() +
                    "); correct --shape or crop_size");
  }
  if (item_labels_ > 0 && loader->label_count() != item_labels_) {
    throw UserError("the net was compiled for " + std::to_string(item_labels_) + " labels of an image, but \"" +
                    source() + "\" has " + std::to_string(loader->label_count()) + "; correct --shape");
  }
  return loader;
}

void ImageSource::Deliver(const Batch& batch, std::span<const Tensor> tops) const {
  CopyValues(batch.data, tops[0].count(), tops[0].f32());
  if (tops.size() > 1) CopyValues(batch.labels, tops[1].count(), tops[1].f32());
}

std::string ImageSource::Remedy(int cores) const {
  return std::string(loader()->decodes() ? "decoding" : "preparing it") + " takes " +
         (cores == 1 ? "the only core" : "all " + std::to_string(cores) + " cores") +
         ": store smaller images (convert_imageset --shorter_side=256)";
}

Shape ImageSource::DataShape(LayerSetup& setup) {
  if (const Shape* shape = setup.shape_override(0)) {
    if (shape->axes() != 1 + ShapeOfItem({1, 1, 1}).axes() || shape->count() < 1) {
      setup.Fail("top", "the shape given for \"" + setup.param().top(0) + "\" is " + shape->ToString() +
                            "; expected N," + letters_of_items() + ", each at least 1");
    }
    return *shape;
  }
  if (SourceExists()) return ShapeOfSource(setup);
  if (const auto extent = FixedExtentOf(transform_)) return ShapeWithoutSource(setup, *extent);
  const std::string& top = setup.param().top(0);
  setup.Fail(Field("source"), "cannot tell the shape of \"" + top + "\": " + what_source_is() + " \"" +
                                  fields().source + "\" does not exist here, and no crop_size fixes it; make the " +
                                  what_source_is() + ", correct the path, or pass --shape=" + top + "=" +
                                  std::to_string(fields().batch_size) + "," + letters_of_items());
}

Shape ImageSource::ShapeOfSource(LayerSetup& setup) {
  std::string field = "transform_param.mean_file";
  try {
    const Transform transform = MakeTransform();
    field = Field("source");
    return ShapeOfItems(ItemSizeOf(setup, transform));
  } catch (const UserError& error) {
    // What has a place of its own stands in another file.
    if (!error.diagnostics().front().where.file.empty()) throw;
    setup.Fail(field, error.diagnostics().front().message);
  }
}

Shape ImageSource::ShapeOfItems(const ImageSize& image) const {
  const Shape item = ShapeOfItem(image);
  std::vector<int64_t> extents = {fields().batch_size};
  for (int i = 0; i < item.axes(); ++i) extents.push_back(item[i]);
  return Shape(std::move(extents));
}

Shape ImageSource::ShapeWithoutSource(LayerSetup& setup, const ImageExtent& extent) const {
  int32_t channels = 3;
  if (transform_.force_gray()) {
    channels = 1;
  } else if (transform_.force_color()) {
    channels = 3;
  } else if (transform_.mean_value_size() > 1) {
    channels = transform_.mean_value_size();
  } else {
    setup.Warn(Field("source"), std::string(what_source_is()) + " \"" + fields().source +
                                    "\" does not exist here; 3 channels are assumed for \"" + setup.param().top(0) +
                                    "\" (--shape says otherwise)");
  }
  return ShapeOfItems({channels, extent.height, extent.width});
}

}  // namespace crema
