#include "darknet/cfg_file.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/printable.h"
#include "base/trimmed.h"
#include "crema/error.h"
#include "schema/text_file.h"

namespace crema::darknet {

namespace {

constexpr size_t kMostSections = 10000;
constexpr size_t kMostShown = 60;  // characters of a line that is complained about

std::string Quoted(std::string_view line) {
  return "\"" + Printable(line.substr(0, kMostShown)) + (line.size() > kMostShown ? "..." : "") + "\"";
}

std::string WithoutBlanks(std::string_view text) {
  std::string rest;
  std::copy_if(text.begin(), text.end(), std::back_inserter(rest), [](char c) { return c != ' ' && c != '\t'; });
  return rest;
}

class Parser {
 public:
  explicit Parser(const std::string& name) : name_(name) {}

  std::vector<CfgSection> Parse(std::string_view text) {
    for (size_t at = 0; at < text.size() && !problems_.enough();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      ++line_;
      ReadLine(Trimmed(text.substr(at, end - at)));
      at = end + 1;
    }
    if (sections_.empty() && !problems_.has_errors()) {
      problems_.Error({name_, 0, 0}, "has no sections; a .cfg of Darknet begins with [net]");
    }
    problems_.ThrowIfErrors();
    return std::move(sections_);
  }

 private:
  void ReadLine(std::string_view line) {
    if (line.empty() || line[0] == '#' || line[0] == ';') return;
    const std::string_view whole = line;
    line = Trimmed(line.substr(0, line.find('#')));
    if (line[0] == '[') return ReadHeading(line);
    const size_t equals = line.find('=');
    const std::string key = WithoutBlanks(line.substr(0, equals));
    const std::string value = equals == std::string_view::npos ? "" : WithoutBlanks(line.substr(equals + 1));
    if (equals == std::string_view::npos || key.empty()) {
      return Error(Quoted(whole) + " is neither a [section] nor key=value nor a comment; correct or remove it");
    }
    if (value.empty()) return Error("\"" + Printable(key) + "\" has no value; give it one, or remove the line");
    if (sections_.empty()) {
      return Error(Quoted(whole) + " stands before any section; a .cfg of Darknet begins with [net]");
    }
    sections_.back().entries.push_back({key, value, line_});
  }

  void ReadHeading(std::string_view line) {
    if (line.size() < 3 || line.back() != ']' || line.find(']') != line.size() - 1) {
      return Error(Quoted(line) + " is no heading of a section; write [convolutional], say, in a line of its own");
    }
    if (sections_.size() == kMostSections) {
      throw UserError({name_, line_, 0}, "has more than " + std::to_string(kMostSections) +
                                             " sections, which no net has; is it the right file?");
    }
    sections_.push_back({WithoutBlanks(line.substr(1, line.size() - 2)), line_, {}});
  }

  void Error(const std::string& message) { problems_.Error({name_, line_, 0}, message); }

  const std::string name_;
  Diagnostics problems_;
  std::vector<CfgSection> sections_;
  int line_ = 0;
};

}  // namespace

std::vector<CfgSection> ParseCfg(const std::string& text, const std::string& name) {
  const size_t nul = text.find('\0');
  if (nul != std::string::npos) {
    throw UserError({name, 0, 0}, "is a binary file (byte " + std::to_string(nul) +
                                      " is zero), not a .cfg of Darknet; its weights are given with --weights");
  }
  std::string_view rest = text;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);  // of UTF-8
  return Parser(name).Parse(rest);
}

std::vector<CfgSection> ReadCfgFile(const std::string& path) { return ParseCfg(ReadTextFile(path, ".cfg"), path); }

}  // namespace crema::darknet
