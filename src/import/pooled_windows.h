// Poolings of other programs as Caffe's, which pads both sides alike, counts what is padded, and may round up.
#ifndef CREMA_IMPORT_POOLED_WINDOWS_H_
#define CREMA_IMPORT_POOLED_WINDOWS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "crema/net.pb.h"
#include "ops/pooling/pooling.h"

namespace crema {

// One axis of a pooling.
struct PooledAxis {
  int64_t input = 0;  // pixels that are there
  int64_t kernel = 0, stride = 0, before = 0, after = 0;
  int64_t counted_before = 0, counted_after = 0;  // of the padding, what a mean counts
  int64_t results = 0;

  // Caffe's: `pad` on both sides, and the first windows to cut off.
  int64_t pad = 0, first = 0, made = 0;
  PoolingWindow window() const { return {.kernel = kernel, .stride = stride, .pad = pad}; }
};

// Windows of Caffe's that hold those that are wanted.
struct PooledWindows {
  bool ceil = false;  // how Caffe rounds
  std::vector<PooledAxis> axes;

  // Whether there are others, so that `results` from `first` on must be cut out.
  bool cuts_off() const;
};

// `ceil`: how to round where both fit. Nothing where the padding behind reaches further than Caffe's windows.
std::optional<PooledWindows> FitPooling(bool ceil, const std::vector<PooledAxis>& axes);

LayerParameter PoolingLayerOf(PoolingParameter::PoolMethod method, const PooledWindows& windows);

}  // namespace crema

#endif  // CREMA_IMPORT_POOLED_WINDOWS_H_
