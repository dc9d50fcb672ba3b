// Numbers that fields of a layer give.
#ifndef CREMA_LAYERS_FIELD_RANGE_H_
#define CREMA_LAYERS_FIELD_RANGE_H_

#include <string_view>

#include "base/number_range.h"
#include "crema/layer.h"

namespace crema {

// The value of `field`, "mixup_param.alpha", or fails there where it is out of range. `hint` ends the message.
template <typename Number>
Number ReadInRange(const LayerSetup& setup, std::string_view field, Number value, const NumberRange& range,
                   std::string_view hint = {}) {
  const auto number = static_cast<double>(value);
  if (!range.Holds(number)) setup.Fail(field, range.Complaint(field, number, hint));
  return value;
}

}  // namespace crema

#endif  // CREMA_LAYERS_FIELD_RANGE_H_
