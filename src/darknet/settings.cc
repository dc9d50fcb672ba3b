#include "darknet/settings.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "base/listed.h"
#include "base/number_text.h"
#include "base/printable.h"
#include "base/suggest.h"
#include "base/trimmed.h"

namespace crema::darknet {

namespace {

constexpr size_t kMostNumbers = 4096;  // of a list

bool Parse(std::string_view text, float* number) { return ParseFinite(text, number); }

bool Parse(std::string_view text, int64_t* number) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  return ParseWhole(text, number);
}

template <typename Number>
std::optional<Number> NumberIn(std::string_view text) {
  Number number;
  return Parse(text, &number) ? std::optional(number) : std::nullopt;
}

// Nothing where one is no number. Darknet's files end some lists with a comma.
template <typename Number>
std::optional<std::vector<Number>> ListIn(std::string_view text) {
  std::vector<std::string> parts = CommaParts(text);
  if (parts.back().empty()) parts.pop_back();
  std::vector<Number> numbers;
  for (const std::string& part : parts) {
    const std::optional<Number> number = NumberIn<Number>(part);
    if (!number || numbers.size() == kMostNumbers) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

Settings::Settings(const CfgSection& section, std::string path, Diagnostics* problems)
    : section_(section), path_(std::move(path)), problems_(problems) {
  for (const CfgEntry& entry : section.entries) entries_.emplace(entry.key, &entry);
}

Location Settings::where(const std::string& key) const {
  const auto entry = entries_.find(key);
  return {path_, entry == entries_.end() ? section_.line : entry->second->line, 0};
}

const std::string* Settings::Value(const std::string& key) {
  const bool asked_before = !asked_.insert(key).second;
  const auto found = entries_.find(key);
  if (found == entries_.end()) return nullptr;
  if (asked_before) return &found->second->value;
  for (const CfgEntry& entry : section_.entries) {
    if (entry.key != key || entry.value == found->second->value) continue;
    problems_->Error({path_, entry.line, 0}, "\"" + key + "\" has another value in line " +
                                                 std::to_string(found->second->line) + "; remove one of them");
    break;
  }
  return &found->second->value;
}

void Settings::Refuse(const std::string& key, const std::string& message) { problems_->Error(where(key), message); }

void Settings::Refuse(const std::string& key, const std::string& value, const std::string& expected) {
  Refuse(key, key + "=" + Printable(value) + ": expected " + expected);
}

int64_t Settings::Int(const std::string& key, int64_t fallback, int64_t least, int64_t most) {
  const std::string* value = Value(key);
  if (value == nullptr) return fallback;
  const std::optional<int64_t> number = NumberIn<int64_t>(*value);
  if (number && *number >= least && *number <= most) return *number;
  Refuse(key, *value, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  return fallback;
}

float Settings::Number(const std::string& key, float fallback) {
  const std::string* value = Value(key);
  if (value == nullptr) return fallback;
  if (const std::optional<float> number = NumberIn<float>(*value)) return *number;
  Refuse(key, *value, "a number");
  return fallback;
}

std::string Settings::Word(const std::string& key, const std::string& fallback) {
  const std::string* value = Value(key);
  return value == nullptr ? fallback : *value;
}

std::string Settings::Choice(const std::string& key, const std::string& fallback,
                             const std::vector<std::string>& words) {
  const std::string word = Word(key, fallback);
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  Refuse(key,
         key + "=" + Printable(word) + " is none of " + Listed(words, {.most = kAllNames}) + DidYouMean(word, words));
  return fallback;
}

std::vector<int64_t> Settings::Ints(const std::string& key) {
  const std::string* value = Value(key);
  if (value == nullptr) return {};
  if (auto numbers = ListIn<int64_t>(*value)) return std::move(*numbers);
  Refuse(key, *value, "whole numbers with commas between them");
  return {};
}

std::vector<float> Settings::Numbers(const std::string& key) {
  const std::string* value = Value(key);
  if (value == nullptr) return {};
  if (auto numbers = ListIn<float>(*value)) return std::move(*numbers);
  Refuse(key, *value, "numbers with commas between them");
  return {};
}

void Settings::Only(const std::string& key, float neutral, const std::string& why) {
  if (Number(key, neutral) == neutral) return;
  Refuse(key, key + "=" + Printable(*Value(key)) + " (" + why + ") is not possible; only " + FormatNumber(neutral) +
                  ", as without it, is");
}

void Settings::Never(const std::string& key, const std::string& why) {
  if (Value(key) != nullptr) Refuse(key, "\"" + key + "\" (" + why + ") is not possible");
}

void Settings::Ignore(const std::string& keys) {
  std::istringstream words(keys);
  for (std::string key; words >> key;) asked_.insert(key);
}

std::vector<Diagnostic> Settings::Unknown(std::set<std::string>* warned) const {
  std::vector<Diagnostic> warnings;
  const std::vector<std::string> known(asked_.begin(), asked_.end());
  for (const CfgEntry& entry : section_.entries) {
    if (asked_.count(entry.key) > 0 || !warned->insert(section_.kind + "." + entry.key).second) continue;
    Diagnostic warning;
    warning.severity = Diagnostic::Severity::kWarning;
    warning.where = {path_, entry.line, 0};
    warning.message = "\"" + Printable(entry.key) + "\" is no key of [" + section_.kind +
                      "] that is known here, and has no effect" + DidYouMean(entry.key, known);
    warnings.push_back(std::move(warning));
  }
  return warnings;
}

}  // namespace crema::darknet
