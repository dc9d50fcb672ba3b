// CIFAR-10 and CIFAR-100 to databases, as Caffe's convert_cifar_data does.
#ifndef CREMA_DATA_CONVERT_CONVERT_CIFAR_H_
#define CREMA_DATA_CONVERT_CONVERT_CIFAR_H_

#include <string>

#include "base/progress_line.h"

namespace crema {

struct CifarConversion {
  std::string input;    // folder with the binary version (https://www.cs.toronto.edu/~kriz/cifar.html)
  std::string output;   // folder to write to, which exists
  bool coarse = false;  // of CIFAR-100: the 20 superclasses instead of the 100 classes
  bool bgr = false;     // blue, green, red as in databases of images, instead of red, green, blue as in the files
  bool replace = false;
};

// Writes OUTPUT/cifar10_train_lmdb and cifar10_test_lmdb of data_batch_1.bin to data_batch_5.bin and test_batch.bin, or
// cifar100_... of train.bin and test.bin: one Datum of 3 x 32 x 32 for each image under the keys 00000, 00001, ..., and
// where the input names the classes (batches.meta.txt) cifar10_labels.txt. Returns what was written, one line each.
// Throws UserError where files are absent, cut short or hold labels that are none; then nothing is written.
std::string ConvertCifar(const CifarConversion& how, ProgressLine* progress);

}  // namespace crema

#endif  // CREMA_DATA_CONVERT_CONVERT_CIFAR_H_
