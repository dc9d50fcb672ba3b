#include "layers/image_file_source.h"

#include <utility>

#include "data/loaders/image_list_loader.h"
#include "data/transforms/transform_check.h"

namespace crema {

ImageSource::Fields ImageFileSource::ReadFields(const LayerParameter& layer) {
  files_ = ReadFileFields(layer);
  return files_.common;
}

void ImageFileSource::CheckImageFields(LayerSetup& setup) {
  const bool height = files_.new_height > 0, width = files_.new_width > 0;
  if (height != width) {
    const std::string set = height ? "new_height" : "new_width", missing = height ? "new_width" : "new_height";
    setup.Fail(Field(set), set + " is set without " + missing +
                               "; set both, or transform_param { resize_shorter_side }, which keeps the proportions");
  }
  if (height) Resize(setup);
  SetColors(setup);
  root_ = setup.ResolvePath(files_.root_folder);
  if (SourceExists()) FindImages(setup);
}

void ImageFileSource::RefuseFieldsOfOthers(const LayerSetup& setup) const {
  const ImageDataParameter& param = setup.param().image_data_param();
  const std::string& type = setup.param().type();
  struct OfType {
    const char* field;
    bool set;
    const char *what, *type, *other_type;
  };
  for (const OfType& of :
       {OfType{"balance_classes", param.has_balance_classes(), "the class of a whole image", "ImageData", ""},
        OfType{"label_count", param.has_label_count(), "numbers of a whole image", "ImageData", ""},
        {"label_type", param.has_label_type(), "labels of pixels", "ImageSegData", ""},
        {"ignore_label", param.has_ignore_label(), "labels of pixels", "ImageSegData", "ImageLabelmapData"},
        {"labelmap", param.has_labelmap(), "targets of pixels", "ImageLabelmapData", ""},
        {"normalize", param.has_normalize(), "targets of pixels", "ImageLabelmapData", ""}}) {
    if (!of.set || type == of.type || type == of.other_type) continue;
    setup.Fail(Field(of.field), std::string(of.field) + " is for " + of.what + ", which layer \"" + of.type +
                                    "\" gives; take that type, or remove " + of.field);
  }
}

void ImageFileSource::FindImages(LayerSetup& setup) {
  try {
    DenseImageList list = ReadList(root_);
    if (root_.empty()) list.images.root = list.labels.root = RootOf(setup, list.images.entries[0].path);
    list_ = std::make_shared<const DenseImageList>(std::move(list));
  } catch (const UserError& error) {
    // Mistakes within the list have their places there.
    if (!error.diagnostics().front().where.file.empty()) throw;
    setup.Fail(Field("source"), error.diagnostics().front().message);
  }
}

// As the transform's fields do it.
void ImageFileSource::Resize(LayerSetup& setup) {
  constexpr uint32_t kMostPixels = 1 << 15;
  if (FixedResize(transform()).height > 0 || transform().resize_shorter_side() > 0 ||
      !RandomSizeField(transform()).empty()) {
    setup.Fail(Field("new_height"),
               "new_height, new_width and transform_param's resize fields are all set; keep one of them");
  }
  if (files_.new_height > kMostPixels || files_.new_width > kMostPixels) {
    setup.Fail(Field("new_height"), "new_height and new_width must be at most " + std::to_string(kMostPixels) +
                                        " pixels, got " + std::to_string(files_.new_height) + " and " +
                                        std::to_string(files_.new_width));
  }
  transform().set_resize_height(files_.new_height);
  transform().set_resize_width(files_.new_width);
}

void ImageFileSource::SetColors(LayerSetup& setup) {
  const bool contradicts =
      files_.is_color ? files_.says_is_color && transform().force_gray() : transform().force_color();
  if (contradicts) {
    setup.Fail(Field("is_color"), "is_color and transform_param's " +
                                      std::string(files_.is_color ? "force_gray" : "force_color") +
                                      " contradict each other; keep is_color");
  }
  const bool grey = !files_.is_color || transform().force_gray();
  transform().set_force_gray(grey);
  transform().set_force_color(!grey);
}

ImageSize ImageFileSource::ItemSizeOf(LayerSetup&, const Transform& transform) {
  return ImageListLoader(ImagesOf(list_), transform, {}).item_size();
}

std::shared_ptr<const ItemLoader> ImageFileSource::MakeImageLoader(Transform transform,
                                                                   const SampleOrder& order) const {
  const auto list = list_ ? list_ : std::make_shared<const DenseImageList>(ReadList(root_));
  return MakeFileLoader(list, std::move(transform), order);
}

}  // namespace crema
