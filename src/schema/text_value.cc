#include "schema/text_value.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "base/listed.h"
#include "base/lower_case.h"
#include "base/placeholder.h"
#include "base/suggest.h"
#include "crema/legacy.pb.h"
#include "schema/types_of_forks.h"

namespace crema {

namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

std::vector<std::string> ValueNames(const EnumDescriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) names.push_back(std::string(type->value(i)->name()));
  return names;
}

std::string Unquoted(const Token& token) {
  const size_t closed = token.text.size() > 1 && token.text.back() == token.text.front() ? 1 : 0;
  return std::string(token.text.substr(1, token.text.size() - 1 - closed));
}

std::string Quoted(const FieldDescriptor* field) { return "\"" + std::string(field->name()) + "\""; }

std::string WrongKind(const FieldDescriptor* field, const Token& token, bool minus, const std::string& hint = {}) {
  return Quoted(field) + " takes " + Expected(field) + ", not " + Shown(token, minus) + hint;
}

// False when the digits do not fit.
bool ParseDigits(std::string_view text, uint64_t* value) {
  uint64_t base = 10;
  if (text.size() > 1 && text[0] == '0') base = text[1] == 'x' || text[1] == 'X' ? 16 : 8;
  if (base == 16) text.remove_prefix(2);
  *value = 0;
  for (char c : text) {
    const uint64_t digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (*value > (std::numeric_limits<uint64_t>::max() - digit) / base) return false;
    *value = *value * base + digit;
  }
  return true;
}

bool LooksLikeNumber(const std::string& text) {
  if (text.empty()) return false;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return *end == '\0' && !std::isspace(static_cast<unsigned char>(text[0]));
}

// "100000" for 1e5; empty for what is no whole number of few digits.
std::string WithoutExponent(const Token& token) {
  if (token.kind != TokenKind::kFloat) return "";
  const double value = std::strtod(std::string(token.text).c_str(), nullptr);
  return value == std::floor(value) && value < 1e15 ? std::to_string(static_cast<int64_t>(value)) : "";
}

std::string CheckString(const FieldDescriptor* field, const Token& token, bool minus) {
  if (!minus && token.kind == TokenKind::kString) return {};
  std::string hint;
  if (token.kind == TokenKind::kIdentifier || token.kind == TokenKind::kInteger || token.kind == TokenKind::kFloat) {
    hint = "; write \"" + std::string(minus ? "-" : "") + std::string(token.text) + "\"";
    if (field->full_name() == "crema.LayerParameter.type" && LowerCase(token.text) != std::string(token.text) &&
        token.text.find_first_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos) {
      hint =
          "; names in capitals belong to the old \"layers\" blocks, a \"layer\" has type: \"Convolution\" and the like";
    }
  }
  return WrongKind(field, token, minus, hint);
}

std::string CheckBool(const FieldDescriptor* field, const Token& token, bool minus) {
  if (!minus && token.kind == TokenKind::kIdentifier) {
    for (const char* word : {"true", "True", "t", "false", "False", "f"}) {
      if (token.text == word) return {};
    }
  }
  uint64_t value = 0;
  if (!minus && token.kind == TokenKind::kInteger && ParseDigits(token.text, &value) && value <= 1) return {};
  return WrongKind(field, token, minus);
}

std::string UnknownV1Type(const Token& token, const std::vector<std::string>& names) {
  if (const TypeOfFork* of_fork = FindTypeOfFork(token.text)) return AdviceOn(*of_fork);
  const std::string hint = DidYouMean(token.text, names);
  return "there is no layer type " + std::string(token.text) +
         (hint.empty()
              ? "; `crema compile --list_layers` names those there are; \"layers\" blocks have them in capitals, "
                "such as INNER_PRODUCT"
              : hint);
}

std::string CheckEnum(const FieldDescriptor* field, const Token& token, bool minus) {
  const EnumDescriptor* type = field->enum_type();
  const std::vector<std::string> names = ValueNames(type);
  if (token.kind == TokenKind::kIdentifier && !minus) {
    if (type->FindValueByName(std::string(token.text))) return {};
    if (type == V1LayerParameter::LayerType_descriptor()) return UnknownV1Type(token, names);
    return Quoted(field) + " has no value " + std::string(token.text) + DidYouMean(token.text, names) +
           (DidYouMean(token.text, names).empty() ? "; " : " ") + "allowed are " + Listed(names, {.most = kAllNames});
  }
  if (token.kind == TokenKind::kInteger) {
    uint64_t value = 0;
    if (ParseDigits(token.text, &value) && value <= uint64_t{std::numeric_limits<int32_t>::max()} &&
        type->FindValueByNumber(static_cast<int>(minus ? -static_cast<int64_t>(value) : value))) {
      return {};
    }
    return Quoted(field) + " has no value " + Shown(token, minus) + "; allowed are " +
           Listed(names, {.most = kAllNames});
  }
  std::string hint;
  if (token.kind == TokenKind::kString) {
    if (type->full_name() == "crema.V1LayerParameter.LayerType") {
      return Quoted(field) + " of an old \"layers\" block is a name without quotes, such as CONVOLUTION, not " +
             Shown(token) + "; write \"layer\" instead of \"layers\" to use today's quoted types";
    }
    if (std::find(names.begin(), names.end(), Unquoted(token)) != names.end()) hint = "; remove the quotes";
  }
  return WrongKind(field, token, minus, hint);
}

std::string CheckWhole(const FieldDescriptor* field, const Token& token, bool minus, uint64_t largest, bool is_signed) {
  if (token.kind != TokenKind::kInteger) {
    const bool quoted = token.kind == TokenKind::kString && LooksLikeNumber(Unquoted(token));
    if (quoted) return WrongKind(field, token, minus, "; remove the quotes");
    const std::string digits = is_signed || !minus ? WithoutExponent(token) : "";
    return WrongKind(field, token, minus, digits.empty() ? "" : "; write " + std::string(minus ? "-" : "") + digits);
  }
  if (minus && !is_signed) return WrongKind(field, token, minus);
  uint64_t value = 0;
  if (!ParseDigits(token.text, &value) || value > largest + (minus ? 1 : 0)) {
    return Quoted(field) + " cannot be " + Shown(token, minus) + "; the " + (minus ? "smallest" : "largest") +
           " value is " + (minus ? "-" + std::to_string(largest + 1) : std::to_string(largest));
  }
  return {};
}

// Where an infinity means something: a bound that does not bind, and values that masks hold.
bool TakesInfinity(const FieldDescriptor* field) {
  const std::string_view message = field->containing_type()->full_name();
  return message == "crema.ClipParameter" || message == "crema.BlobProto";
}

std::string CheckReal(const FieldDescriptor* field, const Token& token, bool minus) {
  if (token.kind == TokenKind::kIdentifier) {
    const std::string word = LowerCase(token.text);
    const bool infinite = word == "inf" || word == "infinity";
    if (infinite && TakesInfinity(field)) return {};
    if (infinite || word == "nan") {
      return Quoted(field) + " cannot be " + Shown(token, minus) + "; give a " + (infinite ? "finite " : "") + "number";
    }
  }
  if (token.kind != TokenKind::kInteger && token.kind != TokenKind::kFloat) {
    const bool quoted = token.kind == TokenKind::kString && LooksLikeNumber(Unquoted(token));
    return WrongKind(field, token, minus, quoted ? "; remove the quotes" : "");
  }
  if (token.kind == TokenKind::kInteger && token.text.size() > 1 && token.text[0] == '0') {
    return Quoted(field) + " takes a decimal number, not " + Shown(token, minus) + "; write it without the leading 0";
  }
  const bool single = field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT;
  // Nine digits of the largest float, as protobuf writes it, are more than it is, and round to it.
  const std::string text(token.text);
  if (single ? std::isinf(std::strtof(text.c_str(), nullptr)) : std::isinf(std::strtod(text.c_str(), nullptr))) {
    return Quoted(field) + " cannot be " + Shown(token, minus) + "; the largest value is about " +
           (single ? "3.4e38" : "1.8e308");
  }
  return {};
}

}  // namespace

std::string Expected(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return "a whole number";
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number of 0 or more";
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return "one of " + Listed(ValueNames(field->enum_type()), {.most = kAllNames});
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text in quotes";
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "a block { ... }";
  }
  return "a value";
}

std::string Shown(const Token& token, bool minus) {
  const std::string sign = minus ? "-" : "";
  switch (token.kind) {
    case TokenKind::kEnd:
      return "the end of the file";
    case TokenKind::kString:
      return sign + "the text \"" + Unquoted(token) + "\"";
    case TokenKind::kSymbol:
      return "\"" + sign + std::string(token.text) + "\"";
    default:
      return sign + std::string(token.text);
  }
}

std::string Placeholder(const std::vector<Token>& tokens, size_t at) {
  if (at + 3 >= tokens.size() || !tokens[at].Is('$') || !tokens[at + 1].Is('{') || !tokens[at + 3].Is('}')) return "";
  return tokens[at + 2].kind == TokenKind::kIdentifier ? "${" + std::string(tokens[at + 2].text) + "}" : "";
}

std::string PlaceholderFor(const FieldDescriptor* field, const std::string& placeholder) {
  return Quoted(field) + " takes " + Expected(field) + ", not " + placeholder + PlaceholderNote(placeholder);
}

bool EndsDecimalComma(const std::vector<Token>& tokens, size_t at) {
  if (at < 2 || !tokens[at - 1].Is(',')) return false;
  const Token &before = tokens[at - 2], &behind = tokens[at];
  return before.kind == TokenKind::kInteger &&
         (behind.kind == TokenKind::kInteger || behind.kind == TokenKind::kFloat) &&
         before.text.data() + before.text.size() + 1 == behind.text.data();
}

std::string CheckScalar(const FieldDescriptor* field, const Token& token, bool minus) {
  if (token.bad) return {};
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return CheckWhole(field, token, minus, std::numeric_limits<int32_t>::max(), true);
    case FieldDescriptor::CPPTYPE_INT64:
      return CheckWhole(field, token, minus, std::numeric_limits<int64_t>::max(), true);
    case FieldDescriptor::CPPTYPE_UINT32:
      return CheckWhole(field, token, minus, std::numeric_limits<uint32_t>::max(), false);
    case FieldDescriptor::CPPTYPE_UINT64:
      return CheckWhole(field, token, minus, std::numeric_limits<uint64_t>::max(), false);
    case FieldDescriptor::CPPTYPE_DOUBLE:
    case FieldDescriptor::CPPTYPE_FLOAT:
      return CheckReal(field, token, minus);
    case FieldDescriptor::CPPTYPE_BOOL:
      return CheckBool(field, token, minus);
    case FieldDescriptor::CPPTYPE_ENUM:
      return CheckEnum(field, token, minus);
    case FieldDescriptor::CPPTYPE_STRING:
      return CheckString(field, token, minus);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      break;
  }
  return {};
}

}  // namespace crema
