#include "solver/snapshots/state_check.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr uint64_t kMostRecords = uint64_t{1} << 53;  // doubles, which epochs are computed in, count so far

template <typename Values>
bool HasNan(const Values& values) {
  return std::any_of(values.begin(), values.end(), [](auto value) { return std::isnan(value); });
}

// The path of the first NaN, such as "best.value"; empty where there is none.
std::string PlaceOfNan(const Message& message) {
  if (const auto* blob = dynamic_cast<const BlobProto*>(&message)) {  // large, so not element by element
    if (HasNan(blob->data())) return "data";
    return HasNan(blob->double_data()) ? "double_data" : "";
  }
  const auto* reflection = message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string name(field->name());
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string place = field->is_repeated() ? name + "[" + std::to_string(i) + "]" : name;
      double value = 0;
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_FLOAT:
          value = field->is_repeated() ? reflection->GetRepeatedFloat(message, field, i)
                                       : reflection->GetFloat(message, field);
          break;
        case FieldDescriptor::CPPTYPE_DOUBLE:
          value = field->is_repeated() ? reflection->GetRepeatedDouble(message, field, i)
                                       : reflection->GetDouble(message, field);
          break;
        case FieldDescriptor::CPPTYPE_MESSAGE: {
          const std::string inside = PlaceOfNan(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                                                     : reflection->GetMessage(message, field));
          if (!inside.empty()) return place + "." + inside;
          break;
        }
        default:
          break;
      }
      if (std::isnan(value)) return place;
    }
  }
  return {};
}

}  // namespace

std::string DamageOf(const SolverState& state) {
  if (state.iter() < 0) return "its iteration is " + std::to_string(state.iter());
  if (state.current_step() < 0) return "its current_step is " + std::to_string(state.current_step());
  if (const std::string place = PlaceOfNan(state); !place.empty()) return "its " + place + " is no number (NaN)";
  const auto within = [&state](const char* name, int iteration) {
    if (iteration >= 0 && iteration <= state.iter()) return std::string();
    return "its " + std::string(name) + " is " + std::to_string(iteration) + ", but its iteration is " +
           std::to_string(state.iter());
  };
  for (const auto& [name, iteration] : {std::pair("best.iteration", state.best().iteration()),
                                        std::pair("best.lost_iteration", state.best().lost_iteration()),
                                        std::pair("iter_last_event", state.iter_last_event())}) {
    if (std::string damage = within(name, iteration); !damage.empty()) return damage;
  }
  if (state.has_loss_scale() && !(state.loss_scale() > 0 && std::isfinite(state.loss_scale()))) {
    return "its loss_scale is " + std::to_string(state.loss_scale());
  }
  for (const DataPosition& position : state.data_position()) {
    const std::string of = " of data layer \"" + position.layer() + "\"";
    for (const uint64_t count : {position.records(), position.epoch_records(), position.batch_size()}) {
      if (count > kMostRecords) return "its position" + of + " counts " + std::to_string(count) + " records";
    }
    if (position.records_before() > position.records() || !(position.epochs_before() >= 0)) {
      return "its position" + of + " counts earlier epochs wrongly";
    }
  }
  return {};
}

}  // namespace crema
