#ifndef CREMA_TESTS_LAYER_WEIGHTS_H_
#define CREMA_TESTS_LAYER_WEIGHTS_H_

#include <vector>

#include "crema/files.h"
#include "crema/net.pb.h"

namespace crema {

// What reading the .caffemodel would give.
inline std::vector<LayerWeights> LayerWeightsOf(const NetParameter& caffemodel) {
  std::vector<LayerWeights> weights;
  for (const LayerParameter& layer : caffemodel.layer()) {
    LayerWeights& read = weights.emplace_back();
    read.name = layer.name();
    for (const BlobProto& blob : layer.blobs()) {
      const auto& dims = blob.shape().dim();
      read.blobs.push_back(
          {Shape(std::vector<int64_t>(dims.begin(), dims.end())), {blob.data().begin(), blob.data().end()}});
    }
  }
  return weights;
}

}  // namespace crema

#endif  // CREMA_TESTS_LAYER_WEIGHTS_H_
