// LSTMUnit: a step of an LSTM, in nets that are unrolled by hand. Bottoms: the cell before the step, 1 x batch x n; the
// sums of the gates i, f, o and g, 1 x batch x 4 n, which other layers make of the input and of the hidden state; 0
// where a sequence begins and else 1, 1 x batch. Tops: cell and hidden state, as ops/sequences/lstm.h has them. No
// parameters.
#include <string>

#include "crema/layer.h"
#include "ops/operations.h"

namespace crema {

namespace {

class LstmUnitLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(3);
    setup.ExpectTops(2);
    const Shape& cell = setup.bottom_shape(0);
    if (cell.axes() != 3 || cell[0] != 1) {
      setup.Fail("bottom", "takes the cell before the step, 1 x batch x n, but " + setup.BottomIs(0));
    }
    problem_ = {cell[1], cell[2]};
    Expect(setup, 1, {1, problem_.rows, 4 * problem_.hidden}, "the sums of four gates");
    Expect(setup, 2, {1, problem_.rows}, "0 for each sequence that begins, else 1");
    setup.NoGradient(2);
    setup.SetTop(0, cell);
    setup.SetTop(1, cell);
  }

  void Plan(LayerPlan& plan) override {
    if (!plan.backward()) return;
    for (int i = 0; i < 3; ++i) plan.BackwardReadsBottom(i);
  }

  void Forward(const LayerRun& run) override {
    run.ops->LstmUnitForward(problem_, InputsOf(run), run.tops[0].f32(), run.tops[1].f32());
  }

  void Backward(const LayerRun& run) override {
    const auto gradient = [&](int i) { return run.bottom_grads[i].defined() ? run.bottom_grads[i].f32() : nullptr; };
    run.ops->LstmUnitBackward(problem_, InputsOf(run), run.top_grads[0].f32(), run.top_grads[1].f32(), gradient(0),
                              gradient(1));
  }

 private:
  static void Expect(const LayerSetup& setup, int i, const Shape& shape, const std::string& what) {
    if (setup.bottom_shape(i) == shape) return;
    setup.Fail("bottom", setup.BottomIs(0) + ", so that the bottom with " + what + " must be " + shape.ToString() +
                             ", but " + setup.BottomIs(i));
  }

  static LstmUnitInputs InputsOf(const LayerRun& run) {
    return {run.bottoms[0].f32(), run.bottoms[1].f32(), run.bottoms[2].f32()};
  }

  LstmUnitProblem problem_;
};

}  // namespace

REGISTER_LAYER(LSTMUnit, LstmUnitLayer);

}  // namespace crema
