// ImageSegData: batches of image files, of the classes of their pixels and of the extents of the images (DeepLab's
// ImageSegDataLayer; Chen et al., "Semantic Image Segmentation with Deep Convolutional Nets and Fully Connected CRFs",
// 2015). Images smaller than crop_size get a border at the bottom and at the right: the mean, and ignore_label. The
// third top, N x 1 x 1 x 2, says height and width of each image without it, at most crop_size.
#include <algorithm>
#include <span>
#include <vector>

#include "layers/dense_image_source.h"

namespace crema {

namespace {

class ImageSegDataLayer : public DenseImageSource {
 private:
  FileFields ReadFileFields(const LayerParameter& layer) override {
    label_type_ = layer.image_data_param().label_type();
    return FileFieldsOf("image_data_param", layer.image_data_param());
  }
  const char* example_of_source() const override { return "file with one path, and what label_type says, per line"; }
  int64_t IgnoreLabelOf(const LayerParameter& layer) const override { return layer.image_data_param().ignore_label(); }

  void CheckImageFields(LayerSetup& setup) override {
    RefuseFieldsOfOthers(setup);
    DenseImageSource::CheckImageFields(setup);
  }

  int most_tops() const override { return 3; }
  Transform::SmallImages small_images() const override { return Transform::SmallImages::kPadded; }

  std::vector<Shape> TopShapes(LayerSetup& setup) override {
    std::vector<Shape> shapes = ImageSource::TopShapes(setup);
    if (setup.tops() < 3) return shapes;
    const Shape extents{shapes[0][0], 1, 1, 2};
    if (const Shape* given = setup.shape_override(2); given && *given != extents) {
      setup.Fail("top", "\"" + setup.param().top(2) + "\" cannot be " + given->ToString() +
                            ": height and width of each image are " + extents.ToString());
    }
    shapes.push_back(extents);
    return shapes;
  }

  DenseImageList ReadList(const std::string& root) const override {
    return ReadImageSegList(source(), root, label_type_, ignore_label());
  }

  void Deliver(const Batch& batch, std::span<const Tensor> tops) const override {
    if (tops.size() < 3) return ImageSource::Deliver(batch, tops);
    ImageSource::Deliver(batch, tops.first(1));
    const int64_t items = tops[1].shape()[0], pixels = tops[1].count() / items;
    for (int64_t i = 0; i < items; ++i) {
      const float* of_item = batch.labels + i * (pixels + 2);
      CopyValues(of_item, pixels, tops[1].f32() + i * pixels);
      std::copy(of_item + pixels, of_item + pixels + 2, tops[2].f32() + 2 * i);
    }
  }

  ImageDataParameter::LabelType label_type_ = ImageDataParameter::IMAGE;
};

}  // namespace

REGISTER_LAYER(ImageSegData, ImageSegDataLayer, "image_data_param", "transform_param");

}  // namespace crema
