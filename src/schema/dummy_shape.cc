#include "schema/dummy_shape.h"

#include "schema/blob_shape.h"

namespace crema {

Shape ShapeOf(const DummyDataParameter& param, int top) {
  const auto at = [top](const auto& values) { return values.size() == 1 ? 0 : top; };
  if (param.shape_size() > 0) {
    return at(param.shape()) < param.shape_size() ? ShapeOf(param.shape(at(param.shape()))) : Shape();
  }
  Shape shape{0, 0, 0, 0};
  int axis = 0;
  for (const auto* extents : {&param.num(), &param.channels(), &param.height(), &param.width()}) {
    if (at(*extents) >= extents->size()) return {};
    shape.set(axis++, extents->Get(at(*extents)));
  }
  return shape;
}

}  // namespace crema
