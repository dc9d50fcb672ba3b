// SPP: poolings over grids of 1 x 1, 2 x 2, 4 x 4, ... windows, each flattened and put behind the one before; a single
// one is plain pooling. spp_param.engine chose between Caffe's own kernels and has no effect here.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/aligned_memory.h"
#include "crema/layer.h"
#include "layers/plan_kernel.h"
#include "ops/operations.h"

namespace crema {

namespace {

class SppLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const SPPParameter& param = setup.param().spp_param();
    const Shape& shape = setup.bottom_shape(0);
    if (shape.axes() != 4) {
      setup.Fail("bottom", "takes num x channels x height x width, but \"" + setup.param().bottom(0) + "\" is " +
                               shape.ToString());
    }
    if (shape.count() == 0) {
      setup.Fail("bottom", setup.DescribeBottom(0) + " is empty");
    }
    if (param.pyramid_height() < 1) {
      setup.Fail(param.has_pyramid_height() ? "spp_param.pyramid_height" : "spp_param",
                 "pyramid_height must be at least 1; it is the number of grids");
    }
    batch_ = shape[0];
    levels_.clear();
    int64_t windows = 0;
    for (uint32_t level = 0; level < param.pyramid_height(); ++level) {
      levels_.emplace_back().problem = MakeProblem(setup, level);
      windows += int64_t{1} << 2 * level;
    }
    setup.SetTop(0, levels_.size() == 1 ? Shape{batch_, shape[1], 1, 1} : Shape{batch_, shape[1] * windows});
    setup.SetFlops(static_cast<double>(shape.count()) * static_cast<double>(levels_.size()));
  }

  void Plan(LayerPlan& plan) override {
    width_ = plan.top(0).shape.count(1) * int64_t{sizeof(float)};
    size_t pooled = 0;
    for (Level& level : levels_) {
      PoolingProblem& problem = level.problem;
      problem.backward = plan.backward();
      level.kernel = PlanKernel(plan, &Operations::MakePooling, problem);
      level.saved = level.kernel->saved().shape.count() > 0 ? plan.Save(level.kernel->saved()) : -1;
      pooled = std::max(pooled, AlignedBytesOf<float>(problem.outputs()));
    }
    const PoolingProblem& problem = levels_[0].problem;
    if (problem.backward && problem.method == PoolingMethod::kStochastic && !problem.training) {
      plan.BackwardReadsBottom(0);
    }
    gradient_ = pooled;
    if (levels_.size() > 1) plan.Workspace(pooled, pooled + AlignedBytesOf<float>(problem.inputs()));
  }

  void Forward(const LayerRun& run) override {
    const uint64_t seed = run.context->draw_seed();
    const uint64_t stream = StreamId(static_cast<uint32_t>(run.layer_index), run.pass);
    std::byte* top = static_cast<std::byte*>(run.tops[0].raw());
    for (size_t i = 0; i < levels_.size(); ++i) {
      const Level& level = levels_[i];
      // Each level draws numbers of its own.
      const RandomStream random(seed + i, stream);
      void* pooled = levels_.size() > 1 ? run.workspace : run.tops[0].raw();
      level.kernel->Forward(run.bottoms[0].raw(), pooled, Saved(run, level), nullptr, &random);
      if (levels_.size() > 1) run.ops->CopyRows(batch_, level.width(), {pooled, level.width()}, {top, width_});
      top += level.width();
    }
  }

  void Backward(const LayerRun& run) override {
    const std::byte* top = static_cast<const std::byte*>(run.top_grads[0].raw());
    float* total = run.bottom_grads[0].f32();
    for (size_t i = 0; i < levels_.size(); ++i) {
      const Level& level = levels_[i];
      const void* pooled = top;
      if (levels_.size() > 1) {
        run.ops->CopyRows(batch_, level.width(), {top, width_}, {run.workspace, level.width()});
        pooled = run.workspace;
      }
      float* gradient = i == 0 ? total : reinterpret_cast<float*>(run.workspace + gradient_);
      level.kernel->Backward(run.bottoms[0].raw(), pooled, Saved(run, level), gradient);
      if (i > 0) run.ops->Axpy(level.problem.inputs(), 1, gradient, total);
      top += level.width();
    }
  }

 private:
  struct Level {
    PoolingProblem problem;
    std::unique_ptr<PoolingKernel> kernel;
    int saved = -1;  // its index; -1: keeps nothing
    // Bytes of an image.
    int64_t width() const { return problem.outputs() / problem.batch * int64_t{sizeof(float)}; }
  };

  static void* Saved(const LayerRun& run, const Level& level) {
    return level.saved < 0 ? nullptr : run.saved[level.saved].raw();
  }

  // The smallest windows of which 2^level cover the image, which is padded by half of what they exceed it.
  static PoolingProblem MakeProblem(const LayerSetup& setup, uint32_t level) {
    const SPPParameter& param = setup.param().spp_param();
    const Shape& shape = setup.bottom_shape(0);
    const int64_t bins = int64_t{1} << level;
    PoolingProblem problem;
    problem.method = param.pool() == SPPParameter::MAX   ? PoolingMethod::kMax
                     : param.pool() == SPPParameter::AVE ? PoolingMethod::kAverage
                                                         : PoolingMethod::kStochastic;
    problem.training = setup.phase() == TRAIN;
    problem.batch = shape[0];
    problem.channels = shape[1];
    problem.input_height = shape[2];
    problem.input_width = shape[3];
    problem.output_height = problem.output_width = bins;
    for (const int axis : {2, 3}) {
      const int64_t extent = shape[axis], kernel = (extent + bins - 1) / bins, pad = (kernel * bins - extent + 1) / 2;
      (axis == 2 ? problem.vertical : problem.horizontal) = {kernel, kernel, pad};
      if (pad < kernel && (pad == 0 || problem.method != PoolingMethod::kStochastic)) continue;
      const std::string grid = "a grid of " + std::to_string(bins) + " windows does not fit the " +
                               std::to_string(extent) + (axis == 2 ? " rows" : " columns") + " of " +
                               setup.DescribeBottom(0) + ": ";
      if (pad < kernel) {
        setup.Fail("spp_param.pool", grid + "pool: STOCHASTIC takes no padding, so the extent must be a multiple of " +
                                         std::to_string(bins) + "; use MAX or AVE, or lower pyramid_height to " +
                                         std::to_string(level));
      }
      setup.Fail("spp_param.pyramid_height", grid + "some would lie in the padding alone; lower pyramid_height to " +
                                                 std::to_string(level) + ", or give larger images");
    }
    return problem;
  }

  int64_t batch_ = 1;
  std::vector<Level> levels_;
  int64_t width_ = 0;    // bytes of an image of the top
  size_t gradient_ = 0;  // where that of one level begins in the workspace
};

}  // namespace

REGISTER_LAYER(SPP, SppLayer, "spp_param");

}  // namespace crema
