// GRU over sequences: bottoms and tops as in layers/recurrent.h, with the state h. Blobs: input weights [3 num_output,
// inputs], bias [3 num_output], with a static input its weights [3 num_output, static inputs], hidden weights [3
// num_output, num_output], bias of the candidate's hidden part [num_output]; rows are the gates r, z and the candidate
// n.
#include "layers/recurrent.h"
#include "ops/operations.h"

namespace crema {

namespace {

class GruLayer : public RecurrentLayer {
 public:
  GruLayer() : RecurrentLayer({"hidden state"}) {}

  void Setup(LayerSetup& setup) override {
    problem_ = {};
    SetupRecurrence(setup, 3, &problem_);
    AddBias(setup, problem_.hidden);
    setup.SetFlops(2.0 * static_cast<double>(problem_.rows() * problem_.gates()) *
                       static_cast<double>(problem_.inputs + problem_.hidden) +
                   2.0 * static_cast<double>(problem_.batch * problem_.gates() * problem_.static_inputs));
  }

  void Plan(LayerPlan& plan) override {
    const int64_t gates = problem_.rows() * problem_.gates(), states = problem_.rows() * problem_.hidden;
    Operations& ops = OperationsOf(*plan.context().device);
    problem_.factors = plan.factors();
    const int64_t forward = forward_workspace_ = ops.GruForwardWorkspace(problem_);
    PlanRecurrence(plan);
    if (plan.backward()) {
      for (const int64_t count : {gates, states, states}) plan.Save({{count}, DType::kF32});
      plan.Workspace(forward * sizeof(float), ops.GruBackwardWorkspace(problem_) * sizeof(float));
    } else {
      plan.Workspace((forward + gates + 2 * states) * sizeof(float), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    BeginForward(run);
    run.ops->GruForward(problem_, InputsOf(run), GruParametersOf(run), TapeOf(run), run.tops[0].f32(),
                        reinterpret_cast<float*>(run.workspace));
    KeepState(run, 0, run.tops[0].f32() + (problem_.steps - 1) * problem_.batch * problem_.hidden);
  }

  void Backward(const LayerRun& run) override {
    const GruOutputGradients of_output = {run.top_grads[0].f32(), exposed() ? run.top_grads[1].f32() : nullptr};
    const GruGradients gradients = {GradientsOf(run), run.param_grads[hidden_bias()].f32()};
    run.ops->GruBackward(problem_, InputsOf(run), GruParametersOf(run), TapeOf(run), of_output, gradients,
                         reinterpret_cast<float*>(run.workspace));
  }

 private:
  int hidden_bias() const { return hidden_weights() + 1; }

  GruParameters GruParametersOf(const LayerRun& run) const {
    return {ParametersOf(run), run.params[hidden_bias()].f32()};
  }

  GruTape TapeOf(const LayerRun& run) const {
    if (!run.saved.empty()) return {run.saved[0].f32(), run.saved[1].f32(), run.saved[2].f32()};
    float* gates = reinterpret_cast<float*>(run.workspace) + forward_workspace_;
    float* of_state = gates + problem_.rows() * problem_.gates();
    return {gates, of_state, of_state + problem_.rows() * problem_.hidden};
  }

  GruProblem problem_;
  int64_t forward_workspace_ = 0;  // floats
};

}  // namespace

REGISTER_LAYER(GRU, GruLayer, "recurrent_param");

}  // namespace crema
