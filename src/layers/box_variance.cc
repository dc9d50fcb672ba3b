#include "layers/box_variance.h"

#include "layers/field_range.h"

namespace crema {

BoxVariance VarianceOf(const LayerSetup& setup, const std::string& field,
                       const google::protobuf::RepeatedField<float>& values, float usual) {
  constexpr int kNumbers = 4;
  if (values.size() > 1 && values.size() != kNumbers) {
    setup.Fail(field, "variance is given " + std::to_string(values.size()) +
                          " times; give one for all four numbers of a box, or four");
  }
  for (const float variance : values) ReadInRange(setup, field, variance, kPositive, "0.1 and 0.2 are usual");
  BoxVariance made;
  for (int i = 0; i < kNumbers; ++i) {
    made.values[i] = values.empty() ? usual : values.Get(values.size() == 1 ? 0 : i);
  }
  return made;
}

}  // namespace crema
