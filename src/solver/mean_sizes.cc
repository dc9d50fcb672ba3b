#include "solver/mean_sizes.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace crema {

namespace {

float MeanSize(const Tensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.count(); ++i) sum += std::abs(tensor.value(i));
  return static_cast<float>(sum / static_cast<double>(std::max<int64_t>(1, tensor.count())));
}

}  // namespace

MeanSizes MeanSizesOf(const Net& net, int iteration, int passes) {
  MeanSizes sizes;
  sizes.iteration = iteration;
  net.VisitTops([&](const std::string& layer, const std::string& top, const Tensor& value, const Tensor& gradient) {
    MeanSizes::Row row{layer, top, MeanSize(value), {}};
    if (gradient.defined()) row.gradient = MeanSize(gradient);
    sizes.tops.push_back(std::move(row));
  });
  std::vector<float> plain;
  for (const Parameter& parameter : net.parameters()) {
    plain.resize(static_cast<size_t>(parameter.shape.count()));
    const Tensor values(plain.data(), {parameter.shape});
    parameter.CopyDataTo(plain.data());
    MeanSizes::Row row{parameter.layer, parameter.name(), MeanSize(values), {}};
    if (parameter.grad.defined()) {
      parameter.CopyGradTo(plain.data());
      row.gradient = MeanSize(values) / static_cast<float>(passes);
    }
    sizes.parameters.push_back(std::move(row));
  }
  return sizes;
}

}  // namespace crema
