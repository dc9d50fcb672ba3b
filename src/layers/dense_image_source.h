// What layers that say something of every pixel of image files share: DenseImageData, ImageSegData and
// ImageLabelmapData.
#ifndef CREMA_LAYERS_DENSE_IMAGE_SOURCE_H_
#define CREMA_LAYERS_DENSE_IMAGE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "data/loaders/dense_image_loader.h"
#include "layers/image_file_source.h"

namespace crema {

// Tops: images, and labels N x 1 x H x W, which are not read where they are no top.
class DenseImageSource : public ImageFileSource {
 protected:
  // As the file has it.
  virtual int64_t IgnoreLabelOf(const LayerParameter& layer) const = 0;

  // Of label images that hold amounts; none: they hold classes.
  virtual std::optional<PixelTargets> Targets() const { return std::nullopt; }

  void CheckImageFields(LayerSetup& setup) override;
  int ignore_label() const { return ignore_label_; }

 private:
  Shape LabelShape(LayerSetup& setup, int64_t items) override;
  std::string Remedy(int cores) const override;
  std::shared_ptr<const ItemLoader> MakeFileLoader(std::shared_ptr<const DenseImageList> list, Transform transform,
                                                   const SampleOrder& order) const override;

  int tops_ = 1;
  int ignore_label_ = 0;
};

}  // namespace crema

#endif  // CREMA_LAYERS_DENSE_IMAGE_SOURCE_H_
