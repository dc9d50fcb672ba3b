// What a net tells of each pixel, as PNG files: label images, or for nets that find edges grey ones.
#ifndef CREMA_INFERENCE_LABEL_IMAGE_WRITER_H_
#define CREMA_INFERENCE_LABEL_IMAGE_WRITER_H_

#include <memory>

#include "inference/feature_writer.h"

namespace crema {

// A folder with a PNG for each record, named after the record's file: of scores, C x H x W with C from 2 to 256, the
// number of the channel with the highest score, of equal ones the first; of 1 x H x W the numbers themselves, whole
// ones from 0 to 255; with FeatureBlob::probabilities 255 times these, as grey. Put throws UserError where a number is
// none of these, or where two records would have one file. Throws UserError where the blob is no such one.
std::unique_ptr<FeatureWriter> MakeLabelImageWriter(const FeatureTarget& target, const FeatureBlob& blob);

}  // namespace crema

#endif  // CREMA_INFERENCE_LABEL_IMAGE_WRITER_H_
