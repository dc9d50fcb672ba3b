// What layers that read images with labels share: Data, AnnotatedData, ImageData, DenseImageData, ImageSegData,
// ImageLabelmapData, VideoData and WindowData.
#ifndef CREMA_LAYERS_IMAGE_SOURCE_H_
#define CREMA_LAYERS_IMAGE_SOURCE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/transforms/transform.h"
#include "layers/item_source.h"

namespace crema {

// Tops: items, N x C x H x W where they are images, and labels (N, or N x LabelCount, where the type says nothing
// else).
class ImageSource : public ItemSource {
 protected:
  // Checks the fields that the other type does not have; may move some of them to transform().
  virtual void CheckImageFields(LayerSetup& setup) = 0;
  // For messages: "database".
  virtual const char* what_source_is() const = 0;
  // Size of the images of a source that exists. Throws UserError.
  virtual ImageSize ItemSizeOf(LayerSetup& setup, const Transform& transform) = 0;
  // Throws as loaders do.
  virtual std::shared_ptr<const ItemLoader> MakeImageLoader(Transform transform, const SampleOrder& order) const = 0;

  // Tops of the type; the images and their labels are the first.
  virtual int most_tops() const { return 2; }
  virtual Transform::SmallImages small_images() const { return Transform::SmallImages::kRefused; }
  // Of images and labels.
  std::vector<Shape> TopShapes(LayerSetup& setup) override;
  // Whether the type does what SSD's fields of transform_param say, beside resize_param.
  virtual bool does_as_ssd() const { return false; }
  // Whether images may be optical flow, which is_flow is for.
  virtual bool reads_flow() const { return false; }
  // Of an item that is made of images of that size, and what its axes are, for messages.
  virtual Shape ShapeOfItem(const ImageSize& image) const { return image.shape(); }
  virtual const char* axes_of_items() const { return "channels x height x width"; }
  virtual const char* letters_of_items() const { return "C,H,W"; }
  // Labels of each of `items` items; 0: one, the class.
  virtual int64_t LabelCount(LayerSetup&, int64_t) { return 0; }
  // Of the labels of `items` items.
  virtual Shape LabelShape(LayerSetup& setup, int64_t items);
  void Deliver(const Batch& batch, std::span<const Tensor> tops) const override;

  // What to put before a path that is relative to a search folder, as those of sources may be.
  static std::string RootOf(const LayerSetup& setup, const std::string& path) {
    const std::string found = setup.ResolvePath(path);
    return found.substr(0, found.size() - path.size());
  }

  // Of one item, when TopShapes knows it.
  const Shape& item_shape() const { return item_shape_; }

  TransformationParameter& transform() { return transform_; }
  const TransformationParameter& transform() const { return transform_; }

 private:
  void CheckFields(LayerSetup& setup) override;
  std::shared_ptr<const ItemLoader> MakeLoader(const SampleOrder& order) const override;
  std::string Remedy(int cores) const override;

  Transform MakeTransform() const { return Transform(transform_, phase(), mean_file_, small_images()); }
  void CheckFieldsOfSsd(LayerSetup& setup) const;
  Shape DataShape(LayerSetup& setup);
  Shape ShapeOfSource(LayerSetup& setup);
  // Of a batch.
  Shape ShapeOfItems(const ImageSize& image) const;
  Shape ShapeWithoutSource(LayerSetup& setup, const ImageExtent& extent) const;

  std::string mean_file_;
  TransformationParameter transform_;
  // What the net was compiled for.
  Shape item_shape_;
  int64_t item_labels_ = 0;  // 0: they are no top
};

}  // namespace crema

#endif  // CREMA_LAYERS_IMAGE_SOURCE_H_
