// Embed: one learnable vector for each whole number of the bottom; blobs [input_dim, num_output] and, with bias_term,
// [num_output].

#include "base/number_text.h"
#include "crema/layer.h"
#include "graph/filler.h"
#include "ops/operations.h"

namespace crema {

namespace {

class EmbedLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const EmbedParameter& param = setup.param().embed_param();
    Check(setup, "num_output", param.has_num_output(), param.num_output(), "the length of each vector");
    Check(setup, "input_dim", param.has_input_dim(), param.input_dim(), "the number of different inputs");
    const Shape& shape = setup.bottom_shape(0);
    problem_ = {shape.count(), param.input_dim(), param.num_output()};
    items_ = shape.axes() > 0 ? shape[0] : 1;
    bias_ = param.bias_term();
    bottom_ = setup.param().bottom(0);
    const Shape table{problem_.rows, problem_.width};
    AddFilledParam(setup, "embed_param.weight_filler", table, param.weight_filler());
    if (bias_) AddFilledParam(setup, "embed_param.bias_filler", {problem_.width}, param.bias_filler());
    std::vector<int64_t> top = shape.dims();
    top.push_back(problem_.width);
    setup.SetTop(0, Shape(std::move(top)));
    setup.NoGradient(0);
  }

  void Plan(LayerPlan& plan) override {
    if (!plan.param_grad(0)) return;
    plan.BackwardReadsBottom(0);
    plan.Workspace(0, OperationsOf(*plan.context().device).EmbedWorkspace(problem_));
  }

  void Forward(const LayerRun& run) override {
    const Tensor& index = run.bottoms[0];
    const int64_t bad = run.ops->FindBadIndex(problem_, index.f32());
    if (bad >= 0) OnBadValue(bad, index.f32()[bad]);
    run.ops->EmbedForward(problem_, index.f32(), run.params[0].f32(), bias_ ? run.params[1].f32() : nullptr,
                          run.tops[0].f32());
  }

  void OnBadValue(int64_t position, float value) const override {
    const std::string range = "0 to " + std::to_string(problem_.rows - 1);
    throw BadItem(0, position / (problem_.indices / items_),
                  "\"" + bottom_ + "\" holds " + FormatNumber(value, "%.9g") + ", but the table has rows " + range +
                      "; give whole numbers in that range, or raise input_dim");
  }

  void Backward(const LayerRun& run) override {
    const float* gradient = run.top_grads[0].f32();
    if (run.param_grads[0].defined()) {
      run.ops->EmbedBackward(problem_, run.bottoms[0].f32(), gradient, run.param_grads[0].f32(), run.workspace);
    }
    if (bias_ && run.param_grads[1].defined()) {
      run.ops->SumToBias({problem_.indices, problem_.width, 1}, gradient, run.param_grads[1].f32());
    }
  }

 private:
  static void Check(const LayerSetup& setup, const std::string& field, bool given, int64_t value,
                    const std::string& meaning) {
    if (value >= 1) return;
    setup.Fail(given ? "embed_param." + field : "embed_param", field + " must be at least 1; it is " + meaning);
  }

  EmbedProblem problem_;
  int64_t items_ = 1;  // of the batch
  bool bias_ = true;
  std::string bottom_;  // its name, for messages
};

}  // namespace

REGISTER_LAYER(Embed, EmbedLayer, "embed_param");

}  // namespace crema
