// First values of parameters, as a FillerParameter describes them: Caffe's types and formulas.
#ifndef CREMA_GRAPH_FILLER_H_
#define CREMA_GRAPH_FILLER_H_

#include <cstdint>
#include <string>

#include "crema/blob.pb.h"
#include "crema/layer.h"
#include "crema/tensor.h"

namespace crema {

// What is wrong with a filler for a tensor of this shape, in one sentence with the remedy; empty when nothing is.
std::string CheckFiller(const FillerParameter& filler, const Shape& shape);
// Asks for a parameter that is filled so; fails at `field`, "prelu_param.filler", where CheckFiller finds a mistake.
void AddFilledParam(LayerSetup& setup, const std::string& field, const Shape& shape, const FillerParameter& filler,
                    bool learnable = true);

// Overwrites an f32 tensor in CPU memory. Random values are a pure function of (seed, stream, element), whatever the
// number of threads. The filler must pass CheckFiller.
//   constant            value
//   uniform             in [min, max)
//   gaussian            mean, std; with sparse >= 0 each element is kept with probability sparse / shape[0], else zero
//   positive_unitball   uniform in [0, 1), then each slice along axis 0 divided by its sum
//   xavier              uniform in +-sqrt(3 / n) (Glorot and Bengio, AISTATS 2010)
//   msra                normal with std sqrt(2 / n) (He et al., ICCV 2015)
//   bilinear            the kernel that upsamples by linear interpolation, for 4-axis shapes of square kernels
//   values              values, one for each element
// n is fan_in = count / shape[0], fan_out = count / shape[1] or their average, by variance_norm.
void Fill(const FillerParameter& filler, uint64_t seed, uint64_t stream, const Tensor& tensor);

}  // namespace crema

#endif  // CREMA_GRAPH_FILLER_H_
