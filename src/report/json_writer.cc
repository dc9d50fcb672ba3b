#include "report/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/utf8.h"

namespace crema {

std::string JsonWriter::Take() {
  std::string text;
  text.swap(text_);
  return text;
}

void JsonWriter::Break() {
  if (indent_ >= 0) text_ += "\n" + std::string(indent_, ' ');
  indent_ = -1;
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (!empty_.empty()) {
    if (!empty_.back()) text_ += indent_ >= 0 ? "," : ", ";
    empty_.back() = false;
  }
  Break();
}

void JsonWriter::BeginObject() {
  Separate();
  text_ += '{';
  empty_.push_back(true);
}

void JsonWriter::EndObject() {
  empty_.pop_back();
  Break();
  text_ += '}';
}

void JsonWriter::BeginArray() {
  Separate();
  text_ += '[';
  empty_.push_back(true);
}

void JsonWriter::EndArray() {
  empty_.pop_back();
  Break();
  text_ += ']';
}

void JsonWriter::Key(std::string_view key) {
  String(key);
  text_ += ": ";
  after_key_ = true;
}

void JsonWriter::String(std::string_view text) {
  Separate();
  text_ += '"';
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    const char c = text[0];
    if (length == 0) {
      text_ += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      text_ += escape;
    } else {
      text_ += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
}

void JsonWriter::Number(double value) {
  Separate();
  char text[32];
  if (std::isfinite(value)) {
    std::snprintf(text, sizeof text, "%.9g", value);
  } else {
    std::snprintf(text, sizeof text, "null");
  }
  text_ += text;
}

void JsonWriter::Float(float value) {
  Separate();
  char text[32];
  const char* const end = std::to_chars(text, text + sizeof text, value).ptr;
  text_ += std::isfinite(value) ? std::string_view(text, static_cast<size_t>(end - text)) : "null";
}

void JsonWriter::Integer(int64_t value) {
  Separate();
  text_ += std::to_string(value);
}

void JsonWriter::Thousandths(int64_t value) {
  Separate();
  const std::string rest = std::to_string(1000 + value % 1000);
  text_ += std::to_string(value / 1000) + "." + rest.substr(1);
}

void JsonWriter::Extents(const Shape& shape) {
  Separate();
  text_ += '[';
  for (int i = 0; i < shape.axes(); ++i) text_ += (i ? "," : "") + std::to_string(shape[i]);
  text_ += ']';
}

void JsonWriter::Field(std::string_view key, std::string_view text) {
  Key(key);
  String(text);
}

void JsonWriter::Field(std::string_view key, double value) {
  Key(key);
  Number(value);
}

void JsonWriter::Field(std::string_view key, const Shape& shape) {
  Key(key);
  Extents(shape);
}

void JsonWriter::NewLine(int indent) { indent_ = indent; }

}  // namespace crema
