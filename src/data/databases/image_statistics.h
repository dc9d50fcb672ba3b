// Mean and standard deviation of a database's images, as Caffe's compute_image_mean.
#ifndef CREMA_DATA_DATABASES_IMAGE_STATISTICS_H_
#define CREMA_DATA_DATABASES_IMAGE_STATISTICS_H_

#include <cstdint>
#include <vector>

#include "base/progress_line.h"
#include "data/databases/image_size.h"
#include "data/databases/record_source.h"

namespace crema {

struct ImageStatistics {
  int64_t records = 0;
  ImageSize size;           // of the first image
  bool same_size = true;    // all images have it
  std::vector<float> mean;  // of each value, size.count() in the order of a Datum; empty unless same_size
  // Over all pixels of all images, one for each channel.
  std::vector<double> channel_means, channel_deviations;
};

// Reads all records, encoded ones too, on `threads` threads (0: one per core), which do not change the result. Of
// bytes, sums are exact. Throws UserError where a record is broken or images differ in their channels.
ImageStatistics ComputeImageStatistics(const RecordSource& source, int threads, ProgressLine* progress);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_IMAGE_STATISTICS_H_
