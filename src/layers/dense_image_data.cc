// DenseImageData: batches of image files and of the classes of their pixels (SegNet's DenseImageDataLayer;
// Badrinarayanan, Kendall and Cipolla, "SegNet: A Deep Convolutional Encoder-Decoder Architecture", 2015).
#include <memory>
#include <utility>

#include "data/dense_image_loader.h"
#include "layers/image_file_source.h"

namespace crema {

namespace {

class DenseImageDataLayer : public ImageFileSource {
 private:
  FileFields ReadFileFields(const LayerParameter& layer) override {
    return FileFieldsOf("dense_image_data_param", layer.dense_image_data_param());
  }
  const char* example_of_source() const override {
    return "file with the paths of an image and its label image per line";
  }

  void CheckImageFields(LayerSetup& setup) override {
    has_labels_ = setup.tops() > 1;
    ignore_label_ = setup.param().dense_image_data_param().ignore_label();
    if (ignore_label_ > 255) {
      setup.Fail(Field("ignore_label"), "ignore_label is " + std::to_string(ignore_label_) +
                                            ", but label images hold numbers up to 255; take one of these");
    }
    ImageFileSource::CheckImageFields(setup);
  }

  Shape LabelShape(LayerSetup& setup, int64_t items) override {
    const Shape labels{items, 1, item_shape()[1], item_shape()[2]};
    if (const Shape* given = setup.shape_override(1); given && *given != labels) {
      setup.Fail("top", "\"" + setup.param().top(1) + "\" cannot be " + given->ToString() + ": the labels of " +
                            "all pixels are " + labels.ToString());
    }
    return labels;
  }

  std::string Remedy(int cores) const override {
    return "decoding takes " + (cores == 1 ? std::string("the only core") : "all " + std::to_string(cores) + " cores") +
           ": store smaller images, with label images to match";
  }

  DenseImageList ReadList(const std::string& root) const override { return ReadDenseImageList(source(), root); }

  std::shared_ptr<const ItemLoader> MakeFileLoader(std::shared_ptr<const DenseImageList> list, Transform transform,
                                                   const SampleOrder& order) const override {
    if (!has_labels_) return std::make_shared<ImageListLoader>(ImagesOf(list), std::move(transform), order);
    const std::shared_ptr<const ImageList> labels(list, &list->labels);
    return std::make_shared<DenseImageLoader>(ImagesOf(list), labels, std::move(transform), order,
                                              static_cast<float>(ignore_label_));
  }

  bool has_labels_ = false;  // else they are not read
  uint32_t ignore_label_ = 0;
};

}  // namespace

REGISTER_LAYER(DenseImageData, DenseImageDataLayer, "dense_image_data_param", "transform_param");

}  // namespace crema
