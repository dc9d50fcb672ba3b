// LSTM over sequences: bottoms and tops as in layers/recurrent.h, with states h and c. Blobs: input weights [4
// num_output, inputs], bias [4 num_output], with a static input its weights [4 num_output, static inputs], hidden
// weights [4 num_output, num_output]; rows are the gates i, f, o, g.

#include "layers/field_range.h"
#include "layers/recurrent.h"
#include "ops/operations.h"

namespace crema {

namespace {

class LstmLayer : public RecurrentLayer {
 public:
  LstmLayer() : RecurrentLayer({"hidden state", "cell"}) {}

  void Setup(LayerSetup& setup) override {
    problem_ = {};
    SetupRecurrence(setup, 4, &problem_);
    SetFlops(setup);
  }

  void Plan(LayerPlan& plan) override {
    const int64_t gates = problem_.rows() * problem_.gates(), states = problem_.rows() * problem_.hidden;
    Operations& ops = OperationsOf(*plan.context().device);
    problem_.factors = plan.factors();
    const int64_t forward = forward_workspace_ = ops.LstmForwardWorkspace(problem_);
    PlanRecurrence(plan);
    if (plan.backward()) {
      if (exposed()) plan.BackwardReadsBottom(state_bottom(1));
      for (const int64_t count : {gates, states, states}) plan.Save({{count}, DType::kF32});
      plan.Workspace(forward * sizeof(float), ops.LstmBackwardWorkspace(problem_) * sizeof(float));
    } else {
      plan.Workspace((forward + gates + 2 * states) * sizeof(float), 0);
    }
  }

  void Forward(const LayerRun& run) override {
    BeginForward(run);
    const LstmTape tape = TapeOf(run);
    run.ops->LstmForward(problem_, InputsOf(run), ParametersOf(run), tape, run.tops[0].f32(),
                         reinterpret_cast<float*>(run.workspace));
    const int64_t last = (problem_.steps - 1) * problem_.batch * problem_.hidden;
    KeepState(run, 0, run.tops[0].f32() + last);
    KeepState(run, 1, tape.cells + last);
  }

  void Backward(const LayerRun& run) override {
    LstmOutputGradients of_output = {run.top_grads[0].f32(), nullptr, nullptr};
    if (exposed()) {
      of_output.final_hidden = run.top_grads[1].f32();
      of_output.final_cell = run.top_grads[2].f32();
    }
    run.ops->LstmBackward(problem_, InputsOf(run), ParametersOf(run), TapeOf(run), of_output, GradientsOf(run),
                          reinterpret_cast<float*>(run.workspace));
  }

 protected:
  LstmProblem& problem() { return problem_; }
  void SetFlops(LayerSetup& setup) const {
    setup.SetFlops(2.0 * static_cast<double>(problem_.rows() * problem_.gates()) *
                       static_cast<double>(problem_.inputs + problem_.hidden) +
                   2.0 * static_cast<double>(problem_.batch * problem_.gates() * problem_.static_inputs));
  }

 private:
  LstmTape TapeOf(const LayerRun& run) const {
    if (!run.saved.empty()) return {run.saved[0].f32(), run.saved[1].f32(), run.saved[2].f32()};
    float* gates = reinterpret_cast<float*>(run.workspace) + forward_workspace_;
    float* cells = gates + problem_.rows() * problem_.gates();
    return {gates, cells, cells + problem_.rows() * problem_.hidden};
  }

  LstmProblem problem_;
  int64_t forward_workspace_ = 0;  // floats
};

// caffe-lstm's: see RecurrentLayer::SetupRows. Blobs: input weights, hidden weights, bias.
class LstmOfRowsLayer : public LstmLayer {
 public:
  void Setup(LayerSetup& setup) override {
    const float bound = setup.param().lstm_param().clipping_threshold();
    SetupRows(setup, 4, &problem());
    problem().bound = ReadInRange(setup, "lstm_param.clipping_threshold", bound, kNotNegative, "0 is for no bound");
    SetFlops(setup);
  }
};

}  // namespace

REGISTER_LAYER(LSTM, LstmLayer, "recurrent_param");
REGISTER_LAYER(Lstm, LstmOfRowsLayer, "lstm_param");

}  // namespace crema
