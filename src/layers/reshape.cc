// Reshape: the bottom's elements under another shape. In `shape` a 0 keeps the bottom's extent at that place and one -1
// stands for whatever is left; `axis` and `num_axes` limit the change to some axes of the bottom.
#include <algorithm>

#include "crema/layer.h"

namespace crema {

namespace {

class ReshapeLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const ReshapeParameter& param = setup.param().reshape_param();
    const Shape& bottom = setup.bottom_shape(0);
    const int axes = bottom.axes();
    // Unlike elsewhere -1 means past the last axis: new axes go there.
    const int first = param.axis() >= 0 ? param.axis() : axes + param.axis() + 1;
    if (first < 0 || first > axes) {
      setup.Fail("reshape_param.axis", "axis " + std::to_string(param.axis()) + " is outside " + Describe(setup) +
                                           "; give " + std::to_string(-axes - 1) + " to " + std::to_string(axes));
    }
    if (param.num_axes() < -1 || (param.num_axes() >= 0 && first + param.num_axes() > axes)) {
      setup.Fail("reshape_param.num_axes", "num_axes " + std::to_string(param.num_axes()) + " from axis " +
                                               std::to_string(first) + " on does not fit " + Describe(setup) +
                                               "; give at most " + std::to_string(axes - first) +
                                               ", or -1 for all that follow");
    }
    const int end = param.num_axes() < 0 ? axes : first + param.num_axes();
    std::vector<int64_t> dims(bottom.dims().begin(), bottom.dims().begin() + first);
    int inferred = -1;
    for (int i = 0; i < param.shape().dim_size(); ++i) {
      dims.push_back(Extent(setup, first + i, param.shape().dim(i)));
      if (dims.back() >= 0) continue;
      if (inferred >= 0) setup.Fail("reshape_param.shape", "shape holds more than one -1; only one can be inferred");
      inferred = first + i;
    }
    dims.insert(dims.end(), bottom.dims().begin() + end, bottom.dims().end());
    if (inferred >= 0) Infer(setup, inferred, dims);
    Shape top(std::move(dims));
    if (top.count() != bottom.count()) {
      setup.Fail("reshape_param.shape", "the new shape " + top.ToString() + " holds " + std::to_string(top.count()) +
                                            " elements, but " + Describe(setup) + " holds " +
                                            std::to_string(bottom.count()) +
                                            "; use dim: -1 for the extent that should adapt");
    }
    setup.SetTop(0, std::move(top));
    setup.MakeView();
  }

 private:
  static std::string Describe(const LayerSetup& setup) {
    return "\"" + setup.param().bottom(0) + "\", which is " + setup.bottom_shape(0).ToString();
  }

  // What `dim` of the file says for axis `axis` of the top; -1: to be inferred.
  static int64_t Extent(const LayerSetup& setup, int axis, int64_t dim) {
    if (dim > 0 || dim == -1) return dim;
    if (dim < 0) {
      setup.Fail("reshape_param.shape",
                 "shape holds " + std::to_string(dim) + "; an extent is positive, 0 (keep the bottom's) or -1 (infer)");
    }
    if (axis >= setup.bottom_shape(0).axes()) {
      setup.Fail("reshape_param.shape", "shape holds a 0 for axis " + std::to_string(axis) +
                                            ", but there is no such axis to keep in " + Describe(setup));
    }
    return setup.bottom_shape(0)[axis];
  }

  static void Infer(const LayerSetup& setup, int axis, std::vector<int64_t>& dims) {
    int64_t others = 1;
    for (int64_t extent : dims) others *= extent == -1 ? 1 : extent;
    const int64_t count = setup.bottom_shape(0).count();
    if (others == 0 || count % others != 0) {
      setup.Fail("reshape_param.shape", "the extent to infer does not come out whole: " + Describe(setup) + ", holds " +
                                            std::to_string(count) + " elements, the other extents make " +
                                            std::to_string(others));
    }
    dims[axis] = count / others;
  }
};

}  // namespace

REGISTER_LAYER(Reshape, ReshapeLayer, "reshape_param");

}  // namespace crema
