// ImageData: batches of image files that a list names, and the class of each (BVLC Caffe's ImageDataLayer), or numbers.
#include <memory>
#include <utility>

#include "data/loaders/image_list_loader.h"
#include "layers/field_range.h"
#include "layers/image_file_source.h"

namespace crema {

namespace {

class ImageDataLayer : public ImageFileSource {
 private:
  FileFields ReadFileFields(const LayerParameter& layer) override {
    FileFields fields = FileFieldsOf("image_data_param", layer.image_data_param());
    fields.common.balance_classes = layer.image_data_param().balance_classes();
    return fields;
  }
  const char* example_of_source() const override { return "file with one path and label per line"; }

  void CheckImageFields(LayerSetup& setup) override {
    const ImageDataParameter& param = setup.param().image_data_param();
    label_count_ = ReadInRange(setup, Field("label_count"), param.label_count(), {0, kMaxLabelCount});
    RefuseFieldsOfOthers(setup);
    if (label_count_ > 0 && param.balance_classes()) {
      setup.Fail(Field("balance_classes"), "balance_classes needs images of one class each; remove it or label_count");
    }
    ImageFileSource::CheckImageFields(setup);
  }

  int64_t LabelCount(LayerSetup&, int64_t) override { return label_count_; }

  DenseImageList ReadList(const std::string& root) const override {
    return {ReadImageList(source(), root, label_count_), {}};
  }

  std::shared_ptr<const ItemLoader> MakeFileLoader(std::shared_ptr<const DenseImageList> list, Transform transform,
                                                   const SampleOrder& order) const override {
    return std::make_shared<ImageListLoader>(ImagesOf(list), std::move(transform), order);
  }

  uint32_t label_count_ = 0;
};

}  // namespace

REGISTER_LAYER(ImageData, ImageDataLayer, "image_data_param", "transform_param");

}  // namespace crema
