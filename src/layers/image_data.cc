// ImageData: batches of image files that a list names, and the class of each (BVLC Caffe's ImageDataLayer).
#include <memory>
#include <utility>

#include "data/image_list_loader.h"
#include "layers/image_file_source.h"

namespace crema {

namespace {

class ImageDataLayer : public ImageFileSource {
 private:
  FileFields ReadFileFields(const LayerParameter& layer) override {
    return FileFieldsOf("image_data_param", layer.image_data_param());
  }
  const char* example_of_source() const override { return "file with one path and label per line"; }

  void CheckImageFields(LayerSetup& setup) override {
    const ImageDataParameter& param = setup.param().image_data_param();
    for (const auto& [field, set] :
         {std::pair{"label_type", param.has_label_type()}, {"ignore_label", param.has_ignore_label()}}) {
      if (!set) continue;
      setup.Fail(Field(field), std::string(field) + " is for labels of pixels, which layer \"ImageSegData\" gives; " +
                                   "take that type, or remove " + field);
    }
    ImageFileSource::CheckImageFields(setup);
  }

  DenseImageList ReadList(const std::string& root) const override { return {ReadImageList(source(), root), {}}; }

  std::shared_ptr<const ItemLoader> MakeFileLoader(std::shared_ptr<const DenseImageList> list, Transform transform,
                                                   const SampleOrder& order) const override {
    return std::make_shared<ImageListLoader>(ImagesOf(list), std::move(transform), order);
  }
};

}  // namespace

REGISTER_LAYER(ImageData, ImageDataLayer, "image_data_param", "transform_param");

}  // namespace crema
