// Images with the objects that they show to databases of AnnotatedDatum, as SSD's convert_annoset does.
#ifndef CREMA_DATA_CONVERT_CONVERT_ANNOTATED_H_
#define CREMA_DATA_CONVERT_CONVERT_ANNOTATED_H_

#include <cstdint>
#include <optional>

#include "data/convert/convert_images.h"
#include "data/files/image_list.h"
#include "data/files/label_map.h"

namespace crema {

struct AnnotatedConversion {
  // kVoc: PASCAL VOC's XML, which needs `labels`. kText: SSD's "label xmin ymin xmax ymax"; kYolo: Darknet's "class x y
  // width height". Labels must then be among those of `labels`, where it is given.
  enum class Format { kVoc, kText, kYolo };

  ImageConversion images;
  Format format = Format::kVoc;
  std::optional<LabelMapFile> labels;
};

struct AnnotationsConverted {
  ImagesConverted images;
  int64_t objects = 0;      // written
  int64_t clipped = 0;      // of these: boxes that reached over the border and were cut off there
  int64_t empty = 0;        // objects left out: nothing of their box lies within the image
  int64_t other_sizes = 0;  // files that say another size than the image has
  int64_t turned = 0;       // files of an image as it is stored, whose boxes were turned upright with it
  int64_t missing = 0;      // images without a file of annotations, written without objects
  int64_t bare = 0;         // files of annotations without objects
  int64_t tiny = 0;         // boxes within the first pixel, as shares of the image instead of pixels would be
};

// As ConvertImages. Corners become shares of the size that the file of annotations says, or else of the image's; where
// that says the extents of an image before Exif's orientation exchanges them, boxes are turned as the image is.
// Objects are grouped by class in the order of the first of each, and counted within their class. Mistakes that leave
// the object's meaning open (ReadVocAnnotation) end the conversion; the others are counted, and the first said. Throws
// UserError where no image has a file of annotations.
AnnotationsConverted ConvertAnnotated(const AnnotatedImageList& list, const AnnotatedConversion& how,
                                      const DatasetTarget& target, ProgressLine* progress);

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_CONVERT_ANNOTATED_H_
