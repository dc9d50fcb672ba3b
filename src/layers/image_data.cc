// ImageData: batches of image files that a list names (BVLC Caffe's ImageDataLayer).
#include <filesystem>
#include <memory>
#include <utility>

#include "data/image_list_loader.h"
#include "layers/image_source.h"

namespace crema {

namespace {

class ImageDataLayer : public ImageSource {
 private:
  Fields ReadFields(const LayerParameter& layer) override {
    const ImageDataParameter& param = layer.image_data_param();
    return {"image_data_param", param.source(),    param.batch_size(), param.prefetch(),
            param.threads(),    param.rand_skip(), param.shuffle()};
  }

  void CheckImageFields(LayerSetup& setup) override {
    const ImageDataParameter& param = setup.param().image_data_param();
    const bool height = param.new_height() > 0, width = param.new_width() > 0;
    if (height != width) {
      const std::string set = height ? "new_height" : "new_width", missing = height ? "new_width" : "new_height";
      setup.Fail("image_data_param." + set, set + " is set without " + missing +
                                                "; set both, or transform_param { resize_shorter_side }, which keeps " +
                                                "the proportions");
    }
    if (height) Resize(setup, param);
    SetColors(setup, param);
    root_ = setup.ResolvePath(param.root_folder());
    if (SourceExists()) ReadList(setup);
  }

  void ReadList(LayerSetup& setup) {
    try {
      ImageList list = ReadImageList(source(), root_);
      if (root_.empty()) list.root = RootOf(setup, list.entries[0].path);
      list_ = std::make_shared<const ImageList>(std::move(list));
    } catch (const UserError& error) {
      // Mistakes within the list have their places there.
      if (!error.diagnostics().front().where.file.empty()) throw;
      setup.Fail("image_data_param.source", error.diagnostics().front().message);
    }
  }

  // As the transform's fields do it.
  void Resize(LayerSetup& setup, const ImageDataParameter& param) {
    constexpr uint32_t kMostPixels = 1 << 15;
    if (FixedResize(transform()).height > 0 || transform().resize_shorter_side() > 0) {
      setup.Fail("image_data_param.new_height",
                 "new_height, new_width and transform_param's resize fields are all set; keep one of them");
    }
    if (param.new_height() > kMostPixels || param.new_width() > kMostPixels) {
      setup.Fail("image_data_param.new_height",
                 "new_height and new_width must be at most " + std::to_string(kMostPixels) + " pixels, got " +
                     std::to_string(param.new_height()) + " and " + std::to_string(param.new_width()));
    }
    transform().set_resize_height(param.new_height());
    transform().set_resize_width(param.new_width());
  }

  void SetColors(LayerSetup& setup, const ImageDataParameter& param) {
    const bool contradicts =
        param.is_color() ? param.has_is_color() && transform().force_gray() : transform().force_color();
    if (contradicts) {
      setup.Fail("image_data_param.is_color", "is_color and transform_param's " +
                                                  std::string(param.is_color() ? "force_gray" : "force_color") +
                                                  " contradict each other; keep is_color");
    }
    const bool grey = !param.is_color() || transform().force_gray();
    transform().set_force_gray(grey);
    transform().set_force_color(!grey);
  }

  const char* what_source_is() const override { return "list"; }
  const char* example_of_source() const override { return "file with one path and label per line"; }

  bool SourceExists() const override {
    std::error_code ignored;
    return std::filesystem::exists(source(), ignored);
  }

  ImageSize ItemSizeOf(LayerSetup&, const Transform& transformed) override {
    return ImageListLoader(list_, transformed, {}).item_size();
  }

  std::shared_ptr<const ItemLoader> MakeImageLoader(Transform transformed, const SampleOrder& order) const override {
    const auto list = list_ ? list_ : std::make_shared<const ImageList>(ReadImageList(source(), root_));
    return std::make_shared<ImageListLoader>(list, std::move(transformed), order);
  }

  std::string root_;
  std::shared_ptr<const ImageList> list_;
};

}  // namespace

REGISTER_LAYER(ImageData, ImageDataLayer, "image_data_param", "transform_param");

}  // namespace crema
