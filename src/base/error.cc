#include "crema/error.h"

#include "base/printable.h"

namespace crema {

namespace {

std::string Join(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics) {
    if (!text.empty()) text += '\n';
    text += d.ToString();
  }
  return text;
}

}  // namespace

std::string Location::ToString() const {
  std::string text = file;
  if (line > 0) {
    if (!text.empty()) text += ':';
    text += std::to_string(line);
    if (column > 0) text += ':' + std::to_string(column);
  }
  return text;
}

std::string Diagnostic::ToString() const {
  std::string text = where.ToString();
  if (!text.empty()) text += ": ";
  text += severity == Severity::kNote ? "note: " : severity == Severity::kWarning ? "warning: " : "error: ";
  return Harmless(text + message);
}

UserError::UserError(std::string message) : UserError(Location{}, std::move(message)) {}

UserError::UserError(Location where, std::string message)
    : UserError({Diagnostic{Diagnostic::Severity::kError, std::move(where), std::move(message)}}) {}

UserError::UserError(std::vector<Diagnostic> diagnostics)
    : std::runtime_error(Join(diagnostics)), diagnostics_(std::move(diagnostics)) {}

void Diagnostics::Error(Location where, std::string message) {
  list_.push_back({Diagnostic::Severity::kError, std::move(where), std::move(message)});
  ++errors_;
}

void Diagnostics::Warning(Location where, std::string message) {
  list_.push_back({Diagnostic::Severity::kWarning, std::move(where), std::move(message)});
}

void Diagnostics::Note(Location where, std::string message) {
  list_.push_back({Diagnostic::Severity::kNote, std::move(where), std::move(message)});
}

void Diagnostics::ThrowIfErrors() const {
  if (has_errors()) throw UserError(list_);
}

}  // namespace crema
