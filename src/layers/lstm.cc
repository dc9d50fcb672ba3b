// LSTM over sequences: bottoms x (T x N x ...), continuation (T x N) and optionally a static input (N x ...); top T x N
// x num_output. Blobs: input weights [4 num_output, inputs], bias [4 num_output], with a static input its weights [4
// num_output, static inputs], hidden weights [4 num_output, num_output]; rows are the gates i, f, o, g.
// The state goes on from pass to pass, except where the continuation is 0; gradients stop at the first step. With
// expose_hidden h_0 and c_0 (1 x N x num_output) are further bottoms, and h_T and c_T further tops; gradients flow
// through them.
#include <algorithm>
#include <vector>

#include "crema/layer.h"
#include "graph/filler.h"
#include "ops/operations.h"

namespace crema {

namespace {

class LstmLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    const RecurrentParameter& param = setup.param().recurrent_param();
    exposed_ = param.expose_hidden();
    const int least = exposed_ ? 4 : 2;
    setup.ExpectBottoms(least, least + 1);
    setup.ExpectTops(exposed_ ? 3 : 1);
    const bool has_static = setup.bottoms() == least + 1;
    first_state_ = has_static ? 3 : 2;
    if (param.num_output() < 1) {
      setup.Fail(param.has_num_output() ? "recurrent_param.num_output" : "recurrent_param",
                 "num_output must be at least 1; it is the size of the hidden state");
    }
    problem_ = {};
    problem_.hidden = param.num_output();
    ReadShapes(setup, has_static);

    const Shape state{1, problem_.batch, problem_.hidden};
    setup.SetTop(0, {problem_.steps, problem_.batch, problem_.hidden});
    for (int i = 1; i < setup.tops(); ++i) setup.SetTop(i, state);
    for (int i = first_state_; i < setup.bottoms(); ++i) {
      if (setup.bottom_shape(i) == state) continue;
      setup.Fail("bottom", "takes \"" + setup.param().bottom(i) + "\" for the " +
                               (i == first_state_ ? "hidden state" : "cell") + " before the first step, which is " +
                               state.ToString() + ", but it is " + setup.bottom_shape(i).ToString());
    }
    setup.NoGradient(1);
    AddWeights(setup, problem_.inputs);
    AddParam(setup, "bias_filler", {problem_.gates()}, param.bias_filler());
    if (has_static) AddWeights(setup, problem_.static_inputs);
    AddWeights(setup, problem_.hidden);
    setup.SetFlops(2.0 * static_cast<double>(problem_.rows() * problem_.gates()) *
                       static_cast<double>(problem_.inputs + problem_.hidden) +
                   2.0 * static_cast<double>(problem_.batch * problem_.gates() * problem_.static_inputs));
  }

  void Plan(LayerPlan& plan) override {
    const int64_t gates = problem_.rows() * problem_.gates(), states = problem_.rows() * problem_.hidden;
    Operations& ops = OperationsOf(*plan.context().device);
    problem_.factors = plan.factors();
    const int64_t forward = forward_workspace_ = ops.LstmForwardWorkspace(problem_);
    if (plan.backward()) {
      plan.BackwardReadsBottom(1);
      if (plan.param_grad(0)) plan.BackwardReadsBottom(0);
      if (has_static() && plan.param_grad(2)) plan.BackwardReadsBottom(2);
      if (exposed_) plan.BackwardReadsBottom(first_state_ + 1);
      for (const int64_t count : {gates, states, states}) plan.Save({{count}, DType::kF32});
      plan.Workspace(forward * sizeof(float), ops.LstmBackwardWorkspace(problem_) * sizeof(float));
    } else {
      plan.Workspace((forward + gates + 2 * states) * sizeof(float), 0);
    }
    state_count_ = problem_.batch * problem_.hidden;
    if (!exposed_) {
      initial_ = State(ops, *plan.context().device, state_count_);
      final_ = State(ops, *plan.context().device, state_count_);
    }
  }

  void Forward(const LayerRun& run) override {
    // A pass that is repeated begins where it began before.
    const size_t bytes = static_cast<size_t>(state_count_) * sizeof(float);
    if (!exposed_ && !run.replay) run.ops->Copy(final_.hidden(), initial_.hidden(), 2 * bytes);
    const LstmTape tape = TapeOf(run);
    run.ops->LstmForward(problem_, InputsOf(run), ParametersOf(run), tape, run.tops[0].f32(),
                         reinterpret_cast<float*>(run.workspace));
    const int64_t last = (problem_.steps - 1) * state_count_;
    run.ops->Copy(run.tops[0].f32() + last, exposed_ ? run.tops[1].f32() : final_.hidden(), bytes);
    run.ops->Copy(tape.cells + last, exposed_ ? run.tops[2].f32() : final_.cell(), bytes);
  }

  void Backward(const LayerRun& run) override {
    LstmOutputGradients of_output = {run.top_grads[0].f32(), nullptr, nullptr};
    LstmGradients gradients;
    gradients.input = run.bottom_grads[0].f32();
    if (has_static()) gradients.static_input = run.bottom_grads[2].f32();
    if (exposed_) {
      of_output.final_hidden = run.top_grads[1].f32();
      of_output.final_cell = run.top_grads[2].f32();
      gradients.initial_hidden = run.bottom_grads[first_state_].f32();
      gradients.initial_cell = run.bottom_grads[first_state_ + 1].f32();
    }
    gradients.input_weights = run.param_grads[0].f32();
    gradients.bias = run.param_grads[1].f32();
    if (has_static()) gradients.static_weights = run.param_grads[2].f32();
    gradients.hidden_weights = run.param_grads.back().f32();
    run.ops->LstmBackward(problem_, InputsOf(run), ParametersOf(run), TapeOf(run), of_output, gradients,
                          reinterpret_cast<float*>(run.workspace));
  }

  Tensor recurrent_state() const override { return exposed_ ? Tensor() : final_.values(); }

 private:
  // Zeros at first. Lies in the device's memory.
  class State {
   public:
    State() = default;
    State(Operations& ops, Device& device, int64_t count)
        : count_(count), memory_(device, 2 * static_cast<size_t>(count) * sizeof(float)) {
      ops.Fill(0, values());
    }
    Tensor values() const { return Tensor(memory_.data(), {Shape{2 * count_}, DType::kF32}); }
    float* hidden() const { return reinterpret_cast<float*>(memory_.data()); }
    float* cell() const { return hidden() + count_; }

   private:
    int64_t count_ = 0;
    Buffer memory_;
  };

  bool has_static() const { return first_state_ == 3; }

  void ReadShapes(const LayerSetup& setup, bool has_static) {
    const Shape &input = setup.bottom_shape(0), &continuation = setup.bottom_shape(1);
    const auto describe = [&](int i) {
      return "\"" + setup.param().bottom(i) + "\" (" + setup.bottom_shape(i).ToString() + ")";
    };
    if (input.axes() < 2 || input.count() == 0) {
      setup.Fail("bottom", describe(0) + " is no sequence; give steps x sequences x inputs, at least 1 of each");
    }
    problem_.steps = input[0];
    problem_.batch = input[1];
    problem_.inputs = input.count(2);
    if (continuation != Shape{problem_.steps, problem_.batch}) {
      setup.Fail("bottom", describe(1) + " should say for each step of each sequence of " + describe(0) +
                               " whether it goes on, so it must be " +
                               Shape{problem_.steps, problem_.batch}.ToString() +
                               ": 0 where a sequence begins, else 1");
    }
    if (!has_static) return;
    const Shape& fixed = setup.bottom_shape(2);
    if (fixed.axes() < 1 || fixed[0] != problem_.batch || fixed.count() == 0) {
      setup.Fail("bottom", describe(2) + " is the input that stays the same, one for each of the " +
                               std::to_string(problem_.batch) + " sequences of " + describe(0) +
                               ", so its first extent must be " + std::to_string(problem_.batch));
    }
    problem_.static_inputs = fixed.count(1);
  }

  static void AddParam(LayerSetup& setup, const std::string& field, const Shape& shape, const FillerParameter& filler) {
    const std::string problem = CheckFiller(filler, shape);
    if (!problem.empty()) setup.Fail("recurrent_param." + field, problem);
    setup.AddParam({shape, filler});
  }

  void AddWeights(LayerSetup& setup, int64_t inputs) const {
    AddParam(setup, "weight_filler", {problem_.gates(), inputs}, setup.param().recurrent_param().weight_filler());
  }

  LstmInputs InputsOf(const LayerRun& run) const {
    LstmInputs inputs;
    inputs.input = run.bottoms[0].f32();
    inputs.continuation = run.bottoms[1].f32();
    if (has_static()) inputs.static_input = run.bottoms[2].f32();
    inputs.initial_hidden = exposed_ ? run.bottoms[first_state_].f32() : initial_.hidden();
    inputs.initial_cell = exposed_ ? run.bottoms[first_state_ + 1].f32() : initial_.cell();
    return inputs;
  }

  LstmParameters ParametersOf(const LayerRun& run) const {
    return {run.params[0].f32(), run.params[1].f32(), has_static() ? run.params[2].f32() : nullptr,
            run.params.back().f32()};
  }

  LstmTape TapeOf(const LayerRun& run) const {
    if (!run.saved.empty()) return {run.saved[0].f32(), run.saved[1].f32(), run.saved[2].f32()};
    float* gates = reinterpret_cast<float*>(run.workspace) + forward_workspace_;
    float* cells = gates + problem_.rows() * problem_.gates();
    return {gates, cells, cells + problem_.rows() * problem_.hidden};
  }

  LstmProblem problem_;
  bool exposed_ = false;
  int first_state_ = 2;  // the bottom that is h_0 where it is exposed
  int64_t state_count_ = 0;
  int64_t forward_workspace_ = 0;  // floats
  State initial_, final_;          // before and after the latest pass, where they are not exposed
};

}  // namespace

REGISTER_LAYER(LSTM, LstmLayer, "recurrent_param");

}  // namespace crema
