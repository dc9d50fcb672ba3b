#include "schema/text_check.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "crema/net.pb.h"
#include "schema/text_lexer.h"
#include "schema/text_paths.h"
#include "schema/text_unknown.h"
#include "schema/text_value.h"
#include "schema/types_of_forks.h"
#include "schema/upgrade.h"

namespace crema {

namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int kMostErrors = 20;

// One open `name { ... }`; the file itself is the outermost.
struct Block {
  const Descriptor* type;
  Token name;                                  // of the field that opened it
  int indentation;                             // of the line it was opened on
  std::map<const FieldDescriptor*, int> seen;  // field -> line
  size_t begin = 0;                            // the token behind its brace
  // Of a layer: the value of its `type`, and what is wrong with blocks that it does not have.
  Token layer_type = {};
  std::vector<Diagnostic> unknown_blocks = {};
};

bool IsLayer(const Descriptor* type) {
  return type == LayerParameter::descriptor() || type == V1LayerParameter::descriptor();
}

std::string_view WithoutQuotes(std::string_view text) {
  while (!text.empty() && (text.front() == '"' || text.front() == '\'')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '"' || text.back() == '\'')) text.remove_suffix(1);
  return text;
}

class Checker {
 public:
  Checker(const LexedText& lexed, std::string file) : lexed_(lexed), file_(std::move(file)) {
    for (const LexError& error : lexed.errors) Complain(error.line, error.column, error.message);
  }

  std::vector<Diagnostic> Run(const Descriptor* root) {
    blocks_.push_back({root, Token(), -1, {}});
    while (!Stopped()) {
      Fields('\0');
      if (Peek().kind == TokenKind::kEnd) break;
      Complain(Peek(), "unexpected " + Shown(Peek()) + "; every block is already closed");
      Take();
    }
    if (!errors_.empty()) errors_.insert(errors_.end(), types_of_forks_.begin(), types_of_forks_.end());
    std::stable_sort(errors_.begin(), errors_.end(), [](const Diagnostic& a, const Diagnostic& b) {
      return std::pair(a.where.line, a.where.column) < std::pair(b.where.line, b.where.column);
    });
    if (errors_.size() > kMostErrors) {
      errors_.resize(kMostErrors);
      Complain(0, 0, "stopped after 20 mistakes; there are more");
    }
    return std::move(errors_);
  }

 private:
  const Token& Peek(size_t ahead = 0) const { return lexed_.tokens[std::min(at_ + ahead, lexed_.tokens.size() - 1)]; }
  Token Take() {
    const Token token = Peek();
    if (at_ + 1 < lexed_.tokens.size()) ++at_;
    return token;
  }
  bool TryTake(char symbol) {
    if (!Peek().Is(symbol)) return false;
    Take();
    return true;
  }
  bool Stopped() const { return errors_.size() > 2 * kMostErrors; }
  // True while a missing brace is being recovered from, or when there is no point in reading on.
  bool Leaving() const { return Stopped() || (unwind_to_ >= 0 && unwind_to_ < static_cast<int>(blocks_.size()) - 1); }

  void Complain(const Token& at, std::string message) { Complain(at.line, at.column, std::move(message)); }
  void Complain(int line, int column, std::string message) {
    errors_.push_back(Mistake(line, column, std::move(message)));
  }
  Diagnostic Mistake(int line, int column, std::string message) const {
    return {Diagnostic::Severity::kError, {file_, line, column}, std::move(message)};
  }

  // The name of the innermost block: "a net", "a layer", "\"convolution_param\"".
  std::string Words() const {
    std::vector<std::string> path;
    for (size_t i = 1; i < blocks_.size(); ++i) path.push_back(std::string(blocks_[i].name.text));
    return BlockWords(blocks_.front().type, path);
  }

  // Reads fields up to the closing symbol of the innermost block, which is left for the caller.
  void Fields(char close) {
    while (!Leaving()) {
      const Token& token = Peek();
      if (token.kind == TokenKind::kEnd) return;
      if (token.Is('}') || token.Is('>')) {
        if (close == '\0' || token.Is(close)) return;
        Complain(token, "expected \"" + std::string(1, close) + "\" to close \"" +
                            std::string(blocks_.back().name.text) + "\", opened at line " +
                            std::to_string(blocks_.back().name.line) + ", got " + Shown(token));
        return;
      }
      if (token.kind == TokenKind::kIdentifier) {
        Field();
      } else {
        Stray();
      }
    }
  }

  // Something that is no field: complain, and go on with the next line.
  void Stray() {
    const Token token = Take();
    std::string hint;
    if (token.Is('/')) hint = "; comments start with \"#\"";
    if (EndsDecimalComma(lexed_.tokens, at_ - 1)) hint = "; write \".\" in numbers";
    if (!token.bad) Complain(token, "expected the name of a field, got " + Shown(token) + hint);
    SkipLine(token.line);
  }
  void SkipLine(int line) {
    while (Peek().kind != TokenKind::kEnd && Peek().line == line && !Peek().Is('}') && !Peek().Is('{')) Take();
    if (Peek().Is('{') && Peek().line == line) SkipBalanced();
  }

  void SkipBalanced() {
    int depth = 0;
    do {
      const Token token = Take();
      if (token.kind == TokenKind::kEnd) return;
      if (token.Is('{') || token.Is('<') || token.Is('[')) ++depth;
      if (token.Is('}') || token.Is('>') || token.Is(']')) --depth;
    } while (depth > 0);
  }
  void SkipValue() {
    TryTake(':');
    if (Peek().Is('{') || Peek().Is('<') || Peek().Is('[')) {
      SkipBalanced();
    } else {
      TryTake('-');
      if (Peek().kind == TokenKind::kString) {
        while (Peek().kind == TokenKind::kString) Take();
      } else if (Peek().kind != TokenKind::kEnd && !Peek().Is('}') && !MissingValue()) {
        Take();
      }
    }
    if (!TryTake(';')) TryTake(',');
  }

  bool OpensBlock(size_t ahead) const {
    return Peek(ahead).Is('{') || (Peek(ahead).Is(':') && Peek(ahead + 1).Is('{'));
  }
  // The next token is already the next field.
  bool MissingValue() const {
    return Peek().kind == TokenKind::kIdentifier && Peek().first_on_line && (Peek(1).Is(':') || OpensBlock(1));
  }

  void Field() {
    const FieldDescriptor* field = blocks_.back().type->FindFieldByName(std::string(Peek().text));
    if (!field) {
      if (MissingBrace()) return;
      Unknown();
      return;
    }
    const Token name = Take();
    const auto [before, first] = blocks_.back().seen.emplace(field, name.line);
    if (!first && !field->is_repeated()) {
      Complain(name, "\"" + std::string(name.text) + "\" is already set at line " + std::to_string(before->second) +
                         "; it takes only one value");
    }
    const bool colon = Colon(field, name);
    if (Leaving()) return;
    if (field->is_repeated() && Peek().Is('[')) {
      List(field, name);
    } else {
      Value(field, name, colon);
    }
    if (!TryTake(';')) TryTake(',');
  }

  void Unknown() {
    const Token name = Take();
    const bool other = blocks_.size() == 1 && IsOtherFile(std::string(name.text), blocks_[0].type);
    const bool new_layer = blocks_.back().type == LayerParameter::descriptor();
    const bool old_field = new_layer && V1LayerParameter::descriptor()->FindFieldByName(std::string(name.text));
    // Said once: every further field of the wrong file, or of the old syntax, would only repeat it.
    if ((!other || !other_file_) && (!old_field || old_fields_.insert(std::string(name.text)).second)) {
      std::vector<const Descriptor*> enclosing;
      for (const Block& block : blocks_) enclosing.push_back(block.type);
      const bool is_block = OpensBlock(0);
      std::string text = UnknownField(std::string(name.text), Words(), enclosing, is_block, TypeOfLayer());
      if (is_block && IsLayer(blocks_.back().type)) {
        blocks_.back().unknown_blocks.push_back(Mistake(name.line, name.column, std::move(text)));
      } else {
        Complain(name, std::move(text));
      }
    }
    other_file_ = other_file_ || other;
    SkipValue();
  }

  // What the innermost layer says as its type, also where it does so further on.
  std::string TypeOfLayer() const {
    for (size_t i = blocks_.size(); i-- > 0;) {
      if (IsLayer(blocks_[i].type)) return std::string(WithoutQuotes(ValueIn(lexed_.tokens, blocks_[i].begin, "type")));
    }
    return "";
  }

  // A layer whose type is of a fork: that says why it has blocks that nobody knows. What knows all types comes later,
  // and only for a file without mistakes, so that those of forks are told together with the mistakes.
  void CheckType(Block& layer) {
    const bool named = layer.layer_type.kind == TokenKind::kString;  // one of the old syntax is checked where it stands
    const std::string type(WithoutQuotes(layer.layer_type.text));
    const TypeOfFork* of_fork = FindTypeOfFork(type);
    if (!of_fork) {
      for (Diagnostic& mistake : layer.unknown_blocks) {
        if (named && !HasOldName(type) && mistake.message.ends_with(kOfAFork)) {
          mistake.message += " Type \"" + type + "\" may be, too: `crema compile --list_layers` names those there are";
        }
        errors_.push_back(std::move(mistake));
      }
    } else if (named) {
      const bool everywhere = !layer.seen.count(layer.type->FindFieldByName("include")) &&
                              !layer.seen.count(layer.type->FindFieldByName("exclude"));
      const Diagnostic mistake = Mistake(layer.layer_type.line, layer.layer_type.column, AdviceOn(*of_fork));
      if (!layer.unknown_blocks.empty()) {
        errors_.push_back(mistake);
      } else if (everywhere) {
        types_of_forks_.push_back(mistake);
      }
    }
  }

  bool Colon(const FieldDescriptor* field, const Token& name) {
    if (TryTake(':')) return true;
    if (Peek().Is('=')) {
      Complain(Peek(), "write \":\" instead of \"=\" after \"" + std::string(name.text) + "\"");
      Take();
      return true;
    }
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE || Peek().Is('{')) return false;
    Complain(name, "\"" + std::string(name.text) + "\" needs a \":\" and " + Expected(field) + " after it");
    return MissingValue() ? false : true;
  }

  void List(const FieldDescriptor* field, const Token& name) {
    const Token open = Take();
    if (TryTake(']')) return;
    while (!Leaving()) {
      if (Peek().kind == TokenKind::kEnd || Peek().Is('}')) break;
      Value(field, name, true);
      if (TryTake(']')) return;
      if (!Peek().Is(',')) break;
      Take();
      if (Peek().Is(']')) {
        Complain(Peek(), "the list of \"" + std::string(name.text) + "\" ends with a \",\"; remove it");
        Take();
        return;
      }
    }
    if (Leaving()) return;
    Complain(open, "the list of \"" + std::string(name.text) + "\" opened here has no closing \"]\"");
    SkipLine(open.line);
    TryTake(']');
  }

  void Value(const FieldDescriptor* field, const Token& name, bool colon) {
    const Token token = Peek();
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (token.Is('{') || token.Is('<')) return Nested(field, name);
      if (token.bad) return void(Take());
      Complain(name, "\"" + std::string(name.text) + "\" is a block; write " + std::string(name.text) + " { ... }");
      if (!MissingValue() && !token.Is('}')) SkipValue();
      return;
    }
    if (token.Is('{') || token.Is('<') || token.Is('[')) {
      Complain(token, "\"" + std::string(name.text) + "\" takes " + (token.Is('[') ? "one value, " : "") +
                          Expected(field) + ", not a " + (token.Is('[') ? "list" : "block"));
      SkipBalanced();
      return;
    }
    if (!colon) return;
    if (MissingValue() || token.Is('}') || token.Is('>') || token.Is(']') || token.Is(',') ||
        token.kind == TokenKind::kEnd) {
      Complain(name, "\"" + std::string(name.text) + "\" has no value; it takes " + Expected(field));
      return;
    }
    Scalar(field, name);
  }

  void Scalar(const FieldDescriptor* field, const Token& name) {
    const Token start = Peek();
    if (IsLayer(blocks_.back().type) && field->name() == "type") blocks_.back().layer_type = start;
    const bool minus = TryTake('-');
    const std::string placeholder = Placeholder(lexed_.tokens, at_);
    const std::string complaint =
        placeholder.empty() ? CheckScalar(field, Peek(), minus) : PlaceholderFor(field, placeholder);
    if (!complaint.empty()) {
      Complain(start, Peek().Is('+') ? "\"" + std::string(name.text) + "\": remove the \"+\"" : complaint);
      SkipLine(Peek().line);
      return;
    }
    const bool is_text = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
    do {
      const Token token = Take();
      int column = token.column;
      const std::string wrong = IsPath(field) && !token.bad ? CheckPath(field, token, &column) : "";
      if (!wrong.empty()) Complain(token.line, column, wrong);
    } while (is_text && lexed_.tokens[at_ - 1].kind == TokenKind::kString && Peek().kind == TokenKind::kString);
  }

  void Nested(const FieldDescriptor* field, const Token& name) {
    const char close = Take().Is('{') ? '}' : '>';
    int indentation = name.column - 1;
    for (size_t i = at_; i-- > 0 && lexed_.tokens[i].line == name.line;) indentation = lexed_.tokens[i].column - 1;
    blocks_.push_back({field->message_type(), name, indentation, {}, at_});
    if (blocks_.size() == 2) suspect_.reset();
    Fields(close);
    if (IsLayer(blocks_.back().type)) CheckType(blocks_.back());
    if (!Leaving()) Close();
    blocks_.pop_back();
    if (unwind_to_ == static_cast<int>(blocks_.size()) - 1) unwind_to_ = -1;
  }

  void Close() {
    const Block& block = blocks_.back();
    const Token& token = Peek();
    if (token.kind == TokenKind::kEnd) {
      Unclosed(block);
      unwind_to_ = 0;
      return;
    }
    if (token.first_on_line && token.line != block.name.line && token.column - 1 < block.indentation && !suspect_) {
      suspect_ = block.name;
    }
    Take();
    for (int i = 0; i < block.type->field_count(); ++i) {
      const FieldDescriptor* field = block.type->field(i);
      if (!field->is_required() || block.seen.count(field)) continue;
      Complain(block.name, "\"" + std::string(block.name.text) + "\" needs \"" + std::string(field->name()) + "\"");
    }
  }

  // A brace that is missing shows late, but a closing brace left of its own block's indentation shows whose it is.
  void Unclosed(const Block& block) {
    const Token& name = suspect_ ? *suspect_ : block.name;
    Complain(name, "the block \"" + std::string(name.text) + "\" opened here has no closing \"}\"");
    suspect_.reset();
  }

  // At a field that the innermost block does not have: a `layer {` that an enclosing block has shows a missing "}".
  bool MissingBrace() {
    if ((Peek().text != "layer" && Peek().text != "layers") || !OpensBlock(1)) return false;
    for (int i = static_cast<int>(blocks_.size()) - 2; i >= 0; --i) {
      if (!blocks_[i].type->FindFieldByName(std::string(Peek().text))) continue;
      Unclosed(blocks_[i + 1]);
      unwind_to_ = i;
      return true;
    }
    return false;
  }

  const LexedText& lexed_;
  std::string file_;
  size_t at_ = 0;
  std::vector<Block> blocks_;
  std::optional<Token> suspect_;
  int unwind_to_ = -1;
  bool other_file_ = false;
  std::set<std::string> old_fields_;
  std::vector<Diagnostic> types_of_forks_;  // that nothing else is wrong with
  std::vector<Diagnostic> errors_;
};

}  // namespace

std::vector<Diagnostic> CheckText(std::string_view text, const std::string& file, const Descriptor* root) {
  const LexedText lexed = Lex(text);
  return Checker(lexed, file).Run(root);
}

}  // namespace crema
