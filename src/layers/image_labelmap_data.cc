// ImageLabelmapData: batches of image files and of the targets of their pixels, for nets that find edges or what stands
// out (HED's ImageLabelmapDataLayer; Xie and Tu, "Holistically-Nested Edge Detection", 2015). Images smaller than
// crop_size get a border at the bottom and at the right: the mean, and ignore_label.
#include "layers/dense_image_source.h"

namespace crema {

namespace {

class ImageLabelmapDataLayer : public DenseImageSource {
 private:
  FileFields ReadFileFields(const LayerParameter& layer) override {
    return FileFieldsOf("image_data_param", layer.image_data_param());
  }
  const char* example_of_source() const override {
    return "file with the paths of an image and its label image per line";
  }
  int64_t IgnoreLabelOf(const LayerParameter& layer) const override { return layer.image_data_param().ignore_label(); }
  DenseImageList ReadList(const std::string& root) const override { return ReadDenseImageList(source(), root); }

  void CheckImageFields(LayerSetup& setup) override {
    const ImageDataParameter& param = setup.param().image_data_param();
    RefuseFieldsOfOthers(setup);
    if (param.has_normalize() && param.has_labelmap()) {
      setup.Fail(Field("normalize"), "normalize and labelmap are both set, and say the same; keep labelmap");
    }
    const bool as_stored = param.has_normalize() && !param.normalize();
    targets_ = as_stored ? ImageDataParameter::NUMBERS : param.labelmap();
    DenseImageSource::CheckImageFields(setup);
  }

  Transform::SmallImages small_images() const override { return Transform::SmallImages::kPadded; }
  std::optional<PixelTargets> Targets() const override { return TargetsOf(targets_); }

  ImageDataParameter::Labelmap targets_ = ImageDataParameter::BINARY;
};

}  // namespace

REGISTER_LAYER(ImageLabelmapData, ImageLabelmapDataLayer, "image_data_param", "transform_param");

}  // namespace crema
