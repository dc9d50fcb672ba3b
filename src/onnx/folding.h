// Nodes whose inputs are all constant are computed when a model is read.
#ifndef CREMA_ONNX_FOLDING_H_
#define CREMA_ONNX_FOLDING_H_

#include <map>
#include <string>
#include <vector>

#include "onnx/graph_reader.h"

namespace crema::onnx {

using FoldingFunction = Constant (*)(const NodeReader& node);
using FoldingTable = std::map<std::string, FoldingFunction>;

// Those that are no formula for each element: src/onnx/tensor_folding.cc.
FoldingTable TensorFoldings();

// Null where the operator is not computed.
FoldingFunction FindFolding(const std::string& op);

// Sets the node's output where it can be computed; false where it cannot. Throws UserError where it is wrong.
bool FoldNode(NodeReader& node);

// The elements of a constant of `shape`; refuses one that is too large.
int64_t CountOf(const NodeReader& node, const Shape& shape);
// Rounded towards zero where the constant is of whole numbers.
void Append(double value, Constant* constant);
// By how many elements the axes move.
std::vector<int64_t> StridesOf(const Shape& shape);

// The extents of two shapes that are broadcast together, counted from the last; empty, with *fits false, where they do
// not fit.
Shape BroadcastShape(const Shape& a, const Shape& b, bool* fits);
// The elements of `value`, repeated to `shape`, which it must fit.
Constant BroadcastTo(const Constant& value, const Shape& shape);

// With the axes in another order.
Constant Transposed(const Constant& value, const std::vector<int>& order);

// --- What operators of structure say, of constants and blobs alike ---

// Elements start, start + step, ... of an axis, `count` of them.
struct SliceRange {
  int axis;
  int64_t start, step, count;
};
// Of a Slice, those of axes that are cut.
std::vector<SliceRange> SliceRanges(const NodeReader& node);
// What Reshape's input says: 0 keeps an extent, unless `allow_zero`, and one -1 stands for what is left.
Shape ReshapedTo(const NodeReader& node, const Shape& from, const std::vector<int64_t>& dims, bool allow_zero);
Shape UnsqueezedShape(const NodeReader& node, const Shape& from);
Shape SqueezedShape(const NodeReader& node, const Shape& from);
std::vector<int> TransposeOrder(const NodeReader& node, int axes);

}  // namespace crema::onnx

#endif  // CREMA_ONNX_FOLDING_H_
