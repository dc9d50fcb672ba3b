#include "ops/detection/object_rows.h"

namespace crema {

int64_t FindBadObject(const ObjectRows& objects, const float* values) {
  constexpr int64_t kNumbers = ObjectRows::kNumbers;
  for (int64_t i = 0; i < objects.rows * kNumbers; ++i) {
    if (!object_rows::IsBad(objects, values + i / kNumbers * kNumbers, i % kNumbers)) continue;
    return object_rows::BadPosition(objects, values, i);
  }
  return -1;
}

}  // namespace crema
