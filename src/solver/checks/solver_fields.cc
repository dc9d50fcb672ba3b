#include "solver/checks/solver_fields.h"

#include <algorithm>
#include <limits>

#include "base/listed.h"
#include "base/number_range.h"
#include "base/number_text.h"
#include "base/suggest.h"

namespace crema {

bool SolverFields::Has(const std::string& field) const {
  const auto* descriptor = SolverParameter::descriptor()->FindFieldByName(field);
  const auto* reflection = file_.solver.GetReflection();
  return descriptor->is_repeated() ? reflection->FieldSize(file_.solver, descriptor) > 0
                                   : reflection->HasField(file_.solver, descriptor);
}

void SolverFields::Error(std::string_view field, std::string message) {
  diagnostics_.Error(At(field), std::move(message));
}

void SolverFields::Warn(std::string_view field, std::string message) {
  diagnostics_.Warning(At(field), std::move(message));
}

void SolverFields::Range(const std::string& field, double value, double low, double high, const std::string& hint) {
  const NumberRange range = {.low = low, .high = high, .below_high = true};
  if (range.Holds(value)) return;
  Error(field, field + " is " + FormatNumber(value) + " but must be " + range.Rule(value) + hint);
}

void SolverFields::NotNegative(const std::string& field, double value, const std::string& hint) {
  Range(field, value, 0, std::numeric_limits<double>::infinity(), hint);
}

void SolverFields::Word(const std::string& field, const std::string& word, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), word) != words.end()) return;
  Error(field, "unknown " + field + " \"" + word + "\"" + DidYouMean(word, words) + "; it may be " +
                   Listed(words, {.most = kAllNames}));
}

}  // namespace crema
