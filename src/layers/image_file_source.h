// What layers that read image files which a list names share: ImageData, DenseImageData, ImageSegData,
// ImageLabelmapData and VideoData.
#ifndef CREMA_LAYERS_IMAGE_FILE_SOURCE_H_
#define CREMA_LAYERS_IMAGE_FILE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "data/files/image_list.h"
#include "layers/image_source.h"

namespace crema {

class ImageFileSource : public ImageSource {
 protected:
  // The fields that the blocks of both types have.
  struct FileFields {
    Fields common;
    std::string root_folder;
    uint32_t new_height = 0, new_width = 0;
    bool is_color = true, says_is_color = false;
  };
  template <typename Parameter>
  static FileFields FileFieldsOf(const std::string& block, const Parameter& param) {
    return {{block, param.source(), param.batch_size(), param.prefetch(), param.threads(), param.rand_skip(),
             param.shuffle()},
            param.root_folder(),
            param.new_height(),
            param.new_width(),
            param.is_color(),
            param.has_is_color()};
  }
  virtual FileFields ReadFileFields(const LayerParameter& layer) = 0;
  // Of the file source(); the labels of a type that has none are empty. Throws as lists do.
  virtual DenseImageList ReadList(const std::string& root) const = 0;
  virtual std::shared_ptr<const ItemLoader> MakeFileLoader(std::shared_ptr<const DenseImageList> list,
                                                           Transform transform, const SampleOrder& order) const = 0;

  static std::shared_ptr<const ImageList> ImagesOf(const std::shared_ptr<const DenseImageList>& list) {
    return {list, &list->images};
  }

  void CheckImageFields(LayerSetup& setup) override;
  // Fields of image_data_param that a layer of another type reads.
  void RefuseFieldsOfOthers(const LayerSetup& setup) const;
  ImageSize ItemSizeOf(LayerSetup& setup, const Transform& transform) override;
  // Null where the source did not exist.
  const std::shared_ptr<const DenseImageList>& list() const { return list_; }

 private:
  Fields ReadFields(const LayerParameter& layer) override;
  const char* what_source_is() const override { return "list"; }
  std::shared_ptr<const ItemLoader> MakeImageLoader(Transform transform, const SampleOrder& order) const override;

  void FindImages(LayerSetup& setup);
  void Resize(LayerSetup& setup);
  void SetColors(LayerSetup& setup);

  FileFields files_;
  std::string root_;
  std::shared_ptr<const DenseImageList> list_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_IMAGE_FILE_SOURCE_H_
