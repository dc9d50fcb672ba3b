// Room for numbers in messages.
#ifndef CREMA_SCHEMA_BLOB_NUMBERS_H_
#define CREMA_SCHEMA_BLOB_NUMBERS_H_

#include <google/protobuf/repeated_field.h>

#include <cstdint>

namespace crema {

// `count` numbers, at most INT_MAX, in the place of those that the field has; they are to be written.
inline float* MakeNumbers(google::protobuf::RepeatedField<float>* field, int64_t count) {
  field->Clear();
  field->Reserve(static_cast<int>(count));
  return field->AddNAlreadyReserved(static_cast<int>(count));
}

}  // namespace crema

#endif  // CREMA_SCHEMA_BLOB_NUMBERS_H_
