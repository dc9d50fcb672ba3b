#include "layers/dense_image_source.h"

#include <utility>

namespace crema {

void DenseImageSource::CheckImageFields(LayerSetup& setup) {
  tops_ = setup.tops();
  const int64_t ignored = IgnoreLabelOf(setup.param());
  if (ignored < 0 || ignored > 255) {
    setup.Fail(Field("ignore_label"), "ignore_label is " + std::to_string(ignored) +
                                          ", but label images hold numbers from 0 to 255; take one of these");
  }
  ignore_label_ = static_cast<int>(ignored);
  if (small_images() == Transform::SmallImages::kPadded && transform().has_mean_file()) {
    setup.Fail("transform_param.mean_file",
               "mean_file does not fit images that get a border where they are smaller than crop_size; give one "
               "mean_value per channel");
  }
  if (transform().multi_scale()) {
    setup.Fail("transform_param.multi_scale",
               "multi_scale is not done to label images; take random_resized_crop or img_rand_resize_lower and _upper");
  }
  ImageFileSource::CheckImageFields(setup);
}

Shape DenseImageSource::LabelShape(LayerSetup& setup, int64_t items) {
  const Shape labels{items, 1, item_shape()[1], item_shape()[2]};
  if (const Shape* given = setup.shape_override(1); given && *given != labels) {
    setup.Fail("top", "\"" + setup.param().top(1) + "\" cannot be " + given->ToString() + ": the labels of " +
                          "all pixels are " + labels.ToString());
  }
  return labels;
}

std::string DenseImageSource::Remedy(int cores) const {
  return "decoding takes " + (cores == 1 ? std::string("the only core") : "all " + std::to_string(cores) + " cores") +
         ": store smaller images, with label images to match";
}

std::shared_ptr<const ItemLoader> DenseImageSource::MakeFileLoader(std::shared_ptr<const DenseImageList> list,
                                                                   Transform transform,
                                                                   const SampleOrder& order) const {
  if (tops_ == 1) return std::make_shared<ImageListLoader>(ImagesOf(list), std::move(transform), order);
  const std::shared_ptr<const ImageList> labels(list, &list->labels);
  return std::make_shared<DenseImageLoader>(ImagesOf(list), labels, std::move(transform), order,
                                            static_cast<float>(ignore_label_), tops_ > 2, Targets());
}

}  // namespace crema
