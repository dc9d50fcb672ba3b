#include "layers/label_sequences.h"

namespace crema {

void CheckSequenceScores(LayerSetup& setup, const std::string& block, int32_t blank, const std::string& what) {
  const Shape& scores = setup.bottom_shape(0);
  if (scores.axes() != 3 || scores.count() == 0) {
    setup.Fail("bottom", "takes scores of three axes, " + what + ", but " + setup.DescribeBottom(0) + " has " +
                             std::to_string(scores.axes()) + "; bring them there with Permute or Reshape");
  }
  const std::string field = block + ".blank_label";
  if (blank < 0 || blank >= scores[2]) {
    setup.Fail(field, "blank_label " + std::to_string(blank) + " is outside the " + std::to_string(scores[2]) +
                          " classes (0 to " + std::to_string(scores[2] - 1) + ") of \"" + setup.param().bottom(0) +
                          "\"");
  }
  setup.SetBlank({field, scores[2], blank});
}

int64_t LongestSequence(const LayerSetup& setup, int64_t batch) {
  const Shape& labels = setup.bottom_shape(1);
  if (labels.axes() > 0 && labels[0] == batch && labels.count() > 0) return labels.count(1);
  setup.Fail("bottom", setup.DescribeBottom(0) + " holds " + std::to_string(batch) +
                           " sequences, which take as many rows of labels, N x L, but is given " +
                           setup.DescribeBottom(1) + "; bring one of them to the other's axes with Permute or Reshape");
}

}  // namespace crema
