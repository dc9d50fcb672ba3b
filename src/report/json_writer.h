// Writes JSON (RFC 8259) into a string.
#ifndef CREMA_REPORT_JSON_WRITER_H_
#define CREMA_REPORT_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "crema/tensor.h"

namespace crema {

// Puts commas by itself; the caller calls Begin and End in pairs, and Key before every value of an object.
class JsonWriter {
 public:
  void BeginObject();
  void EndObject();
  void BeginArray();
  void EndArray();
  void Key(std::string_view key);
  // Bytes that are no UTF-8 become U+FFFD.
  void String(std::string_view text);
  // Nine significant digits, which tell any two floats apart; null for what JSON has no number for.
  void Number(double value);
  // As few digits as tell it apart from other floats.
  void Float(float value);
  void Integer(int64_t value);
  // value / 1000 with three decimals, exactly; at least 0.
  void Thousandths(int64_t value);
  void Extents(const Shape& shape);
  // A key and its value.
  void Field(std::string_view key, std::string_view text);
  void Field(std::string_view key, double value);
  void Field(std::string_view key, const Shape& shape);
  template <std::integral Whole>
  void Field(std::string_view key, Whole value) {
    Key(key);
    Integer(static_cast<int64_t>(value));
  }
  // A line end and `indent` spaces before the next value, key or closing bracket.
  void NewLine(int indent);

  const std::string& text() const { return text_; }
  // What was written since the last call; what follows goes on behind it.
  std::string Take();

 private:
  void Separate();
  void Break();

  std::string text_;
  std::vector<bool> empty_;  // a bracket: nothing in it yet
  bool after_key_ = false;
  int indent_ = -1;
};

}  // namespace crema

#endif  // CREMA_REPORT_JSON_WRITER_H_
