// Images with KITTI's text files of objects to the two databases that DIGITS makes for DetectNet.
#ifndef CREMA_DATA_CONVERT_CONVERT_KITTI_H_
#define CREMA_DATA_CONVERT_CONVERT_KITTI_H_

#include <cstdint>
#include <string>

#include "data/convert/convert_images.h"
#include "data/files/kitti_labels.h"

namespace crema {

struct KittiConversion {
  std::string images, labels;  // folders: of LABELS/000001.txt is the image 000001.png anywhere below IMAGES
  ImageConversion how;         // its pad_*, resize_*, encoded, format, quality, shuffle, broken and threads
  KittiClasses classes = DigitsClasses();
  float min_side = 0;  // pixels, of boxes that count
};

struct KittiConverted {
  ImagesConverted images;
  int64_t objects = 0;    // of a class but 0
  int64_t ignored = 0;    // of class 0
  int64_t most_rows = 0;  // of an image
};

// Writes DATABASE/features, the images, and DATABASE/labels, with a Datum of 1 x (1 + most objects of an image) x 16
// floats for each: the first row has how many objects follow and 16. Both have the same keys. All images must come to
// one size. Throws UserError where an image has no file of labels, or as ReadKittiLabels and ConvertImages do.
KittiConverted ConvertKitti(const KittiConversion& conversion, const DatasetTarget& target, ProgressLine* progress);

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_CONVERT_KITTI_H_
