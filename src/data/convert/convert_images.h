// Images to databases, as Caffe's convert_imageset does.
#ifndef CREMA_DATA_CONVERT_CONVERT_IMAGES_H_
#define CREMA_DATA_CONVERT_CONVERT_IMAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/progress_line.h"
#include "crema/data.pb.h"
#include "data/databases/dataset_writer.h"
#include "data/databases/image_size.h"
#include "data/files/image_list.h"
#include "image/codec.h"
#include "image/resize.h"

namespace crema {

struct ImageConversion {
  enum class Broken { kSkip, kFail };

  bool gray = false;
  bool shuffle = false;
  bool check_size = false;  // all records have the extents of the first
  // What the message of check_size ends with.
  std::string size_remedy = " (--check_size); resize them with --resize_height and --resize_width";
  bool encoded = false;  // store image files
  // Of encoded records; kUnknown: that of each file.
  ImageFormat format = ImageFormat::kUnknown;
  int quality = 95;  // of JPEG
  // Black below and at the right up to this size, before images are resized; both or none, 0: none. Larger images end
  // the conversion.
  int pad_height = 0, pad_width = 0;
  int resize_height = 0, resize_width = 0;  // both or none; 0: as they are
  int shorter_side = 0;                     // resizes, keeping the proportions; not together with the former
  // Enlarges images whose shorter side has fewer pixels than min_dim, then makes them smaller whose longer side has
  // more than max_dim, keeping the proportions; 0: no bound. Not together with the others.
  int min_dim = 0, max_dim = 0;
  Broken broken = Broken::kSkip;
  int threads = 0;  // that decode; 0: one per core
};

struct ImagesConverted {
  int64_t records = 0, broken = 0;
};

// What becomes of an image's Datum where that is not the whole record.
class RecordForm {
 public:
  virtual ~RecordForm() = default;
  // Writes the record of entry `i` of the list to `value`: the image of its file is as large as `file`, that of `datum`
  // as `stored`. What people should know of is added to `notes`. Called by several threads at once. Throws UserError,
  // which ends the conversion.
  virtual void Write(size_t i, const ImageExtent& file, const ImageSize& stored, Datum* datum, std::string* value,
                     std::vector<std::string>* notes) const = 0;

  // Called once all images are written, before they get their name: brings what else belongs to them to the disk. What
  // it returns, where it is not empty, gives that its name at the moment when the images get theirs.
  virtual std::function<void()> Finish() { return {}; }
};

// The key of an image at this place, "00000042_cat/1.jpg", cut off where LMDB's keys end.
std::string ImageKey(int64_t place, size_t images, const std::string& path);

// Writes one Datum for each image under Caffe's keys, "00000042_cat/1.jpg": the number is the place in the list, after
// shuffling, and in a split within the part. Encoded images that need no resizing are stored as the file has them, with
// no extents, after they were decoded to see whether they are whole; with `gray` those in colour are encoded anew.
// Images that cannot be read or decoded are reported by path on `progress` and left out, or throw UserError. What is
// written does not depend on the threads. Where entries have numbers these are the Datum's labels, and it has no
// `label`, which Caffe, that does not see the others, then takes for 0; a split is at random. `form`: null for Datums
// alone; of its notes the first 20 are said.
ImagesConverted ConvertImages(const ImageList& list, const ImageConversion& how, const DatasetTarget& target,
                              ProgressLine* progress, RecordForm* form = nullptr);

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_CONVERT_IMAGES_H_
