#include "zoo/card_text.h"

#include <algorithm>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/trimmed.h"
#include "base/utf8.h"

namespace crema {

namespace {

// Breaks at blanks; lines after the first begin with `indent` blanks.
std::string Wrapped(const std::string& text, size_t width, size_t indent) {
  std::istringstream words(text);
  std::string result, word;
  for (size_t column = indent; words >> word;) {
    const size_t length = Utf8Characters(word);
    if (!result.empty() && column + 1 + length > width) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!result.empty()) {
      result += " ";
      ++column;
    }
    result += word;
    column += length;
  }
  return result + "\n";
}

std::string Row(const std::string& name, const std::string& value, size_t width) {
  constexpr size_t kNames = 16;
  if (value.empty()) return "";
  std::string padded = name;
  padded.resize(std::max(name.size() + 1, kNames), ' ');
  return padded + Wrapped(value, width, padded.size());
}

// "| a | b |" as its cells.
std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream parts(line.substr(1));
  for (std::string part; std::getline(parts, part, '|');) {
    cells.emplace_back(Trimmed(part));
  }
  return cells;
}

std::string TableRow(const std::string& line, size_t width) {
  const std::vector<std::string> cells = Cells(line);
  const auto is_mark = [](const std::string& cell) { return cell.find_first_not_of("-: ") == std::string::npos; };
  if (std::all_of(cells.begin(), cells.end(), is_mark)) return "";
  std::string rest;
  for (size_t i = 1; i < cells.size(); ++i) rest += (i > 1 ? "  " : "") + cells[i];
  return Row(cells[0], rest, width);
}

// "[text](address)" as "text".
std::string WithoutLinks(std::string_view line) {
  std::string text;
  while (true) {
    const size_t middle = line.find("]("), end = line.find(')', middle);
    if (middle == std::string_view::npos || end == std::string_view::npos) return text.append(line);
    const size_t begin = line.substr(0, middle).rfind('[');
    const bool is_link = begin != std::string_view::npos;
    text += line.substr(0, is_link ? begin : middle + 1);
    if (is_link) text += line.substr(begin + 1, middle - begin - 1);
    line.remove_prefix(is_link ? end + 1 : middle + 1);
  }
}

}  // namespace

std::string CardText(const ZooModel& model, int width) {
  const auto columns = static_cast<size_t>(width);
  const Card& card = model.card;
  std::string weights = model.weights_status();
  if (!card.weights.empty()) weights += ", " + card.weights;
  std::string text = Row("name", card.name, columns) + Row("summary", card.summary, columns) +
                     Row("input", card.input, columns) + Row("parameters", card.parameters, columns) +
                     Row("flops", card.flops, columns) + Row("data", card.data, columns) +
                     Row("accuracy", card.accuracy, columns) + Row("weights", weights, columns) +
                     Row("  from", card.weights_url, columns) + Row("  sha256", card.weights_sha256, columns) +
                     Row("license", card.license, columns) + Row("folder", model.folder, columns);
  std::istringstream lines(card.text);
  std::string paragraph;
  const auto flush = [&] {
    if (!paragraph.empty()) text += Wrapped(paragraph, columns, 0);
    paragraph.clear();
  };
  for (std::string line; std::getline(lines, line);) {
    line = WithoutLinks(line);
    if (line.starts_with("    ") || line.empty()) {
      flush();
      if (!(line.empty() && text.ends_with("\n\n"))) text += line + "\n";
    } else if (line[0] == '|') {
      flush();
      text += TableRow(line, columns);
    } else if (line[0] == '#') {
      flush();
      text += line.substr(line.find_first_not_of("# ") == std::string::npos ? 0 : line.find_first_not_of("# ")) + "\n";
    } else if (line.starts_with("- ")) {
      flush();
      paragraph = line;
    } else {
      paragraph += (paragraph.empty() ? "" : " ") + line;
    }
  }
  flush();
  return text;
}

}  // namespace crema
