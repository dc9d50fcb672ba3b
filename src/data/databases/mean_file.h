// Caffe's mean images: a binary BlobProto, as compute_image_mean writes it.
#ifndef CREMA_DATA_DATABASES_MEAN_FILE_H_
#define CREMA_DATA_DATABASES_MEAN_FILE_H_

#include <string>
#include <vector>

#include "crema/tensor.h"

namespace crema {

struct MeanImage {
  Shape shape;  // channels x height x width; of ReadVolumeMean channels x length x height x width
  std::vector<float> values;
};

// Throws UserError where the file is absent, is no mean image or is damaged, EnvironmentError where it cannot be read.
MeanImage ReadMean(const std::string& path);
// The same of volumes, 1 x channels x length x height x width, as C3D-v1.1 reads them.
MeanImage ReadVolumeMean(const std::string& path);

// Writes it as Caffe's compute_image_mean does, whole or not at all. Throws EnvironmentError where that cannot be.
void WriteMean(const MeanImage& mean, const std::string& path);

}  // namespace crema

#endif  // CREMA_DATA_DATABASES_MEAN_FILE_H_
