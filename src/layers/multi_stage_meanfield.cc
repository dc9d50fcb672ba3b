// MultiStageMeanfield: scores of classes that agree with those of like pixels, by mean-field inference in a fully
// connected conditional random field (Zheng et al., "Conditional Random Fields as Recurrent Neural Networks", 2015).
// Bottoms: scores, the scores to begin with, images. Parameters: the weights of the spatial and of the bilateral
// filter, and the compatibility of classes.
#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "base/number_text.h"
#include "crema/layer.h"
#include "device/device.h"
#include "graph/filler.h"
#include "layers/field_range.h"
#include "ops/mean_field/permutohedral_formulas.h"
#include "ops/operations.h"

namespace crema {

namespace {

std::string Field(const std::string& field) { return "multi_stage_meanfield_param." + field; }

class MultiStageMeanfieldLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(3);
    setup.ExpectTops(1);
    ReadShapes(setup);
    const MultiStageMeanfieldParameter& param = setup.param().multi_stage_meanfield_param();
    if (param.num_iterations() < 1 || param.num_iterations() > INT32_MAX) {
      setup.Fail(Field("num_iterations"), "num_iterations is " + std::to_string(param.num_iterations()) +
                                              "; give the number of steps, at least 1");
    }
    problem_.iterations = static_cast<int32_t>(param.num_iterations());
    problem_.theta_alpha = Deviation(setup, "theta_alpha", param.theta_alpha());
    problem_.theta_beta = Deviation(setup, "theta_beta", param.theta_beta());
    problem_.theta_gamma = Deviation(setup, "theta_gamma", param.theta_gamma());
    CheckPositions(setup, "theta_alpha", problem_.theta_alpha, 2 + kColors);
    CheckPositions(setup, "theta_gamma", problem_.theta_gamma, 2);
    AddWeights(setup, "spatial_filter_weight", param.spatial_filter_weight(), param.has_spatial_filter_weights_str(),
               param.spatial_filter_weights_str());
    AddWeights(setup, "bilateral_filter_weight", param.bilateral_filter_weight(),
               param.has_bilateral_filter_weights_str(), param.bilateral_filter_weights_str());
    AddDiagonal(setup, "compatibility_mode", std::vector<float>(static_cast<size_t>(problem_.classes), -1.0f));
    setup.SetTop(0, setup.bottom_shape(0));
    setup.NoGradient(2);
    setup.AllowSplitBatch();
    // Products with matrices, and what two filters do to each point: sharing out to and getting back from 6 and 3
    // vertices.
    const auto scores = static_cast<double>(setup.bottom_shape(0).count());
    setup.SetFlops(scores * problem_.iterations * (4.0 * static_cast<double>(problem_.classes) + 36.0));
  }

  void Plan(LayerPlan& plan) override {
    Device& device = *plan.context().device;
    Operations& ops = OperationsOf(device);
    const MeanFieldMemory memory = ops.MeanFieldMemoryOf(problem_, plan.backward());
    spatial_ = Buffer(device, memory.spatial);
    const Buffer workspace(device, memory.forward);
    ops.MakeSpatialLattice(problem_, spatial_.data(), workspace.data());
    if (plan.backward()) {
      plan.Save({Shape{static_cast<int64_t>(memory.bilateral)}, DType::kU8});
      plan.Save({Shape{static_cast<int64_t>(memory.probabilities)}, DType::kU8});
    }
    plan.Workspace(memory.forward, memory.backward);
  }

  void Forward(const LayerRun& run) override {
    const MeanFieldInputs inputs = {run.bottoms[0].f32(), run.bottoms[1].f32(), run.bottoms[2].f32()};
    run.ops->MeanFieldForward(problem_, inputs, WeightsOf(run), TapeOf(run), run.tops[0].f32(), run.workspace);
  }

  void Backward(const LayerRun& run) override {
    const auto wanted = [](const Tensor& gradient) { return gradient.defined() ? gradient.f32() : nullptr; };
    const MeanFieldGradients gradients = {wanted(run.bottom_grads[0]), wanted(run.bottom_grads[1]),
                                          wanted(run.param_grads[0]), wanted(run.param_grads[1]),
                                          wanted(run.param_grads[2])};
    run.ops->MeanFieldBackward(problem_, WeightsOf(run), TapeOf(run), run.top_grads[0].f32(), gradients, run.workspace);
  }

 private:
  void ReadShapes(const LayerSetup& setup) {
    const Shape &scores = setup.bottom_shape(0), &first = setup.bottom_shape(1), &images = setup.bottom_shape(2);
    if (scores.axes() != 4 || scores.count(1) == 0) {
      setup.Fail("bottom",
                 "takes scores of classes at pixels, num x classes x height x width, but " + setup.BottomIs(0));
    }
    if (first != scores) {
      setup.Fail("bottom", "begins with scores of the same shape, but " + setup.BottomIs(0) + " and " +
                               setup.BottomIs(1) + "; mostly both are the same blob");
    }
    if (images != Shape{scores[0], kColors, scores[2], scores[3]}) {
      setup.Fail("bottom", "takes images of " + std::to_string(kColors) +
                               " channels and of the size of the scores, but " + setup.BottomIs(0) + " and " +
                               setup.BottomIs(2) + "; bring both to one size, e.g. with a Crop or an Interp layer");
    }
    problem_.images = scores[0];
    problem_.classes = scores[1];
    problem_.height = scores[2];
    problem_.width = scores[3];
    if (problem_.pixels() > INT32_MAX / (2 + kColors + 1)) {
      setup.Fail("bottom", setup.BottomIs(0) + "; images of more than " + FormatCount(INT32_MAX / (2 + kColors + 1)) +
                               " pixels are not supported");
    }
  }

  static float Deviation(const LayerSetup& setup, const std::string& field, float value) {
    return ReadInRange(setup, Field(field), value, kPositive, "it is a standard deviation");
  }

  void CheckPositions(const LayerSetup& setup, const std::string& field, float theta, int dimensions) const {
    const auto extent = static_cast<float>(std::max(problem_.height, problem_.width) - 1);
    const float most = permutohedral::MostDeviations(dimensions);
    if (extent / theta <= most) return;
    setup.Fail(Field(field), field + " is " + FormatNumber(theta) + ", too small for images of " +
                                 std::to_string(problem_.height) + "x" + std::to_string(problem_.width) +
                                 " pixels; give at least " + FormatNumber(extent / most));
  }

  void AddWeights(LayerSetup& setup, const std::string& field, float value, bool listed, const std::string& list) {
    if (!listed) return AddDiagonal(setup, field, std::vector<float>(static_cast<size_t>(problem_.classes), value));
    const std::string of_list = field + "s_str";
    std::vector<float> values;
    std::istringstream words(list);
    for (std::string word; words >> word;) {
      float number = 0;
      if (!ParseFinite(word, &number)) {
        setup.Fail(Field(of_list), of_list + " has \"" + word + "\", which is no number");
      }
      values.push_back(number);
    }
    if (static_cast<int64_t>(values.size()) != problem_.classes) {
      setup.Fail(Field(of_list), of_list + " has " + std::to_string(values.size()) + " number(s), but there are " +
                                     std::to_string(problem_.classes) + " classes; give a number for each");
    }
    AddDiagonal(setup, of_list, values);
  }

  void AddDiagonal(LayerSetup& setup, const std::string& field, const std::vector<float>& diagonal) const {
    FillerParameter filler;
    filler.set_type("values");
    filler.mutable_values()->Resize(static_cast<int>(problem_.classes * problem_.classes), 0.0f);
    for (int i = 0; i < static_cast<int>(problem_.classes); ++i) {
      filler.set_values(i * (static_cast<int>(problem_.classes) + 1),
                        ReadInRange(setup, Field(field), diagonal[i], kFinite));
    }
    AddFilledParam(setup, Field(field), Shape{1, 1, problem_.classes, problem_.classes}, filler);
  }

  static MeanFieldWeights WeightsOf(const LayerRun& run) {
    return {run.params[0].f32(), run.params[1].f32(), run.params[2].f32()};
  }

  MeanFieldTape TapeOf(const LayerRun& run) const {
    if (run.saved.empty()) return {spatial_.data(), nullptr, nullptr};
    return {spatial_.data(), static_cast<std::byte*>(run.saved[0].raw()), static_cast<std::byte*>(run.saved[1].raw())};
  }

  MeanField problem_;
  Buffer spatial_;  // the lattice of the positions
};

}  // namespace

REGISTER_LAYER(MultiStageMeanfield, MultiStageMeanfieldLayer, "multi_stage_meanfield_param");

}  // namespace crema
