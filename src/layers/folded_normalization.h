// A BatchNorm, and a Scale behind it, or a BN, folded into the weights and bias of the convolution before them: in nets
// that are not trained all three are one linear map.
#ifndef CREMA_LAYERS_FOLDED_NORMALIZATION_H_
#define CREMA_LAYERS_FOLDED_NORMALIZATION_H_

#include "crema/layer.h"
#include "device/device.h"
#include "ops/normalization/batch_norm.h"

namespace crema {

class FoldedNormalization {
 public:
  // Reads what the members behind the convolution say; `first_param` is the number of the convolution's own blobs. Asks
  // for the members' blobs.
  void Setup(LayerSetup& setup, int64_t outputs, int first_param);
  bool present() const { return present_; }

  // `weights` has the outputs outermost; bias may be null.
  void Fold(const LayerRun& run, const float* weights, int64_t weights_count, const float* bias);
  // In the memory of the device.
  const float* weights() const { return reinterpret_cast<const float*>(weights_.data()); }
  const float* bias() const { return reinterpret_cast<const float*>(bias_.data()); }

 private:
  bool present_ = false, is_bn_ = false;
  BatchNormScalars norm_;
  int gain_ = -1, shift_ = -1;  // which of the members' blobs; -1: there is none
  int first_param_ = 0;
  Buffer weights_, bias_, zeros_, ones_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_FOLDED_NORMALIZATION_H_
