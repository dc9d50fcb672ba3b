// CtcDecoder: the labels of the most probable path (ops/sequences/label_sequences.h). Bottom: scores T x N x C. Top: N
// x T labels, those behind the last one -1.
#include "crema/layer.h"
#include "layers/label_sequences.h"
#include "ops/operations.h"

namespace crema {

namespace {

class CtcDecoderLayer : public Layer {
 public:
  void Setup(LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    const int32_t blank = setup.param().ctc_decoder_param().blank_label();
    CheckSequenceScores(setup, "ctc_decoder_param", blank, "T x N x C");
    const Shape& scores = setup.bottom_shape(0);
    scores_ = {scores[0], scores[1], scores[2], blank, false};
    setup.MakeNonDifferentiable();
    setup.SetTop(0, {scores_.batch, scores_.steps});
  }

  void Forward(const LayerRun& run) override {
    run.ops->DecodeSequences(scores_, run.bottoms[0].f32(), run.tops[0].f32());
  }

 private:
  SequenceScores scores_;
};

}  // namespace

REGISTER_LAYER(CtcDecoder, CtcDecoderLayer, "ctc_decoder_param");

}  // namespace crema
