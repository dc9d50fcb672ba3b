// Settings that take one value for all axes or one for each.
#ifndef CREMA_SCHEMA_AXIS_VALUES_H_
#define CREMA_SCHEMA_AXIS_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace crema {

// Writes values of a parameter in its shortest form: once where all are equal, nothing where they are `fallback`.
template <typename Repeated>
void SetAxisValues(const std::vector<int64_t>& values, int64_t fallback, Repeated* field) {
  bool equal = true, standard = true;
  for (const int64_t value : values) {
    equal &= value == values[0];
    standard &= value == fallback;
  }
  if (standard) return;
  for (size_t i = 0; i < (equal ? 1 : values.size()); ++i) field->Add(static_cast<uint32_t>(values[i]));
}

}  // namespace crema

#endif  // CREMA_SCHEMA_AXIS_VALUES_H_
