#include "schema/text_lexer.h"

#include <cctype>

namespace crema {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsOctal(char c) { return c >= '0' && c <= '7'; }
bool IsHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

// A character that is not ASCII and comes with text copied from pages, chats and other editors.
struct Stranger {
  std::string_view bytes;
  const char* name;  // null where it shows
  const char* remedy;
};

constexpr const char* kLikeSpace = ", which looks like a space; write a plain one";
constexpr const char* kUnseen = ", which does not show; remove it";

constexpr Stranger kStrangers[] = {
    {"\u00a0", "no-break space (U+00A0)", kLikeSpace},
    {"\xa0", "no-break space (of Latin-1)", kLikeSpace},
    {"\u2002", "wide space (U+2002)", kLikeSpace},
    {"\u2003", "wide space (U+2003)", kLikeSpace},
    {"\u2009", "thin space (U+2009)", kLikeSpace},
    {"\u202f", "narrow no-break space (U+202F)", kLikeSpace},
    {"\u3000", "ideographic space (U+3000)", kLikeSpace},
    {"\u200b", "zero-width space (U+200B)", kUnseen},
    {"\u200c", "zero-width non-joiner (U+200C)", kUnseen},
    {"\u200d", "zero-width joiner (U+200D)", kUnseen},
    {"\u200e", "left-to-right mark (U+200E)", kUnseen},
    {"\u2060", "word joiner (U+2060)", kUnseen},
    {"\ufeff", "byte order mark (U+FEFF)", ", which does not show and stands only at the start of a file; remove it"},
    {"\u2028", "line separator (U+2028)", ", which does not show; end the line there instead"},
    {"\u201c", nullptr, "\""},
    {"\u201d", nullptr, "\""},
    {"\u201e", nullptr, "\""},
    {"\uff02", nullptr, "\""},
    {"\u2018", nullptr, "'"},
    {"\u2019", nullptr, "'"},
    {"\uff1a", nullptr, ":"},
    {"\uff5b", nullptr, "{"},
    {"\uff5d", nullptr, "}"},
    {"\uff0c", nullptr, ","},
    {"\u2212", nullptr, "-"},
    {"\u2013", nullptr, "-"},
};

// What to tell about bytes that are not ASCII where only that is allowed.
std::string NotAscii(std::string_view bytes) {
  std::string hint = " is allowed";
  for (const Stranger& stranger : kStrangers) {
    if (!bytes.starts_with(stranger.bytes)) continue;
    if (stranger.name) return std::string("unexpected ") + stranger.name + stranger.remedy;
    hint += std::string("; write ") + stranger.remedy;
  }
  return "unexpected \"" + std::string(bytes) + "\"; outside quotes and comments only plain ASCII" + hint;
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  LexedText Run() {
    bool first = true;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        NewLine();
        first = true;
      } else if (IsBlank(c)) {
        ++at_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        const size_t tokens = result_.tokens.size();
        One(c);
        if (result_.tokens.size() > tokens) result_.tokens.back().first_on_line = first;
        first = first && result_.tokens.size() == tokens;
      }
    }
    Start();
    Finish(TokenKind::kEnd);
    return std::move(result_);
  }

 private:
  char Peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  int Column() const { return static_cast<int>(at_ - line_start_) + 1; }
  void NewLine() {
    ++at_;
    ++line_;
    line_start_ = at_;
  }
  void Start() {
    begin_ = at_;
    token_ = Token();
    token_.line = line_;
    token_.column = Column();
  }
  void Finish(TokenKind kind) {
    token_.kind = kind;
    token_.text = text_.substr(begin_, at_ - begin_);
    result_.tokens.push_back(token_);
  }
  void Complain(std::string message) { Complain(token_.line, token_.column, std::move(message)); }
  void Complain(int line, int column, std::string message) {
    token_.bad = true;
    result_.errors.push_back({line, column, std::move(message)});
  }

  void One(char c) {
    Start();
    if (IsLetter(c)) {
      while (IsLetter(Peek()) || IsDigit(Peek())) ++at_;
      Finish(TokenKind::kIdentifier);
    } else if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
      Number();
    } else if (c == '"' || c == '\'') {
      String(c);
    } else if (static_cast<unsigned char>(c) >= 0x80) {
      while (static_cast<unsigned char>(Peek()) >= 0x80) ++at_;
      Complain(NotAscii(text_.substr(begin_, at_ - begin_)));
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      while ((static_cast<unsigned char>(Peek()) < 0x20 || Peek() == 0x7f) && at_ < text_.size() && Peek() != '\n')
        ++at_;
      Complain("unexpected control character; is this a text file?");
    } else {
      ++at_;
      Finish(TokenKind::kSymbol);
    }
  }

  void Number() {
    bool is_float = false, plain = true;
    if (Peek() == '0' && (Peek(1) == 'x' || Peek(1) == 'X')) {
      at_ += 2;
      if (!IsHex(Peek())) Complain("\"0x\" must be followed by hexadecimal digits");
      while (IsHex(Peek())) ++at_;
      plain = false;
    } else if (Peek() == '0' && IsDigit(Peek(1))) {
      while (IsOctal(Peek())) ++at_;
      if (IsDigit(Peek())) {
        const bool decimal = begin_ > 1 && text_[begin_ - 1] == ',' && IsDigit(text_[begin_ - 2]);
        Complain(std::string("a number with a leading 0 is read as octal; write it without the 0") +
                 (decimal ? ", or \".\" before it where \",\" is the decimal point" : ""));
      }
      while (IsDigit(Peek())) ++at_;
      plain = false;
    } else {
      while (IsDigit(Peek())) ++at_;
      if (Peek() == '.') {
        is_float = true;
        ++at_;
        while (IsDigit(Peek())) ++at_;
      }
      if (Peek() == 'e' || Peek() == 'E') {
        is_float = true;
        ++at_;
        if (Peek() == '-' || Peek() == '+') ++at_;
        if (!IsDigit(Peek())) Complain("the exponent after \"e\" is missing");
        while (IsDigit(Peek())) ++at_;
      }
      if (Peek() == 'f' || Peek() == 'F') {
        is_float = true;
        ++at_;
      }
    }
    if (Peek() == '.') {
      while (Peek() == '.' || IsDigit(Peek())) ++at_;
      Complain(plain ? "\"" + std::string(text_.substr(begin_, at_ - begin_)) + "\" is no number"
                     : "a number with a leading 0 is read as octal and cannot have a \".\"; write it without the 0");
    }
    if (IsLetter(Peek())) Adjacent();
    Finish(is_float ? TokenKind::kFloat : TokenKind::kInteger);
  }

  // Letters right after a number: the next field, or a word that only begins like a number.
  void Adjacent() {
    size_t end = at_;
    while (end < text_.size() && (IsLetter(text_[end]) || IsDigit(text_[end]))) ++end;
    size_t next = end;
    while (next < text_.size() && IsBlank(text_[next])) ++next;
    if (next < text_.size() && (text_[next] == ':' || text_[next] == '{')) {
      Complain(line_, Column(), "put a space before \"" + std::string(text_.substr(at_, end - at_)) + "\"");
      return;
    }
    at_ = end;
    Complain("\"" + std::string(text_.substr(begin_, at_ - begin_)) + "\" is no number");
  }

  void String(char quote) {
    ++at_;
    while (true) {
      if (at_ >= text_.size() || text_[at_] == '\n') {
        Complain("this text has no closing quote on its line");
        break;
      }
      const char c = text_[at_];
      if (c == quote) {
        ++at_;
        break;
      }
      if (c == '\\') {
        Escape();
      } else {
        ++at_;
      }
    }
    Finish(TokenKind::kString);
  }

  void Escape() {
    const int column = Column();
    ++at_;
    const char c = Peek();
    if (at_ < text_.size() && (std::string_view("abfnrtv\\?'\"").find(c) != std::string_view::npos || IsOctal(c))) {
      ++at_;
      return;
    }
    size_t digits = 0;
    if (c == 'x' || c == 'X') digits = 1;
    if (c == 'u') digits = 4;
    if (c == 'U') digits = 8;
    bool good = digits > 0;
    for (size_t i = 1; i <= digits; ++i) good = good && IsHex(Peek(i));
    if (good && c == 'U') {
      const std::string_view code = text_.substr(at_ + 1, 8);
      good = code.substr(0, 3) == "000" || code.substr(0, 4) == "0010";
    }
    if (good) {
      at_ += 1 + digits;
      return;
    }
    const std::string shown = at_ < text_.size() && c != '\n' ? "\"\\" + std::string(1, c) + "\"" : "a single \"\\\"";
    Complain(line_, column, shown + " is no escape sequence; write \"\\\\\" for a backslash, or \"/\" in paths");
  }

  std::string_view text_;
  size_t at_ = 0, line_start_ = 0, begin_ = 0;
  int line_ = 1;
  Token token_;
  LexedText result_;
};

}  // namespace

LexedText Lex(std::string_view text) { return Lexer(text).Run(); }

std::string_view ValueIn(const std::vector<Token>& tokens, size_t begin, std::string_view name) {
  int depth = 0;
  for (size_t i = begin; depth >= 0 && i + 2 < tokens.size(); ++i) {
    const Token& token = tokens[i];
    if (token.Is('{') || token.Is('<') || token.Is('[')) ++depth;
    if (token.Is('}') || token.Is('>') || token.Is(']')) --depth;
    if (depth == 0 && token.text == name && tokens[i + 1].Is(':')) return tokens[i + 2].text;
  }
  return {};
}

}  // namespace crema
