// DenseImageData: batches of image files and of the classes of their pixels (SegNet's DenseImageDataLayer;
// Badrinarayanan, Kendall and Cipolla, "SegNet: A Deep Convolutional Encoder-Decoder Architecture", 2015).
#include "layers/dense_image_source.h"

namespace crema {

namespace {

class DenseImageDataLayer : public DenseImageSource {
 private:
  FileFields ReadFileFields(const LayerParameter& layer) override {
    return FileFieldsOf("dense_image_data_param", layer.dense_image_data_param());
  }
  const char* example_of_source() const override {
    return "file with the paths of an image and its label image per line";
  }
  int64_t IgnoreLabelOf(const LayerParameter& layer) const override {
    return layer.dense_image_data_param().ignore_label();
  }
  DenseImageList ReadList(const std::string& root) const override { return ReadDenseImageList(source(), root); }
};

}  // namespace

REGISTER_LAYER(DenseImageData, DenseImageDataLayer, "dense_image_data_param", "transform_param");

}  // namespace crema
