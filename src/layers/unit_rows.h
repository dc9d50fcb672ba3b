// Rows of weights that count by their directions alone: each divided by its length, with gradients through that.
#ifndef CREMA_LAYERS_UNIT_ROWS_H_
#define CREMA_LAYERS_UNIT_ROWS_H_

#include <string>

#include "crema/layer.h"
#include "device/device.h"
#include "ops/normalization/normalization.h"

namespace crema {

class UnitRows {
 public:
  void Setup(int64_t rows, int64_t width) {
    problem_.images = rows;
    problem_.channels = width;
  }
  // Warns, at the filler, where a net that trains begins with rows of zeros.
  static void CheckFiller(LayerSetup& setup, const std::string& field, const FillerParameter& filler);
  void Plan(const LayerPlan& plan);

  // `weights` with each row divided by its length; a row of zeros stays so.
  const float* Forward(const LayerRun& run, const float* weights);
  // What Forward gave last.
  const float* unit() const { return reinterpret_cast<const float*>(unit_.data()); }
  // Turns the gradient of what Forward gave into that of `weights`, in its place.
  void Backward(const LayerRun& run, const float* weights, float* gradient) const;

 private:
  NormalizeProblem problem_;
  bool trains_ = false;
  uint64_t version_ = 0;  // of the parameters that the rows below come from
  Buffer unit_, inverse_;
  DeviceTable<float> one_;
};

}  // namespace crema

#endif  // CREMA_LAYERS_UNIT_ROWS_H_
