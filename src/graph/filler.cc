#include "graph/filler.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "base/listed.h"
#include "base/number_text.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/suggest.h"
#include "graph/random_fill.h"

namespace crema {

namespace {

const std::vector<std::string>& Types() {
  static const std::vector<std::string> types = {"constant", "uniform", "gaussian", "positive_unitball",
                                                 "xavier",   "msra",    "bilinear", "values"};
  return types;
}

constexpr int64_t kGrain = 4096;  // values worth waking a thread for

void KeepSparse(const RandomStream& random, double probability, int64_t n, float* values) {
  constexpr uint64_t kFirstCounter = uint64_t{1} << 62;  // far from those of the values themselves
  ParallelFor(n, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (random.Bits(kFirstCounter + static_cast<uint64_t>(i))[0] * 0x1p-32 >= probability) values[i] = 0;
    }
  });
}

void NormalizeSlices(int64_t slices, int64_t n, float* values) {
  const int64_t width = n / slices;
  for (int64_t s = 0; s < slices; ++s) {
    double sum = 0;
    for (int64_t i = 0; i < width; ++i) sum += values[s * width + i];
    for (int64_t i = 0; i < width; ++i) {
      values[s * width + i] = static_cast<float>(sum > 0 ? values[s * width + i] / sum : 1.0 / width);
    }
  }
}

void FillBilinear(int64_t width, int64_t n, float* values) {
  const double factor = std::ceil(width / 2.0);
  const double center = (width - 1) / (2 * factor);
  for (int64_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(i % width), y = static_cast<double>(i / width % width);
    values[i] = static_cast<float>((1 - std::fabs(x / factor - center)) * (1 - std::fabs(y / factor - center)));
  }
}

double Fan(const FillerParameter& filler, const Shape& shape) {
  const double count = static_cast<double>(shape.count());
  const double fan_in = shape.axes() > 0 ? count / static_cast<double>(shape[0]) : count;
  const double fan_out = shape.axes() > 1 ? count / static_cast<double>(shape[1]) : count;
  switch (filler.variance_norm()) {
    case FillerParameter::FAN_IN:
      return fan_in;
    case FillerParameter::FAN_OUT:
      return fan_out;
    case FillerParameter::AVERAGE:
      return (fan_in + fan_out) / 2;
  }
  CREMA_CHECK(false) << "unknown variance_norm";
  return fan_in;
}

}  // namespace

std::string CheckFiller(const FillerParameter& filler, const Shape& shape) {
  const std::string& type = filler.type();
  if (std::find(Types().begin(), Types().end(), type) == Types().end()) {
    return "unknown filler type \"" + type + "\"" + DidYouMean(type, Types()) +
           " (known: " + Listed(Types(), {.most = kAllNames}) + ")";
  }
  if (type == "values") {
    if (filler.values_size() != shape.count()) {
      return "filler values: " + std::to_string(filler.values_size()) + " values are given, but the parameter (" +
             shape.ToString() + ") has " + std::to_string(shape.count()) + " elements; give one for each";
    }
    const bool finite =
        std::all_of(filler.values().begin(), filler.values().end(), [](float value) { return std::isfinite(value); });
    if (!finite) return "filler values: one of them is not finite; correct it";
  } else if (filler.values_size() > 0) {
    return "filler " + type + ": values are for type: \"values\" alone; set that, or leave them out";
  }
  for (const auto& [name, value] : {std::pair<const char*, float>{"value", filler.value()},
                                    {"min", filler.min()},
                                    {"max", filler.max()},
                                    {"mean", filler.mean()},
                                    {"std", filler.std()}}) {
    if (!std::isfinite(value))
      return "filler " + type + ": " + name + " is " + FormatNumber(value, "%.9g") + "; give a finite number";
  }
  if (type == "uniform" && filler.min() > filler.max()) {
    return "filler uniform: min " + FormatNumber(filler.min(), "%.9g") + " exceeds max " +
           FormatNumber(filler.max(), "%.9g") + "; swap them";
  }
  if (type == "gaussian" && filler.std() < 0) {
    return "filler gaussian: std is " + FormatNumber(filler.std(), "%.9g") + "; give a value of at least 0";
  }
  if (filler.sparse() < -1) {
    return "filler " + type + ": sparse is " + std::to_string(filler.sparse()) +
           "; give the mean number of non-zero inputs of an output, or -1 for all";
  }
  if (filler.sparse() != -1 && type != "gaussian") {
    return "filler " + type + ": only gaussian can be sparse; leave sparse out, or set type: \"gaussian\"";
  }
  if (filler.sparse() != -1 && shape.axes() == 0) {
    return "filler gaussian: a single number cannot be sparse; leave sparse out";
  }
  if (type == "bilinear" && (shape.axes() != 4 || shape[2] != shape[3])) {
    return "filler bilinear: is for square kernels of 4 axes, but the parameter is " + shape.ToString() +
           "; use it for weights of a Deconvolution with kernel_h = kernel_w";
  }
  return {};
}

void AddFilledParam(LayerSetup& setup, const std::string& field, const Shape& shape, const FillerParameter& filler,
                    bool learnable) {
  const std::string problem = CheckFiller(filler, shape);
  if (!problem.empty()) setup.Fail(field, problem);
  setup.AddParam({shape, filler, learnable});
}

void Fill(const FillerParameter& filler, uint64_t seed, uint64_t stream, const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const std::string problem = CheckFiller(filler, shape);
  CREMA_CHECK(problem.empty()) << problem;
  const RandomStream random(seed, stream);
  const std::string& type = filler.type();
  const int64_t n = tensor.count();
  float* values = tensor.f32();
  if (n == 0) return;
  if (type == "constant") {
    std::fill_n(values, n, filler.value());
  } else if (type == "uniform") {
    FillUniform(random, filler.min(), filler.max(), n, values);
  } else if (type == "gaussian") {
    FillGaussian(random, filler.mean(), filler.std(), n, values);
    if (filler.sparse() >= 0) KeepSparse(random, filler.sparse() / static_cast<double>(shape[0]), n, values);
  } else if (type == "positive_unitball") {
    FillUniform(random, 0, 1, n, values);
    NormalizeSlices(shape.axes() > 0 ? shape[0] : 1, n, values);
  } else if (type == "xavier") {
    const float bound = static_cast<float>(std::sqrt(3.0 / Fan(filler, shape)));
    FillUniform(random, -bound, bound, n, values);
  } else if (type == "msra") {
    FillGaussian(random, 0, static_cast<float>(std::sqrt(2.0 / Fan(filler, shape))), n, values);
  } else if (type == "values") {
    std::copy(filler.values().begin(), filler.values().end(), values);
  } else {
    FillBilinear(shape[3], n, values);
  }
}

}  // namespace crema
