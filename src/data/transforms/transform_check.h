// Mistakes in transform_param that show without an image.
#ifndef CREMA_DATA_TRANSFORMS_TRANSFORM_CHECK_H_
#define CREMA_DATA_TRANSFORMS_TRANSFORM_CHECK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/number_range.h"
#include "crema/data.pb.h"

namespace crema {

constexpr uint32_t kMostPixels = 1 << 15;  // of a side

struct TransformMistake {
  std::string field;    // below transform_param: "random_resized_crop.min_area"
  std::string message;  // with the remedy
};

// One where the number is out of range; `hint` ends the message.
std::optional<TransformMistake> CheckRange(const std::string& field, double value, const NumberRange& range,
                                           std::string_view hint = {});
// The first field that is out of range, is not supported or contradicts another one.
std::optional<TransformMistake> FindMistake(const TransformationParameter& param);
// The same of SSD's fields: resize_param, distort_param, expand_param, emit_constraint and noise_param.
std::optional<TransformMistake> FindMistakeOfSsd(const TransformationParameter& param);
// Fields that do nothing as they stand, each with what it would take.
std::vector<TransformMistake> FieldsWithoutEffect(const TransformationParameter& param);
// A field that makes sizes random (RandomResize); empty where none does.
std::string RandomSizeField(const TransformationParameter& param);

}  // namespace crema

#endif  // CREMA_DATA_TRANSFORMS_TRANSFORM_CHECK_H_
