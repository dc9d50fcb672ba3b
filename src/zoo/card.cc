#include "zoo/card.h"

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "base/lower_case.h"
#include "base/suggest.h"
#include "base/trimmed.h"
#include "crema/error.h"

namespace crema {

namespace {

struct Field {
  const char* name;
  std::string Card::*value;
};

constexpr std::array<Field, 11> kFields = {{{"name", &Card::name},
                                            {"summary", &Card::summary},
                                            {"weights", &Card::weights},
                                            {"weights_url", &Card::weights_url},
                                            {"weights_sha256", &Card::weights_sha256},
                                            {"parameters", &Card::parameters},
                                            {"flops", &Card::flops},
                                            {"input", &Card::input},
                                            {"data", &Card::data},
                                            {"accuracy", &Card::accuracy},
                                            {"license", &Card::license}}};

std::vector<std::string> FieldNames() {
  std::vector<std::string> names;
  for (const Field& field : kFields) names.emplace_back(field.name);
  return names;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  Card Run() {
    if (NextLine() != "---") {
      throw UserError({file_, 1, 1}, "a card begins with a line \"---\", lines \"name: value\", and another \"---\"");
    }
    while (true) {
      if (rest_.empty()) throw UserError({file_, 1, 1}, "the line \"---\" that ends the fields is missing");
      const std::string_view line = Trimmed(NextLine());
      if (line == "---") break;
      if (!line.empty() && line[0] != '#') ReadField(line);
    }
    card_.text = std::string(rest_);
    line_ = 1;
    Check();
    diagnostics_.ThrowIfErrors();
    return card_;
  }

 private:
  std::string_view NextLine() {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  void Error(const std::string& message) { diagnostics_.Error({file_, line_, 0}, message); }

  void ReadField(std::string_view line) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) {
      return Error("expected \"name: value\", got \"" + std::string(line) + "\"");
    }
    const std::string name(Trimmed(line.substr(0, colon)));
    std::string value(Trimmed(line.substr(colon + 1)));
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    const auto field =
        std::find_if(kFields.begin(), kFields.end(), [&](const Field& known) { return known.name == name; });
    if (field == kFields.end()) {
      return Error("there is no field \"" + name + "\"" + DidYouMean(name, FieldNames()));
    }
    if (!seen_.insert(name).second) return Error("\"" + name + "\" is set twice; keep one");
    if (value.empty()) return Error("\"" + name + "\" has no value; give one, or leave the line out");
    card_.*(field->value) = value;
  }

  void Check() {
    if (card_.name.empty()) Error("the field \"name\" is missing: that of the folder");
    if (card_.summary.empty()) Error("the field \"summary\" is missing: what the net is, in a line");
    if (card_.weights.find('/') != std::string::npos || card_.weights == "..") {
      Error("weights: \"" + card_.weights + "\" is a path; expected the name of a file beside the card");
    }
    if (!card_.weights_url.empty() && card_.weights.empty())
      Error("weights_url is set without weights, the file's name");
    if (card_.weights.empty() != card_.weights_sha256.empty()) {
      Error("weights and weights_sha256 belong together; `sha256sum FILE` prints the sum");
    }
    std::string& sum = card_.weights_sha256;
    sum = LowerCase(sum);
    if (!sum.empty() && (sum.size() != 64 || sum.find_first_not_of("0123456789abcdef") != std::string::npos)) {
      Error("weights_sha256: expected 64 hexadecimal digits, as `sha256sum FILE` prints");
    }
    const std::string& url = card_.weights_url;
    if (!url.empty() && !url.starts_with("https://") && !url.starts_with("http://") && !url.starts_with("file://")) {
      Error("weights_url: expected https://, http:// or file://, got \"" + url + "\"");
    }
  }

  std::string_view rest_;
  const std::string& file_;
  int line_ = 0;
  Card card_;
  std::set<std::string> seen_;
  Diagnostics diagnostics_;
};

}  // namespace

Card ParseCard(std::string_view text, const std::string& file) { return Parser(text, file).Run(); }

}  // namespace crema
