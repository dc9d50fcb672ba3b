#include "layers/stretched_vector.h"

namespace crema {

namespace {

Shape LearntShape(const LayerSetup& setup, const std::string& block, int axis, int num_axes) {
  const Shape& shape = setup.bottom_shape(0);
  if (num_axes < -1 || num_axes > shape.axes() - axis) {
    setup.Fail(block + ".num_axes", "num_axes " + std::to_string(num_axes) + " from axis " + std::to_string(axis) +
                                        " on does not fit " + setup.DescribeBottom(0) + "; give 0 to " +
                                        std::to_string(shape.axes() - axis) + ", or -1 for all of them");
  }
  const int end = num_axes == -1 ? shape.axes() : axis + num_axes;
  return Shape(std::vector<int64_t>(shape.dims().begin() + axis, shape.dims().begin() + end));
}

void CheckSecondBottom(const LayerSetup& setup, int axis) {
  const Shape &shape = setup.bottom_shape(0), &vector = setup.bottom_shape(1);
  bool fits = axis + vector.axes() <= shape.axes();
  for (int i = 0; fits && i < vector.axes(); ++i) fits = vector[i] == shape[axis + i];
  if (fits) return;
  setup.Fail("bottom", "stretches " + setup.DescribeBottom(1) + " over " + setup.DescribeBottom(0) + " from axis " +
                           std::to_string(axis) + " on, where the extents differ; set axis to where they agree");
}

}  // namespace

ChannelGrid StretchedVector::GridFor(const TensorSpec& bottom) const {
  ChannelGrid planned = grid;
  if (of_channels) planned.layout = bottom.layout;
  planned.dtype = bottom.dtype;
  return planned;
}

StretchedVector ReadStretchedVector(LayerSetup& setup, const std::string& block, int axis, int num_axes) {
  const Shape& shape = setup.bottom_shape(0);
  StretchedVector vector;
  vector.learnt = setup.bottoms() == 1;
  const bool number = !vector.learnt && setup.bottom_shape(1).axes() == 0;
  axis = number ? 0 : setup.CanonicalAxis(block + ".axis", axis);
  if (!vector.learnt) CheckSecondBottom(setup, axis);
  vector.shape = vector.learnt ? LearntShape(setup, block, axis, num_axes) : setup.bottom_shape(1);
  vector.grid.batch = shape.count(0, axis);
  vector.grid.channels = vector.shape.count();
  vector.grid.pixels = shape.count(axis + vector.shape.axes());
  vector.of_channels = axis == 1 && vector.shape.axes() == 1;
  // A single number does not mind the order; numbers of 16 bits are read by rows of channels only.
  if (vector.of_channels || vector.shape.axes() == 0) setup.AllowChannelsLast();
  if (vector.of_channels && vector.learnt) setup.AllowHalfPrecision();
  return vector;
}

}  // namespace crema
