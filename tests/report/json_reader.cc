#include "report/json_reader.h"

#include <cstdlib>
#include <tuple>
#include <utility>

namespace crema::testing_json {

namespace {

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json Document() {
    Json value = Value();
    Space();
    if (at_ != text_.size()) Fail("text after the value");
    return value;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error("JSON, offset " + std::to_string(at_) + ": " + what);
  }
  void Space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  char Peek() {
    Space();
    if (at_ == text_.size()) Fail("it ends here");
    return text_[at_];
  }
  void Expect(char c) {
    if (Peek() != c) Fail(std::string("expected ") + c);
    ++at_;
  }
  bool Accept(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }

  Json Value() {
    Json value;
    switch (Peek()) {
      case '{':
        value.kind = Json::Kind::kObject;
        ++at_;
        if (Accept('}')) return value;
        do {
          Peek();
          std::string key = String();
          Expect(':');
          value.members.push_back({std::move(key), Value()});
        } while (Accept(','));
        Expect('}');
        return value;
      case '[':
        value.kind = Json::Kind::kArray;
        ++at_;
        if (Accept(']')) return value;
        do {
          value.items.push_back(Value());
        } while (Accept(','));
        Expect(']');
        return value;
      case '"':
        value.kind = Json::Kind::kString;
        value.string = String();
        return value;
      default:
        return Word();
    }
  }

  Json Word() {
    Json value;
    for (const auto& [word, kind, number] : {std::tuple{std::string_view("null"), Json::Kind::kNull, 0.0},
                                             {"true", Json::Kind::kBool, 1.0},
                                             {"false", Json::Kind::kBool, 0.0}}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      value.kind = kind;
      value.number = number;
      return value;
    }
    const size_t end = text_.find_first_not_of("+-.0123456789eE", at_);
    const std::string number(text_.substr(at_, end == std::string_view::npos ? end : end - at_));
    char* rest = nullptr;
    value.kind = Json::Kind::kNumber;
    value.number = std::strtod(number.c_str(), &rest);
    if (number.empty() || *rest != '\0') Fail("expected a value");
    at_ += number.size();
    return value;
  }

  std::string String() {
    Expect('"');
    std::string out;
    while (true) {
      if (at_ == text_.size()) Fail("unfinished string");
      const char c = text_[at_++];
      if (c == '"') return out;
      if (static_cast<unsigned char>(c) < 0x20) Fail("control character in a string");
      out += c == '\\' ? Escape() : std::string(1, c);
    }
  }

  std::string Escape() {
    static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    if (at_ == text_.size()) Fail("unfinished string");
    const char c = text_[at_++];
    if (const size_t i = kLetters.find(c); i != std::string_view::npos) return std::string(1, kMeant[i]);
    if (c != 'u' || at_ + 4 > text_.size()) Fail("unknown escape");
    const unsigned code = static_cast<unsigned>(std::strtoul(std::string(text_.substr(at_, 4)).c_str(), nullptr, 16));
    at_ += 4;
    std::string out;
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code < 0x800) {
      out += static_cast<char>(0xC0 | code >> 6);
      out += static_cast<char>(0x80 | (code & 0x3F));
    } else {
      out += static_cast<char>(0xE0 | code >> 12);
      out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      out += static_cast<char>(0x80 | (code & 0x3F));
    }
    return out;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

const Json* Json::Find(std::string_view key) const {
  for (const auto& [name, value] : members) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json& Json::operator[](std::string_view key) const {
  const Json* value = Find(key);
  if (!value) throw std::out_of_range("JSON: there is no member " + std::string(key));
  return *value;
}

std::vector<long long> Json::Integers() const {
  std::vector<long long> list;
  for (const Json& item : items) list.push_back(static_cast<long long>(item.number));
  return list;
}

Json ParseJson(std::string_view text) { return Reader(text).Document(); }

}  // namespace crema::testing_json
