#include "layers/recurrent.h"

#include "graph/filler.h"
#include "layers/field_range.h"
#include "ops/operations.h"

namespace crema {

RecurrentLayer::States::States(Device& device, int64_t states, int64_t count)
    : states_(states), count_(count), memory_(device, static_cast<size_t>(states * count) * sizeof(float)) {
  OperationsOf(device).Fill(0, values());
}

void RecurrentLayer::AddWeights(LayerSetup& setup, int64_t rows, int64_t inputs) {
  AddFilledParam(setup, "recurrent_param.weight_filler", {rows, inputs},
                 setup.param().recurrent_param().weight_filler());
}

void RecurrentLayer::AddBias(LayerSetup& setup, int64_t rows) {
  AddFilledParam(setup, "recurrent_param.bias_filler", {rows}, setup.param().recurrent_param().bias_filler());
}

void RecurrentLayer::SetupRecurrence(LayerSetup& setup, int64_t sums, RecurrentProblem* problem) {
  const RecurrentParameter& param = setup.param().recurrent_param();
  const int states = static_cast<int>(states_.size());
  exposed_ = param.expose_hidden();
  const int least = exposed_ ? 2 + states : 2;
  setup.ExpectBottoms(least, least + 1);
  setup.ExpectTops(exposed_ ? 1 + states : 1);
  static_ = setup.bottoms() == least + 1;
  if (param.num_output() < 1) {
    setup.Fail(param.has_num_output() ? "recurrent_param.num_output" : "recurrent_param",
               "num_output must be at least 1; it is the size of the hidden state");
  }
  problem->hidden = param.num_output();
  CheckShapes(setup, problem);

  const Shape state{1, problem->batch, problem->hidden};
  setup.SetTop(0, {problem->steps, problem->batch, problem->hidden});
  for (int i = 1; i < setup.tops(); ++i) setup.SetTop(i, state);
  for (int i = state_bottom(0); i < setup.bottoms(); ++i) {
    if (setup.bottom_shape(i) == state) continue;
    setup.Fail("bottom", "takes \"" + setup.param().bottom(i) + "\" for the " + states_[i - state_bottom(0)] +
                             " before the first step, which is " + state.ToString() + ", but it is " +
                             setup.bottom_shape(i).ToString());
  }
  setup.NoGradient(1);
  const int64_t rows = sums * problem->hidden;
  AddWeights(setup, rows, problem->inputs);
  AddBias(setup, rows);
  if (static_) AddWeights(setup, rows, problem->static_inputs);
  AddWeights(setup, rows, problem->hidden);
  state_count_ = problem->batch * problem->hidden;
}

void RecurrentLayer::SetupRows(LayerSetup& setup, int64_t sums, RecurrentProblem* problem) {
  const LSTMParameter& param = setup.param().lstm_param();
  const Shape& input = setup.bottom_shape(0);
  rows_ = true;
  setup.ExpectBottoms(1, 2);
  setup.ExpectTops(1);
  has_continuation_ = setup.bottoms() == 2;
  if (param.num_output() < 1) {
    setup.Fail(param.has_num_output() ? "lstm_param.num_output" : "lstm_param",
               "num_output must be at least 1; it is the size of the hidden state");
  }
  problem->batch = ReadInRange(setup, "lstm_param.batch_size", param.batch_size(), {.low = 1});
  problem->hidden = param.num_output();
  if (input.axes() < 1 || input.count() == 0 || input[0] % problem->batch != 0) {
    setup.Fail("bottom", setup.DescribeBottom(0) + " is no sequence; its first extent counts steps of " +
                             std::to_string(problem->batch) +
                             " sequences (lstm_param.batch_size), of which it must be a multiple");
  }
  problem->steps = input[0] / problem->batch;
  problem->inputs = input.count(1);
  if (has_continuation_) {
    if (setup.bottom_shape(1).count() != input[0]) {
      setup.Fail("bottom", setup.DescribeBottom(1) + " should say for each row of " + setup.DescribeBottom(0) +
                               " whether its sequence goes on: 0 where one begins, else 1");
    }
    setup.NoGradient(1);
  }
  setup.SetTop(0, {input[0], problem->hidden});
  const int64_t rows = sums * problem->hidden;
  AddFilledParam(setup, "lstm_param.weight_filler", {rows, problem->inputs}, param.weight_filler());
  AddFilledParam(setup, "lstm_param.weight_filler", {rows, problem->hidden}, param.weight_filler());
  AddFilledParam(setup, "lstm_param.bias_filler", {rows}, param.bias_filler());
  steps_ = problem->steps;
  batch_ = problem->batch;
  state_count_ = problem->batch * problem->hidden;
}

void RecurrentLayer::CheckShapes(const LayerSetup& setup, RecurrentProblem* problem) const {
  const Shape &input = setup.bottom_shape(0), &continuation = setup.bottom_shape(1);
  if (input.axes() < 2 || input.count() == 0) {
    setup.Fail("bottom",
               setup.DescribeBottom(0) + " is no sequence; give steps x sequences x inputs, at least 1 of each");
  }
  problem->steps = input[0];
  problem->batch = input[1];
  problem->inputs = input.count(2);
  if (continuation != Shape{problem->steps, problem->batch}) {
    setup.Fail("bottom", setup.DescribeBottom(1) + " should say for each step of each sequence of " +
                             setup.DescribeBottom(0) + " whether it goes on, so it must be " +
                             Shape{problem->steps, problem->batch}.ToString() + ": 0 where a sequence begins, else 1");
  }
  if (!static_) return;
  const Shape& fixed = setup.bottom_shape(2);
  if (fixed.axes() < 1 || fixed[0] != problem->batch || fixed.count() == 0) {
    setup.Fail("bottom", setup.DescribeBottom(2) + " is the input that stays the same, one for each of the " +
                             std::to_string(problem->batch) + " sequences of " + setup.DescribeBottom(0) +
                             ", so its first extent must be " + std::to_string(problem->batch));
  }
  problem->static_inputs = fixed.count(1);
}

void RecurrentLayer::PlanRecurrence(LayerPlan& plan) {
  PlanContinuation(plan);
  if (plan.backward()) {
    if (has_continuation_) plan.BackwardReadsBottom(1);
    if (plan.param_grad(0)) plan.BackwardReadsBottom(0);
    if (static_ && plan.param_grad(2)) plan.BackwardReadsBottom(2);
  }
  if (exposed_) return;
  const auto states = static_cast<int64_t>(states_.size());
  initial_ = States(*plan.context().device, states, state_count_);
  final_ = States(*plan.context().device, states, state_count_);
}

void RecurrentLayer::PlanContinuation(const LayerPlan& plan) {
  if (has_continuation_) return;
  std::vector<float> goes_on(static_cast<size_t>(steps_ * batch_), 1.0f);
  std::fill_n(goes_on.begin(), batch_, 0.0f);
  continuation_.Upload(*plan.context().device, goes_on);
}

void RecurrentLayer::BeginForward(const LayerRun& run) const {
  if (!keeps_state() || run.replay) return;
  run.ops->Copy(final_.state(0), initial_.state(0), initial_.values().bytes());
}

void RecurrentLayer::KeepState(const LayerRun& run, int state, const float* after_last_step) const {
  if (!has_continuation_) return;
  run.ops->Copy(after_last_step, exposed_ ? run.tops[1 + state].f32() : final_.state(state),
                static_cast<size_t>(state_count_) * sizeof(float));
}

RecurrentInputs RecurrentLayer::InputsOf(const LayerRun& run) const {
  const auto initial = [&](int state) -> const float* {
    if (state >= static_cast<int>(states_.size())) return nullptr;
    return exposed_ ? run.bottoms[state_bottom(state)].f32() : initial_.state(state);
  };
  RecurrentInputs inputs;
  inputs.input = run.bottoms[0].f32();
  inputs.continuation = has_continuation_ ? run.bottoms[1].f32() : continuation_.data();
  if (static_) inputs.static_input = run.bottoms[2].f32();
  inputs.initial_hidden = initial(0);
  inputs.initial_cell = initial(1);
  return inputs;
}

RecurrentParameters RecurrentLayer::ParametersOf(const LayerRun& run) const {
  return {run.params[0].f32(), run.params[bias()].f32(), static_ ? run.params[2].f32() : nullptr,
          run.params[hidden_weights()].f32()};
}

RecurrentGradients RecurrentLayer::GradientsOf(const LayerRun& run) const {
  RecurrentGradients gradients;
  gradients.input = run.bottom_grads[0].f32();
  if (static_) gradients.static_input = run.bottom_grads[2].f32();
  if (exposed_) {
    gradients.initial_hidden = run.bottom_grads[state_bottom(0)].f32();
    if (states_.size() > 1) gradients.initial_cell = run.bottom_grads[state_bottom(1)].f32();
  }
  gradients.input_weights = run.param_grads[0].f32();
  gradients.bias = run.param_grads[bias()].f32();
  if (static_) gradients.static_weights = run.param_grads[2].f32();
  gradients.hidden_weights = run.param_grads[hidden_weights()].f32();
  return gradients;
}

}  // namespace crema
