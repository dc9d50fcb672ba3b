#include "import/pooled_windows.h"

#include <algorithm>

#include "import/layers.h"
#include "schema/axis_values.h"

namespace crema {

namespace {

bool Holds(bool ceil, bool padded, PooledAxis* axis) {
  axis->made = PooledExtent(axis->input, axis->window(), ceil, padded);
  return axis->made - axis->first >= axis->results;
}

bool Fit(bool ceil, PooledAxis* axis) {
  for (axis->first = 0, axis->pad = axis->before; axis->pad < axis->kernel; ++axis->first, axis->pad += axis->stride) {
    if (Holds(ceil, axis->pad > 0, axis)) return true;
  }
  return false;
}

bool FitAll(PooledWindows* windows) {
  std::vector<PooledAxis>& axes = windows->axes;
  if (!std::all_of(axes.begin(), axes.end(), [&](PooledAxis& axis) { return Fit(windows->ceil, &axis); })) return false;
  const bool padded = std::any_of(axes.begin(), axes.end(), [](const PooledAxis& axis) { return axis.pad > 0; });
  return std::all_of(axes.begin(), axes.end(), [&](PooledAxis& axis) { return Holds(windows->ceil, padded, &axis); });
}

}  // namespace

bool PooledWindows::cuts_off() const {
  return std::any_of(axes.begin(), axes.end(), [](const PooledAxis& axis) { return axis.made != axis.results; });
}

std::optional<PooledWindows> FitPooling(bool ceil, const std::vector<PooledAxis>& axes) {
  PooledWindows wanted{ceil, axes}, other{!ceil, axes};
  const bool fits = FitAll(&wanted), other_fits = FitAll(&other);
  if (!fits && !other_fits) return std::nullopt;
  return !fits || (wanted.cuts_off() && other_fits && !other.cuts_off()) ? other : wanted;
}

LayerParameter PoolingLayerOf(PoolingParameter::PoolMethod method, const PooledWindows& windows) {
  LayerParameter layer = LayerOf("Pooling");
  PoolingParameter* param = layer.mutable_pooling_param();
  if (method != PoolingParameter::MAX) param->set_pool(method);
  using P = PoolingParameter;
  // Images get the form that every Caffe reads.
  const auto set = [&](int64_t PooledAxis::*member, int64_t fallback, auto* field, void (P::*height)(uint32_t),
                       void (P::*width)(uint32_t)) {
    std::vector<int64_t> values;
    for (const PooledAxis& axis : windows.axes) values.push_back(axis.*member);
    if (values.size() != 2 || values[0] == values[1]) return SetAxisValues(values, fallback, field);
    (param->*height)(static_cast<uint32_t>(values[0]));
    (param->*width)(static_cast<uint32_t>(values[1]));
  };
  set(&PooledAxis::kernel, -1, param->mutable_kernel_size(), &P::set_kernel_h, &P::set_kernel_w);
  set(&PooledAxis::stride, 1, param->mutable_stride(), &P::set_stride_h, &P::set_stride_w);
  set(&PooledAxis::pad, 0, param->mutable_pad(), &P::set_pad_h, &P::set_pad_w);
  if (!windows.ceil) param->set_round_mode(PoolingParameter::FLOOR);
  return layer;
}

}  // namespace crema
