// SpatialTransformer: images through affine maps that a net learns (Jaderberg et al., "Spatial Transformer Networks",
// 2015). Bottoms: images, and a map for each.
#include <cstdint>
#include <string>

#include "crema/layer.h"
#include "layers/field_range.h"
#include "layers/given_numbers.h"
#include "ops/operations.h"

namespace crema {

namespace {

class SpatialTransformerLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(2);
    setup.ExpectTops(1);
    const SpatialTransformerParameter& param = setup.param().st_param();
    CheckKind(setup, "transform_type", param.transform_type(), "affine");
    CheckKind(setup, "sampler_type", param.sampler_type(), "bilinear");
    const Shape& images = setup.bottom_shape(0);
    if (images.axes() != 4 || images.count(1) == 0) {
      setup.Fail("bottom", "takes num x channels x height x width, but " + setup.BottomIs(0));
    }
    problem_.images = images[0];
    problem_.channels = images[1];
    problem_.height = images[2];
    problem_.width = images[3];
    problem_.result_height = Extent(setup, "output_H", param.has_output_h(), param.output_h(), images[2]);
    problem_.result_width = Extent(setup, "output_W", param.has_output_w(), param.output_w(), images[3]);
    if (images.count(2) > INT32_MAX) {
      setup.Fail("bottom", "planes of more than 2^31 elements are not supported; " + setup.BottomIs(0));
    }
    if (problem_.result_height * problem_.result_width > INT32_MAX) {
      setup.Fail("st_param", "a top of height " + std::to_string(problem_.result_height) + " and width " +
                                 std::to_string(problem_.result_width) +
                                 " has planes of more than 2^31 elements; give a smaller output_H and output_W");
    }
    ReadMap(setup);
    setup.SetTop(0, {problem_.images, problem_.channels, problem_.result_height, problem_.result_width});
    if (!param.to_compute_du()) setup.NoGradient(0);
    setup.AllowSplitBatch();
    setup.SetFlops(8.0 * static_cast<double>(setup.top_specs()[0].shape.count()));
  }

  void Plan(LayerPlan& plan) override {
    if (!plan.backward()) return;
    plan.BackwardReadsBottom(1);
    if (!plan.bottom_grad(1)) return;
    plan.BackwardReadsBottom(0);
    plan.Workspace(0, OperationsOf(*plan.context().device).SpatialTransformWorkspace(problem_));
  }

  void Forward(const LayerRun& run) override {
    run.ops->SpatialTransformForward(problem_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.tops[0].f32());
  }

  void Backward(const LayerRun& run) override {
    const auto gradient = [&](int i) { return run.bottom_grads[i].defined() ? run.bottom_grads[i].f32() : nullptr; };
    run.ops->SpatialTransformBackward(problem_, run.bottoms[0].f32(), run.bottoms[1].f32(), run.top_grads[0].f32(),
                                      gradient(0), gradient(1), run.workspace);
  }

 private:
  static void CheckKind(const LayerSetup& setup, const std::string& field, const std::string& given,
                        const std::string& only) {
    if (given == only) return;
    setup.Fail("st_param." + field, field + " is \"" + given + "\", but only \"" + only + "\" is there");
  }

  static int64_t Extent(const LayerSetup& setup, const std::string& field, bool given, int32_t value,
                        int64_t of_image) {
    if (!given) return of_image;
    if (value < 1) {
      setup.Fail("st_param." + field, field + " is " + std::to_string(value) + "; give pixels of the top, 1 or more");
    }
    return value;
  }

  void ReadMap(LayerSetup& setup) {
    static constexpr const char* kNames[] = {"theta_1_1", "theta_1_2", "theta_1_3",
                                             "theta_2_1", "theta_2_2", "theta_2_3"};
    const auto given = GivenNumbersOf(setup.param().st_param());
    problem_.learnt = 0;
    std::string learnt;
    for (int i = 0; i < kAffineNumbers; ++i) {
      problem_.fixed[i] = ReadInRange(setup, std::string("st_param.") + kNames[i], given[i].value_or(0), kFinite);
      problem_.place[i] = given[i] ? -1 : problem_.learnt++;
      if (!given[i]) learnt += (learnt.empty() ? "" : ", ") + std::string(kNames[i]);
    }
    if (problem_.learnt == 0) {
      setup.Fail("st_param", "gives all six numbers of the map, which leaves \"" + setup.param().bottom(1) +
                                 "\" none; leave out those that a net is to find");
    }
    const Shape& theta = setup.bottom_shape(1);
    if (theta.axes() >= 1 && theta[0] == problem_.images && theta.count(1) == problem_.learnt) return;
    setup.Fail("bottom", "takes " + std::to_string(problem_.learnt) + " number(s) (" + learnt + ") for each of " +
                             std::to_string(problem_.images) + " images, but " + setup.BottomIs(1));
  }

  SpatialTransform problem_;
};

}  // namespace

REGISTER_LAYER(SpatialTransformer, SpatialTransformerLayer, "st_param");

}  // namespace crema
