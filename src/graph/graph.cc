#include "graph/graph.h"

#include "base/check.h"

namespace crema {

bool IsImage(const TensorSpec& spec) {
  const bool numbers = spec.dtype == DType::kF32 || spec.dtype == DType::kBF16 || spec.dtype == DType::kF16;
  return numbers && spec.shape.axes() >= 3 && spec.shape.axes() <= 5;
}

TensorSpec Node::Laid(TensorSpec spec) const {
  if (rows > 0) spec.shape.set(0, rows);
  if (!IsImage(spec)) return spec;
  spec.layout = layout;
  spec.dtype = image_type;
  return spec;
}

void Graph::Verify() const {
  const int value_count = static_cast<int>(values.size());
  for (int n = 0; n < static_cast<int>(nodes.size()); ++n) {
    const Node& node = nodes[n];
    for (int i = 0; i < static_cast<int>(node.bottoms.size()); ++i) {
      const int v = node.bottoms[i];
      CREMA_CHECK(v >= 0 && v < value_count) << node.name() << " reads value " << v;
      CREMA_CHECK(values[v].producer < n) << node.name() << " reads " << values[v].label() << " before it is made";
      bool listed = false;
      for (const Value::Use& use : values[v].uses) listed |= use.node == n && use.bottom == i;
      CREMA_CHECK(listed) << values[v].label() << " does not list its use by " << node.name();
    }
    for (int i = 0; i < static_cast<int>(node.tops.size()); ++i) {
      const int v = node.tops[i];
      CREMA_CHECK(v >= 0 && v < value_count) << node.name() << " makes value " << v;
      CREMA_CHECK(values[v].producer == n && values[v].producer_top == i) << values[v].label();
    }
    for (int p : node.params) {
      CREMA_CHECK(p >= 0 && p < static_cast<int>(params.size())) << node.name() << " has parameter " << p;
    }
  }
}

}  // namespace crema
