// Means and variances of training data, for nets that normalised by those of each batch while they learnt.
#ifndef CREMA_INFERENCE_BATCH_STATISTICS_H_
#define CREMA_INFERENCE_BATCH_STATISTICS_H_

#include <cstdint>
#include <vector>

#include "crema/net.h"
#include "crema/net.pb.h"

namespace crema {

// Of BatchNorm and BN layers, by channel: the mean of the batches' means, and of their variances, times m / (m - 1)
// with m numbers of a channel in a batch (Ioffe and Szegedy, "Batch normalization", 2015, algorithm 2).
class BatchStatistics {
 public:
  // `net` has NetOptions::keep_all, and must outlive this. Throws UserError where no layer normalises by the batch, or
  // where one that does shares its parameters with another.
  explicit BatchStatistics(const Net& net);

  // Counts the last pass. Throws UserError where a number is not finite.
  void Add();
  // Of the layers, and of those among them that are SegNet's BN.
  int layers() const { return static_cast<int>(layers_.size()); }
  int layers_of_segnet() const;
  // The net's weights, with the statistics in place of what such layers gathered while they learnt. A BN of SegNet,
  // which has no place for them, has them in its slope and bias, for nets with bn_mode: INFERENCE, as this one then
  // says. After at least one pass.
  NetParameter Weights() const;

 private:
  struct Layer {
    int node, value;                       // what it normalises
    std::vector<double> means, variances;  // sums over the passes
  };

  const Net& net_;
  std::vector<Layer> layers_;
  uint64_t passes_ = 0;
};

}  // namespace crema

#endif  // CREMA_INFERENCE_BATCH_STATISTICS_H_
