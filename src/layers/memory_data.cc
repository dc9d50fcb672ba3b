// MemoryData: a batch of records and their labels, which the program running the net writes (BVLC Caffe's
// MemoryDataLayer); nothing happens in a pass.
#include <utility>

#include "crema/layer.h"

namespace crema {

namespace {

class MemoryDataLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(0);
    setup.ExpectTops(2);
    setup.MakeSource();
    if (setup.param().has_transform_param()) {
      setup.Warn("transform_param",
                 "transform_param has no effect: the program writes the values that the net is to see; let it do what "
                 "stands here");
    }
    const Shape* data = setup.shape_override(0);
    const Shape batch = data ? *data : ShapeInFile(setup);
    const Shape* label = setup.shape_override(1);
    setup.SetTop(0, batch);
    setup.SetTop(1, label ? *label : Shape{batch.axes() > 0 ? batch[0] : 1});
  }

 private:
  static Shape ShapeInFile(const LayerSetup& setup) {
    const MemoryDataParameter& param = setup.param().memory_data_param();
    const std::pair<const char*, uint32_t> extents[] = {{"batch_size", param.batch_size()},
                                                        {"channels", param.channels()},
                                                        {"height", param.height()},
                                                        {"width", param.width()}};
    for (const auto& [field, extent] : extents) {
      if (extent > 0) continue;
      setup.Fail("memory_data_param." + std::string(field),
                 std::string(field) +
                     " is missing or 0; give batch_size, channels, height and width in memory_data_param, each at "
                     "least 1");
    }
    return {param.batch_size(), param.channels(), param.height(), param.width()};
  }
};

}  // namespace

// transform_param is for `crema predict` and `evaluate`, as that of Input is.
REGISTER_LAYER(MemoryData, MemoryDataLayer, "memory_data_param", "transform_param");

}  // namespace crema
