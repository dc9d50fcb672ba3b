// DummyData: tops filled as fillers say: constant ones once, the others anew in each pass.
#include <algorithm>

#include "base/random.h"
#include "crema/layer.h"
#include "graph/filler.h"
#include "schema/dummy_shape.h"

namespace crema {

namespace {

class DummyDataLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(0);
    setup.ExpectTops(1, -1);
    setup.MakeSource();
    const DummyDataParameter& param = setup.param().dummy_data_param();
    CheckCount(setup, "data_filler", param.data_filler_size(), true);
    const bool four_axes = param.num_size() + param.channels_size() + param.height_size() + param.width_size() > 0;
    if (four_axes && param.shape_size() > 0) {
      setup.Fail("dummy_data_param.shape", "both shape and num/channels/height/width are set; keep one of them");
    }
    for (int i = 0; i < setup.tops(); ++i) {
      const Shape* given = setup.shape_override(i);
      if (!given) CheckCounts(setup, four_axes);
      Shape shape = given ? *given : ShapeOf(param, i);
      for (int64_t extent : shape.dims()) {
        if (extent >= 1) continue;
        setup.Fail("dummy_data_param", "top \"" + setup.param().top(i) + "\" would be " + shape.ToString() +
                                           "; every extent must be at least 1");
      }
      FillerParameter filler;  // zero
      if (param.data_filler_size() > 0) filler = param.data_filler(param.data_filler_size() == 1 ? 0 : i);
      const std::string problem = CheckFiller(filler, shape);
      if (!problem.empty()) setup.Fail("dummy_data_param.data_filler", problem);
      fillers_.push_back(filler);
      setup.SetTop(i, std::move(shape));
    }
    filled_.resize(setup.tops());
  }

  void Forward(const LayerRun& run) override {
    wrote_ = false;
    if (run.replay) return;  // tops hold until the next pass
    for (size_t i = 0; i < fillers_.size(); ++i) {
      const bool constant = fillers_[i].type() == "constant";
      if (constant && filled_[i] == run.tops[i].raw()) continue;
      const uint64_t draw = run.pass * fillers_.size() + i;
      Fill(fillers_[i], run.context->seed, StreamId(static_cast<uint32_t>(run.layer_index), draw), run.tops[i]);
      filled_[i] = run.tops[i].raw();
      wrote_ = true;
    }
  }

  bool wrote_tops() const override { return wrote_; }

 private:
  static void CheckCounts(const LayerSetup& setup, bool four_axes) {
    const DummyDataParameter& param = setup.param().dummy_data_param();
    if (!four_axes) return CheckCount(setup, "shape", param.shape_size(), false);
    CheckCount(setup, "num", param.num_size(), false);
    CheckCount(setup, "channels", param.channels_size(), false);
    CheckCount(setup, "height", param.height_size(), false);
    CheckCount(setup, "width", param.width_size(), false);
  }

  static void CheckCount(const LayerSetup& setup, const std::string& field, int given, bool none_allowed) {
    if (given == 1 || given == setup.tops() || (none_allowed && given == 0)) return;
    setup.Fail(given > 0 ? "dummy_data_param." + field : "dummy_data_param",
               "gives " + field + " " + std::to_string(given) + " times for " + std::to_string(setup.tops()) +
                   " top(s); give one for all, or one for each top");
  }

  std::vector<FillerParameter> fillers_;  // one for each top
  std::vector<const void*> filled_;       // where a constant top was filled
  bool wrote_ = false;                    // in the latest pass
};

}  // namespace

REGISTER_LAYER(DummyData, DummyDataLayer, "dummy_data_param");

}  // namespace crema
