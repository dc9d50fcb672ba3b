// MNIST's files to a database, as Caffe's convert_mnist_data and convert_mnist_siamese_data do.
#ifndef CREMA_DATA_CONVERT_CONVERT_MNIST_H_
#define CREMA_DATA_CONVERT_CONVERT_MNIST_H_

#include <cstdint>
#include <string>

#include "base/progress_line.h"

namespace crema {

struct MnistConversion {
  int64_t records = 0, height = 0, width = 0;
  int min_label = 0, max_label = 0;
};

// Writes one Datum (1 x height x width, label) for every image under the keys 00000000, 00000001, ... Throws UserError
// where a file is no IDX file, they differ in length or `database` exists (unless `replace`); then nothing is written.
MnistConversion ConvertMnist(const std::string& images, const std::string& labels, const std::string& database,
                             bool replace, ProgressLine* progress = nullptr);

// The same for as many pairs of images drawn at random: a Datum of 2 x height x width, label 1 where both are of one
// class, else 0. Keeps all images in memory.
MnistConversion ConvertMnistPairs(const std::string& images, const std::string& labels, const std::string& database,
                                  bool replace, uint64_t seed, ProgressLine* progress = nullptr);

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_CONVERT_MNIST_H_
