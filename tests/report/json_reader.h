// A small JSON reader (RFC 8259) for tests.
#ifndef CREMA_TESTS_REPORT_JSON_READER_H_
#define CREMA_TESTS_REPORT_JSON_READER_H_

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace crema::testing_json {

struct JsonMember;

struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  double number = 0;  // 1 or 0 for bools
  std::string string;
  std::vector<Json> items;
  std::vector<JsonMember> members;  // in the file's order

  // Null without that member.
  const Json* Find(std::string_view key) const;
  // Throws std::out_of_range without that member.
  const Json& operator[](std::string_view key) const;
  // Of an array of whole numbers.
  std::vector<long long> Integers() const;
};

struct JsonMember {
  std::string name;
  Json value;
};

// Throws std::runtime_error naming the offset.
Json ParseJson(std::string_view text);

}  // namespace crema::testing_json

#endif  // CREMA_TESTS_REPORT_JSON_READER_H_
