#include "schema/text_paths.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/listed.h"

namespace crema {

namespace {

using google::protobuf::FieldDescriptor;

constexpr std::string_view kPaths[] = {
    // Of nets
    "file_name", "label_map_file", "mean_file", "meanfile", "name_pattern", "name_size_file", "output_directory",
    "output_name_prefix", "root_folder", "save_file", "source", "video_file", "weight_source", "class_map",
    "softmax_tree",
    // Of solvers
    "authorized_keys_dir", "net", "secret_key_file", "server_public_key_file", "snapshot_prefix", "test_net",
    "train_net", "weights"};

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// The letters that are escape sequences behind a backslash, and what they stand for.
constexpr std::string_view kLetters = "abfnrtv", kMeant = "\a\b\f\n\r\t\v";

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char small = static_cast<char>(c | 0x20);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : 16;
}

// The length of the escape sequence at the start of `text`, which the lexer found right, and its character: only
// ASCII's matters.
size_t Escape(std::string_view text, char* c) {
  const size_t letter = kLetters.find(text[1]);
  *c = letter == std::string_view::npos ? text[1] : kMeant[letter];
  if (letter != std::string_view::npos) return 2;
  const bool octal = DigitOf(text[1]) < 8 && text[1] <= '7';
  size_t begin = 2, most = 0;
  if (octal) begin = 1, most = 3;
  if (text[1] == 'x' || text[1] == 'X') most = 2;
  if (text[1] == 'u') most = 4;
  if (text[1] == 'U') most = 8;
  if (most == 0) return 2;
  const int base = octal ? 8 : 16;
  unsigned value = 0;
  size_t end = begin;
  for (; end < text.size() && end - begin < most && DigitOf(text[end]) < base; ++end) {
    value = value * static_cast<unsigned>(base) + static_cast<unsigned>(DigitOf(text[end]));
  }
  *c = value < 0x80 ? static_cast<char>(value) : '?';
  return end;
}

std::string NameOf(char c) {
  switch (c) {
    case '\t':
      return "a tab";
    case '\n':
      return "a line end";
    case '\r':
      return "a carriage return";
    default:
      return "a control character";
  }
}

void AddNew(const std::string& text, std::vector<std::string>* texts) {
  if (std::find(texts->begin(), texts->end(), text) == texts->end()) texts->push_back(text);
}

}  // namespace

bool IsPath(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_STRING &&
         std::find(std::begin(kPaths), std::end(kPaths), field->name()) != std::end(kPaths);
}

std::string CheckPath(const FieldDescriptor* field, const Token& token, int* column) {
  std::vector<std::string> names, sequences;
  for (size_t i = 1; i + 1 < token.text.size();) {
    char c = token.text[i];
    const size_t length = c == '\\' ? Escape(token.text.substr(i), &c) : 1;
    if (IsControl(c)) {
      if (names.empty()) *column = token.column + static_cast<int>(i);
      AddNew(NameOf(c), &names);
      if (length > 1) AddNew(std::string(token.text.substr(i, length)), &sequences);
    }
    i += length;
  }
  if (names.empty()) return "";
  const std::string what = "\"" + std::string(field->name()) + "\" holds " + Listed(names, {.last = " and "});
  if (sequences.empty()) return what + "; remove it";
  return what + ", which " + Listed(sequences, {.quoted = true, .last = " and "}) +
         (sequences.size() > 1 ? " mean" : " means") + "; write \"/\" in paths, or \"\\\\\" for a backslash";
}

}  // namespace crema
