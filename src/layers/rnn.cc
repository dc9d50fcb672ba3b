// RNN over sequences: bottoms and tops as in layers/recurrent.h, with the state h. Blobs: input weights [num_output,
// inputs], bias [num_output], with a static input its weights [num_output, static inputs], hidden weights [num_output,
// num_output], output weights [num_output, num_output], output bias [num_output].
#include "layers/recurrent.h"
#include "ops/operations.h"

namespace crema {

namespace {

class RnnLayer : public RecurrentLayer {
 public:
  RnnLayer() : RecurrentLayer({"hidden state"}) {}

  void Setup(LayerSetup& setup) override {
    problem_ = {};
    SetupRecurrence(setup, 1, &problem_);
    AddWeights(setup, problem_.hidden, problem_.hidden);
    AddBias(setup, problem_.hidden);
    setup.SetFlops(2.0 * static_cast<double>(problem_.rows() * problem_.hidden) *
                       static_cast<double>(problem_.inputs + 2 * problem_.hidden) +
                   2.0 * static_cast<double>(problem_.batch * problem_.hidden * problem_.static_inputs));
  }

  void Plan(LayerPlan& plan) override {
    const int64_t states = problem_.rows() * problem_.hidden;
    Operations& ops = OperationsOf(*plan.context().device);
    problem_.factors = plan.factors();
    const int64_t forward = forward_workspace_ = ops.RnnForwardWorkspace(problem_);
    PlanRecurrence(plan);
    if (plan.backward()) {
      plan.BackwardReadsTop(0);
      for (int i = 0; i < 2; ++i) plan.Save({{states}, DType::kF32});
      plan.Workspace(forward * sizeof(float), ops.RnnBackwardWorkspace(problem_) * sizeof(float));
    } else {
      plan.Workspace((forward + 2 * states) * sizeof(float), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    BeginForward(run);
    const RnnTape tape = TapeOf(run);
    const RnnParameters parameters = {ParametersOf(run), run.params[hidden_weights() + 1].f32(),
                                      run.params[hidden_weights() + 2].f32()};
    run.ops->RnnForward(problem_, InputsOf(run), parameters, tape, run.tops[0].f32(),
                        reinterpret_cast<float*>(run.workspace));
    KeepState(run, 0, tape.hidden + (problem_.steps - 1) * problem_.batch * problem_.hidden);
  }

  void Backward(const LayerRun& run) override {
    const RnnParameters parameters = {ParametersOf(run), run.params[hidden_weights() + 1].f32(),
                                      run.params[hidden_weights() + 2].f32()};
    const RnnGradients gradients = {GradientsOf(run), run.param_grads[hidden_weights() + 1].f32(),
                                    run.param_grads[hidden_weights() + 2].f32()};
    const RnnOutput output = {run.tops[0].f32(), run.top_grads[0].f32(), exposed() ? run.top_grads[1].f32() : nullptr};
    run.ops->RnnBackward(problem_, InputsOf(run), parameters, TapeOf(run), output, gradients,
                         reinterpret_cast<float*>(run.workspace));
  }

 private:
  RnnTape TapeOf(const LayerRun& run) const {
    if (!run.saved.empty()) return {run.saved[0].f32(), run.saved[1].f32()};
    float* hidden = reinterpret_cast<float*>(run.workspace) + forward_workspace_;
    return {hidden, hidden + problem_.rows() * problem_.hidden};
  }

  RnnProblem problem_;
  int64_t forward_workspace_ = 0;  // floats
};

}  // namespace

REGISTER_LAYER(RNN, RnnLayer, "recurrent_param");

}  // namespace crema
