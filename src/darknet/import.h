// Nets of Darknet (Redmon, "Darknet: Open Source Neural Networks in C", 2013-2016, and its continuations): a .cfg file
// and the .weights that belong to it, to be run and trained on here.
#ifndef CREMA_DARKNET_IMPORT_H_
#define CREMA_DARKNET_IMPORT_H_

#include <cstdint>
#include <string>

#include "crema/solver.pb.h"
#include "import/imported_net.h"

namespace crema {

struct DarknetImportOptions {
  // Images that go through the net at once.
  int64_t batch = 1;
  // What names of databases begin with, "raccoon" of raccoon_train_lmdb and raccoon_val_lmdb: the net is to be trained
  // on them. Empty: it is not.
  std::string data = {};
};

// What trains a net as its .cfg says: the solver lacks the names of files.
struct DarknetTraining {
  NetParameter net;
  SolverParameter solver;
};

// The net of the file `cfg`, with the numbers of the file `weights`. In TEST it computes what Darknet does. Its images
// are those of crema, blue first and from 0 to 255: its first weights are turned round, and its Input layer's
// transform_param says the scale. Layers are named after sections, "conv_12", by the numbers that Darknet prints. Where
// `weights` ends with a section before the last, the other layers have no weights, and a note says so; where it is
// empty, no file is read, and the net has such weights alone as are not learnt. Throws UserError
// that names the file and each section or key that has no form here, EnvironmentError where a file cannot be read.
// training: with data in the options, how the net is trained, which must be one with [yolo] or [region].
ImportedNet ImportDarknetNet(const std::string& cfg, const std::string& weights,
                             const DarknetImportOptions& options = {}, DarknetTraining* training = nullptr);

}  // namespace crema

#endif  // CREMA_DARKNET_IMPORT_H_
