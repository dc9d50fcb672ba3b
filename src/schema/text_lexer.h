// Splits prototxt into tokens the way protobuf's text format does, but with a place and plain words for every mistake.
#ifndef CREMA_SCHEMA_TEXT_LEXER_H_
#define CREMA_SCHEMA_TEXT_LEXER_H_

#include <string>
#include <string_view>
#include <vector>

namespace crema {

enum class TokenKind { kEnd, kIdentifier, kInteger, kFloat, kString, kSymbol };

// A piece of the text; `text` points into the lexed buffer and includes the quotes of a string.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  int line = 1, column = 1;  // bytes, from 1
  // The lexer has already complained about it.
  bool bad = false;
  // It is the first token of its line, whose indentation is column - 1.
  bool first_on_line = false;

  bool Is(char symbol) const { return kind == TokenKind::kSymbol && text[0] == symbol; }
};

struct LexError {
  int line, column;
  std::string message;
};

struct LexedText {
  std::vector<Token> tokens;  // ends with a kEnd token
  std::vector<LexError> errors;
};

// `text` must outlive the result. A string ends with its line at the latest.
LexedText Lex(std::string_view text);

// What stands behind `name` and its ":" in the block whose first token is `begin`, not in blocks inside; empty for
// nothing.
std::string_view ValueIn(const std::vector<Token>& tokens, size_t begin, std::string_view name);

}  // namespace crema

#endif  // CREMA_SCHEMA_TEXT_LEXER_H_
