// What layers that give the classes of pixels of image files share: DenseImageData and ImageSegData.
#ifndef CREMA_LAYERS_DENSE_IMAGE_SOURCE_H_
#define CREMA_LAYERS_DENSE_IMAGE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "data/dense_image_loader.h"
#include "layers/image_file_source.h"

namespace crema {

// Tops: images, and labels N x 1 x H x W, which are not read where they are no top.
class DenseImageSource : public ImageFileSource {
 protected:
  // As the file has it.
  virtual int64_t IgnoreLabelOf(const LayerParameter& layer) const = 0;

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
