// Constants that depend on more than one element each: sums along axes, normalised weights, masks that are written
// piece by piece.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/folding.h"

namespace crema::onnx {

namespace {

// --- Along axes ---

struct Total {
  double sum = 0, squares = 0, magnitude = 0, product = 1;
  double least = std::numeric_limits<double>::infinity(), most = -std::numeric_limits<double>::infinity();
  int64_t count = 0;
};

double MeanOf(const Total& total) { return total.sum / static_cast<double>(std::max<int64_t>(1, total.count)); }
double SumOf(const Total& total) { return total.sum; }
double ProductOf(const Total& total) { return total.product; }
double LeastOf(const Total& total) { return total.least; }
double MostOf(const Total& total) { return total.most; }
double SquaresOf(const Total& total) { return total.squares; }
double LengthOf(const Total& total) { return std::sqrt(total.squares); }
double MagnitudeOf(const Total& total) { return total.magnitude; }

template <double (*result_of)(const Total&)>
Constant Reduce(const NodeReader& node) {
  const Constant& from = node.constant(0, "its input");
  const int axes = from.shape.axes();
  const std::vector<int64_t> named = node.List("axes", 1).value_or(std::vector<int64_t>());
  if (named.empty() && node.Int("noop_with_empty_axes", 0) != 0) return from;
  const std::vector<int> reduced = node.Axes(named, axes);
  std::vector<int64_t> kept, dims;
  for (int axis = 0; axis < axes; ++axis) {
    const bool goes = named.empty() || std::find(reduced.begin(), reduced.end(), axis) != reduced.end();
    kept.push_back(goes ? 1 : from.shape[axis]);
    if (!goes || node.Int("keepdims", 1) != 0) dims.push_back(kept.back());
  }
  const Shape small(kept);
  const std::vector<int64_t> strides = StridesOf(from.shape), to = StridesOf(small);
  std::vector<Total> totals(small.count());
  for (int64_t i = 0; i < from.count(); ++i) {
    int64_t at = 0;
    for (int axis = 0; axis < axes; ++axis) at += kept[axis] == 1 ? 0 : i / strides[axis] % from.shape[axis] * to[axis];
    Total& total = totals[at];
    const double value = from.value(i);
    total.sum += value;
    total.squares += value * value;
    total.magnitude += std::abs(value);
    total.product *= value;
    total.least = std::min(total.least, value);
    total.most = std::max(total.most, value);
    ++total.count;
  }
  Constant result{.shape = Shape(dims), .whole = from.whole};
  for (const Total& total : totals) Append(result_of(total), &result);
  return result;
}

Constant CumSum(const NodeReader& node) {
  Constant result = node.constant(0, "its input");
  result.name.clear();
  if (node.Int("exclusive", 0) != 0 || node.Int("reverse", 0) != 0)
    node.Refuse("exclusive and reverse are not possible");
  const int axis = node.Axis(static_cast<int64_t>(node.number(1, "the axis")), result.shape.axes());
  const int64_t width = result.shape.count(axis + 1), extent = result.shape[axis];
  for (int64_t i = 0; i < result.count(); ++i) {
    if (i / width % extent == 0) continue;
    if (result.whole) {
      result.integers[i] += result.integers[i - width];
    } else {
      result.floats[i] += result.floats[i - width];
    }
  }
  return result;
}

Constant Tile(const NodeReader& node) {
  const Constant& from = node.constant(0, "its input");
  const std::vector<int64_t>& repeats = node.integers(1, "the repeats");
  const int axes = from.shape.axes();
  if (static_cast<int>(repeats.size()) != axes) node.Refuse("its repeats do not fit " + from.shape.ToString());
  Shape shape = from.shape;
  for (int axis = 0; axis < axes; ++axis) {
    if (repeats[axis] < 0 || CheckedCount({shape[axis], repeats[axis]}) < 0)
      node.Refuse("repeats axis " + std::to_string(axis) + " " + std::to_string(repeats[axis]) + " times");
    shape.set(axis, shape[axis] * repeats[axis]);
  }
  Constant result{.shape = shape, .whole = from.whole};
  const int64_t count = CountOf(node, shape);
  const std::vector<int64_t> strides = StridesOf(shape), own = StridesOf(from.shape);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    for (int axis = 0; axis < axes; ++axis) at += i / strides[axis] % shape[axis] % from.shape[axis] * own[axis];
    if (from.whole) {
      result.integers.push_back(from.integers[at]);
    } else {
      result.floats.push_back(from.floats[at]);
    }
  }
  return result;
}

// --- Weights that a model normalises in every pass ---

Constant BatchNormalization(const NodeReader& node) {
  for (int i = 1; i < node.outputs(); ++i) {
    if (node.wanted(i)) node.Refuse("its statistics are read, which crema keeps to itself");
  }
  const Constant& from = node.constant(0, "its input");
  const std::vector<float>* floats[5];
  const int64_t channels = from.shape.axes() > 1 ? from.shape[1] : 1;
  for (int i = 0; i < 5; ++i) {
    floats[i] = &node.floats(i, "input, scale, bias and statistics");
    if (i > 0 && static_cast<int64_t>(floats[i]->size()) != channels) {
      node.Refuse("its scale, bias and statistics do not fit " + from.shape.ToString());
    }
  }
  const int64_t width = from.shape.axes() > 1 ? from.shape.count(2) : 1;
  std::vector<double> mean(floats[3]->begin(), floats[3]->end()), variance(floats[4]->begin(), floats[4]->end());
  if (node.Int("training_mode", 0) != 0) {
    const double share = static_cast<double>(channels) / static_cast<double>(std::max<int64_t>(1, from.count()));
    std::fill(mean.begin(), mean.end(), 0);
    std::fill(variance.begin(), variance.end(), 0);
    for (int64_t i = 0; i < from.count(); ++i) mean[i / width % channels] += from.value(i) * share;
    for (int64_t i = 0; i < from.count(); ++i) {
      const int64_t c = i / width % channels;
      variance[c] += (from.value(i) - mean[c]) * (from.value(i) - mean[c]) * share;
    }
  }
  const double eps = node.Float("epsilon", 1e-5F);
  Constant result{.shape = from.shape};
  for (int64_t i = 0; i < from.count(); ++i) {
    const int64_t c = i / width % channels;
    Append((from.value(i) - mean[c]) / std::sqrt(variance[c] + eps) * (*floats[1])[c] + (*floats[2])[c], &result);
  }
  return result;
}

Constant Clip(const NodeReader& node) {
  constexpr double kMost = std::numeric_limits<double>::infinity();
  const auto bound = [&](const char* name, int i, double fallback) {
    if (node.has(i)) return node.number(i, name);
    return node.has_attribute(name) ? static_cast<double>(node.Float(name, 0)) : fallback;
  };
  const double least = bound("min", 1, -kMost), most = bound("max", 2, kMost);
  const Constant& from = node.constant(0, "its input");
  Constant result{.shape = from.shape, .whole = from.whole};
  for (int64_t i = 0; i < from.count(); ++i) Append(std::min(std::max(from.value(i), least), most), &result);
  return result;
}

// --- Masks ---

// What lies on one side of a diagonal of each matrix, and zeros.
Constant Trilu(const NodeReader& node) {
  Constant result = node.constant(0, "its input");
  if (result.shape.axes() < 2) node.Refuse("reads " + result.shape.ToString() + ", which holds no matrices");
  const double diagonal = node.has(1) ? node.number(1, "the diagonal") : 0;
  const bool upper = node.Int("upper", 1) != 0;
  const int64_t rows = result.shape[-2], columns = result.shape[-1];
  for (int64_t i = 0; i < result.count(); ++i) {
    const auto distance = static_cast<double>(i % columns - i / columns % rows);
    if (upper ? distance >= diagonal : distance <= diagonal) continue;
    if (result.whole) {
      result.integers[i] = 0;
    } else {
      result.floats[i] = 0;
    }
  }
  return result;
}

// Slices of the first input are replaced: the last axis of the indices says where each begins.
Constant ScatterND(const NodeReader& node) {
  if (node.String("reduction", "none") != "none") node.Refuse("its reduction is not possible; none is");
  Constant result = node.constant(0, "its input");
  result.name.clear();
  const Constant &indices = node.constant(1, "the indices"), &updates = node.constant(2, "the updates");
  const int64_t depth = indices.shape.axes() > 0 ? indices.shape[-1] : 0;
  if (!indices.whole || depth < 1 || depth > result.shape.axes() || updates.whole != result.whole) {
    node.Refuse("its indices or updates do not fit " + result.shape.ToString());
  }
  const std::vector<int64_t> strides = StridesOf(result.shape);
  const int64_t width = result.shape.count(static_cast<int>(depth)), count = indices.count() / depth;
  if (updates.count() != count * width) node.Refuse("its updates do not fit its indices");
  for (int64_t row = 0; row < count; ++row) {
    int64_t at = 0;
    for (int64_t d = 0; d < depth; ++d) {
      const int64_t extent = result.shape[static_cast<int>(d)], index = indices.integers[row * depth + d];
      if (index < -extent || index >= extent) node.Refuse("index " + std::to_string(index) + " is outside its input");
      at += (index < 0 ? index + extent : index) * strides[d];
    }
    for (int64_t k = 0; k < width; ++k) {
      if (result.whole) {
        result.integers[at + k] = updates.integers[row * width + k];
      } else {
        result.floats[at + k] = updates.floats[row * width + k];
      }
    }
  }
  return result;
}

}  // namespace

FoldingTable TensorFoldings() {
  return {{"BatchNormalization", BatchNormalization},
          {"Clip", Clip},
          {"CumSum", CumSum},
          {"ReduceL1", Reduce<MagnitudeOf>},
          {"ReduceL2", Reduce<LengthOf>},
          {"ReduceMax", Reduce<MostOf>},
          {"ReduceMean", Reduce<MeanOf>},
          {"ReduceMin", Reduce<LeastOf>},
          {"ReduceProd", Reduce<ProductOf>},
          {"ReduceSum", Reduce<SumOf>},
          {"ReduceSumSquare", Reduce<SquaresOf>},
          {"ScatterND", ScatterND},
          {"Tile", Tile},
          {"Trilu", Trilu}};
}

}  // namespace crema::onnx
