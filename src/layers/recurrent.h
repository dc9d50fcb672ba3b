// What the recurrent layers share: bottoms x (T x N x ...), continuation (T x N) and optionally a static input (N x
// ...); top T x N x num_output. The state goes on from pass to pass, except where the continuation is 0; gradients stop
// at the first step. With expose_hidden the states before the first step (1 x N x num_output each) are further bottoms,
// and those after the last one further tops; gradients flow through them.
#ifndef CREMA_LAYERS_RECURRENT_H_
#define CREMA_LAYERS_RECURRENT_H_

#include <string>
#include <utility>
#include <vector>

#include "crema/layer.h"
#include "device/device.h"
#include "ops/sequences/recurrent.h"

namespace crema {

class RecurrentLayer : public Layer {
 public:
  Tensor recurrent_state() const override { return keeps_state() ? final_.values() : Tensor(); }

 protected:
  // What each state is called in messages, the hidden state first.
  explicit RecurrentLayer(std::vector<std::string> states) : states_(std::move(states)) {}

  // Checks bottoms and fields, says the shapes of tops, and asks for input weights, bias, static weights (with a static
  // input) and hidden weights, of `sums` rows for each unit of the hidden state.
  void SetupRecurrence(LayerSetup& setup, int64_t sums, RecurrentProblem* problem);
  // The same of caffe-lstm's layer, whose rows of steps and sequences are one axis: bottoms x (T N x ...) and
  // optionally the continuation (T N), without which all sequences begin with the pass; top T N x num_output. Asks for
  // input weights, hidden weights and bias.
  void SetupRows(LayerSetup& setup, int64_t sums, RecurrentProblem* problem);
  static void AddWeights(LayerSetup& setup, int64_t rows, int64_t inputs);
  static void AddBias(LayerSetup& setup, int64_t rows);

  // The bottoms that the gradients of SetupRecurrence's parameters are made of, and memory for the states.
  void PlanRecurrence(LayerPlan& plan);

  // Before and after the forward pass. A pass that is repeated begins where it began before.
  void BeginForward(const LayerRun& run) const;
  void KeepState(const LayerRun& run, int state, const float* after_last_step) const;

  RecurrentInputs InputsOf(const LayerRun& run) const;
  RecurrentParameters ParametersOf(const LayerRun& run) const;
  RecurrentGradients GradientsOf(const LayerRun& run) const;

  bool exposed() const { return exposed_; }
  bool has_static() const { return static_; }
  // The bottom that is a state before the first step, where states are exposed.
  int state_bottom(int state) const { return (static_ ? 3 : 2) + state; }
  // Of the hidden weights; parameters of the layer's own come after them.
  int hidden_weights() const { return rows_ ? 1 : static_ ? 3 : 2; }

 private:
  // All states, in the device's memory; zeros at first.
  class States {
   public:
    States() = default;
    States(Device& device, int64_t states, int64_t count);
    Tensor values() const { return Tensor(memory_.data(), {Shape{states_ * count_}, DType::kF32}); }
    float* state(int64_t i) const { return reinterpret_cast<float*>(memory_.data()) + i * count_; }

   private:
    int64_t states_ = 0, count_ = 0;
    Buffer memory_;
  };

  void CheckShapes(const LayerSetup& setup, RecurrentProblem* problem) const;
  void PlanContinuation(const LayerPlan& plan);
  bool keeps_state() const { return !exposed_ && has_continuation_; }
  int bias() const { return rows_ ? 2 : 1; }

  std::vector<std::string> states_;
  bool exposed_ = false, static_ = false, rows_ = false, has_continuation_ = true;
  int64_t steps_ = 0, batch_ = 0, state_count_ = 0;
  DeviceTable<float> continuation_;  // where no bottom says it
  States initial_, final_;           // before and after the latest pass, where they are not exposed
};

}  // namespace crema

#endif  // CREMA_LAYERS_RECURRENT_H_
