// The numbers of a SpatialTransformer's map that the file gives.
#ifndef CREMA_LAYERS_GIVEN_NUMBERS_H_
#define CREMA_LAYERS_GIVEN_NUMBERS_H_

#include <array>
#include <optional>

#include "crema/net.pb.h"

namespace crema {

// In the map's order, row by row.
inline std::array<std::optional<float>, 6> GivenNumbersOf(const SpatialTransformerParameter& param) {
  const auto given = [](bool has, float value) { return has ? std::optional(value) : std::nullopt; };
  return {given(param.has_theta_1_1(), param.theta_1_1()), given(param.has_theta_1_2(), param.theta_1_2()),
          given(param.has_theta_1_3(), param.theta_1_3()), given(param.has_theta_2_1(), param.theta_2_1()),
          given(param.has_theta_2_2(), param.theta_2_2()), given(param.has_theta_2_3(), param.theta_2_3())};
}

}  // namespace crema

#endif  // CREMA_LAYERS_GIVEN_NUMBERS_H_
