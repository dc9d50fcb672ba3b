// Items from frames of videos.
#ifndef CREMA_DATA_LOADERS_VIDEO_LOADER_H_
#define CREMA_DATA_LOADERS_VIDEO_LOADER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crema/data.pb.h"
#include "data/databases/mean_file.h"
#include "data/files/image_list.h"
#include "data/files/video_clip.h"
#include "data/loaders/item_loader.h"
#include "data/loaders/sample_order.h"
#include "data/transforms/transform.h"

namespace crema {

// A mean of all images of an item, and where it was read.
struct ClipMean {
  MeanImage image;  // of the shape of items before they are cropped
  std::string path;
};

// Throws as ReadMean does, and UserError where it is of other items.
ClipMean ReadClipMean(const std::string& path, const VideoClip& clip);

// What is done to each image of an item. All read the same numbers of the item's stream, so that images of one size are
// cut, mirrored and changed alike.
class ClipTransforms {
 public:
  // What is wrong with the number of mean_value or std_value fields of `param`, with the remedy; empty where nothing
  // is.
  static std::optional<VideoMistake> FindMistake(const TransformationParameter& param, const VideoClip& clip);

  // `param` forces the colours of images and has no mean_file, in the place of which `mean` is subtracted where it is
  // not null; its mean_value and std_value are those of the first channels of an item, and repeated for the others.
  // With is_flow a mirrored image of what moves to the right is 255 minus itself.
  ClipTransforms(const TransformationParameter& param, Phase phase, const VideoClip& clip, const ClipMean* mean);

  // Of every image alike but for the values that are subtracted.
  const Transform& first() const { return plain_[0]; }
  const Transform& Of(int image, const RandomStream& random) const;

 private:
  std::vector<Transform> plain_, inverted_;  // of images i, i + plain_.size(), ...; inverted_: only with is_flow
};

// Line i of the list is record i of the order; the label is the class of the video, or the labels are its numbers.
class VideoLoader : public ItemLoader {
 public:
  // Sets order.records itself. Opens the first frame where the transform alone does not fix the items' shape. Throws
  // UserError where it does not fit the transform.
  VideoLoader(std::shared_ptr<const ImageList> list, VideoClip clip, ClipTransforms transforms, SampleOrder order);

  const Shape& item_shape() const override { return item_shape_; }
  int64_t label_count() const override;
  void Load(uint64_t position, float* data, float* label, ItemScratch& scratch) const override;
  // `video "jump/v_001" (train.txt:12)`.
  std::string Describe(uint64_t position) const override;
  uint64_t records() const override { return order_.records; }
  bool decodes() const override { return true; }

  // Of one image.
  const ImageSize& image_size() const { return image_size_; }

 private:
  size_t EntryAt(uint64_t position) const { return static_cast<size_t>(order_.RecordAt(position)); }
  // Into scratch.bytes and scratch.path.
  std::span<const uint8_t> ReadFrame(size_t entry, int frame, int component, ItemScratch& scratch) const;
  ImageSize FirstImageSize() const;
  // `image`: of the item; `values`: its planes.
  void Place(int image, const float* values, float* data) const;

  std::shared_ptr<const ImageList> list_;
  VideoClip clip_;
  ClipTransforms transforms_;
  SampleOrder order_;
  ImageSize image_size_;
  Shape item_shape_;
};

}  // namespace crema

#endif  // CREMA_DATA_LOADERS_VIDEO_LOADER_H_
