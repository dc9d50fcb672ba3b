// The nets of model_zoo, and sequence nets of configs, on made-up data: what their passes cost without a database.
#ifndef CREMA_BENCH_ZOO_NETS_H_
#define CREMA_BENCH_ZOO_NETS_H_

#include <cstdint>
#include <span>
#include <string>

#include "crema/files.h"
#include "crema/net.h"

namespace crema::bench {

// A folder of model_zoo, or of configs, and how it is measured.
struct ZooNet {
  const char* name;
  int batch;           // first extent of "data" and "label"; 0: as the files have it (sequences)
  int classes;         // labels are below this
  bool words = false;  // inputs hold whole numbers below `classes`
  // Of configs, by what it reads: "text", 64 characters of 32 texts, as configs/char_lstm describes it; or strips of
  // five images each, `batch` of them.
  enum class Reads { kItems, kText, kStrips } reads = Reads::kItems;
};

std::span<const ZooNet> ZooNets();

// train_val.prototxt with Input layers in place of its data layers; the images are as large as deploy.prototxt says.
NetFile TrainingNet(const ZooNet& zoo);
// deploy.prototxt with the same batch; of text train_val.prototxt, with a Softmax in place of the loss.
NetFile InferenceNet(const ZooNet& zoo);

// Writes the inputs of such a net: labels and words spread evenly over the classes, "cont" 1 as within a sequence,
// standard normal noise elsewhere. The same numbers every time.
void FillInputs(const ZooNet& zoo, const Net& net);

// Operations of one pass, forward and backward, in 1e9 (see report/step_info.h).
double Gigaflops(const Net& net);

// Of the parameters that a solver changes, each counted once.
int64_t LearnableCount(const Net& net);

}  // namespace crema::bench

#endif  // CREMA_BENCH_ZOO_NETS_H_
