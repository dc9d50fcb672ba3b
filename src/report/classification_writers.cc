#include "report/classification_writers.h"

#include <limits>
#include <optional>
#include <vector>

#include "base/number_text.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "report/csv.h"

namespace crema {

namespace {

constexpr size_t kLongestName = 24;  // characters of a class's name in tables
constexpr size_t kMistakes = 10;     // the most frequent ones, in texts
constexpr int kLargestMatrix = 30;   // classes

std::string Share(const std::optional<double>& share) { return share ? FormatNumber(*share, "%.4f") : "-"; }

std::string Percent(double share) { return FormatNumber(100 * share, "%.2f%%"); }

std::string ClassTable(const ClassificationReport& report) {
  TextTable table({"class", ">precision", ">recall", ">F1", ">items"});
  for (int i = 0; i < report.class_count(); ++i) {
    const ClassScores scores = report.scores(i);
    table.AddRow({Utf8Shortened(report.classes()[i], kLongestName), Share(scores.precision), Share(scores.recall),
                  Share(scores.f1), FormatCount(scores.support)});
  }
  const ClassScores means = report.means();
  table.AddRule();
  table.AddRow(
      {"mean of classes", Share(means.precision), Share(means.recall), Share(means.f1), FormatCount(means.support)});
  return table.ToString();
}

// Columns are headed by the numbers that the rows bear.
std::string Matrix(const ClassificationReport& report) {
  std::vector<std::string> headings = {">", "class"};
  for (int i = 0; i < report.class_count(); ++i) headings.push_back(">" + std::to_string(i));
  TextTable table(headings);
  for (int label = 0; label < report.class_count(); ++label) {
    std::vector<std::string> row = {std::to_string(label), Utf8Shortened(report.classes()[label], kLongestName)};
    for (int predicted = 0; predicted < report.class_count(); ++predicted) {
      const int64_t count = report.count(label, predicted);
      row.push_back(count == 0 ? "." : std::to_string(count));
    }
    table.AddRow(row);
  }
  return table.ToString();
}

std::string Mistakes(const ClassificationReport& report) {
  TextTable table({"class", "taken for", ">items", ">of the class"});
  for (const Confusion& confusion : report.confusions(kMistakes)) {
    const auto share = static_cast<double>(confusion.count) / report.scores(confusion.label).support;
    table.AddRow({Utf8Shortened(report.classes()[confusion.label], kLongestName),
                  Utf8Shortened(report.classes()[confusion.predicted], kLongestName), FormatCount(confusion.count),
                  Percent(share)});
  }
  return table.ToString();
}

void JsonShare(const char* key, const std::optional<double>& share, JsonWriter* json) {
  json->Field(key, share.value_or(std::numeric_limits<double>::quiet_NaN()));
}

void JsonScores(const ClassScores& scores, JsonWriter* json) {
  JsonShare("precision", scores.precision, json);
  JsonShare("recall", scores.recall, json);
  JsonShare("f1", scores.f1, json);
}

}  // namespace

std::string ClassificationText(const ClassificationReport& report, int width) {
  std::string text = "accuracy " + Percent(report.accuracy()) + " (" + FormatCount(report.correct()) + " of " +
                     FormatCount(report.items()) + ")\n";
  if (report.has_top_k()) {
    text += "top-" + std::to_string(report.top_k()) + " accuracy " + Percent(report.top_k_accuracy()) + "\n";
  }
  text += "\n" + ClassTable(report);
  if (report.class_count() <= kLargestMatrix) {
    const std::string matrix = Matrix(report);
    const size_t rule_begin = matrix.find('\n') + 1, rule_end = matrix.find('\n', rule_begin);
    if (rule_end - rule_begin <= static_cast<size_t>(width)) {
      text += "\nconfusion matrix (rows: what the items are; columns: what they were taken for)\n" + matrix;
    }
  }
  if (report.class_count() > 2 && report.correct() < report.items()) {
    text += "\nmost frequent mistakes\n" + Mistakes(report);
  }
  return text;
}

std::string ConfusionCsv(const ClassificationReport& report) {
  std::vector<std::string> line = {"class"};
  line.insert(line.end(), report.classes().begin(), report.classes().end());
  std::string text = CsvLine(line);
  for (int label = 0; label < report.class_count(); ++label) {
    line = {report.classes()[label]};
    for (int predicted = 0; predicted < report.class_count(); ++predicted) {
      line.push_back(std::to_string(report.count(label, predicted)));
    }
    text += CsvLine(line);
  }
  return text;
}

void WriteClassificationJson(const ClassificationReport& report, JsonWriter* json) {
  json->BeginObject();
  json->Field("items", report.items());
  json->Field("accuracy", report.accuracy());
  if (report.has_top_k()) {
    json->Field("top_k", report.top_k());
    json->Field("top_k_accuracy", report.top_k_accuracy());
  }
  json->NewLine(1);
  json->Key("means");
  json->BeginObject();
  JsonScores(report.means(), json);
  json->EndObject();
  json->NewLine(1);
  json->Key("classes");
  json->BeginArray();
  for (int i = 0; i < report.class_count(); ++i) {
    const ClassScores scores = report.scores(i);
    json->NewLine(2);
    json->BeginObject();
    json->Field("name", report.classes()[i]);
    JsonScores(scores, json);
    json->Field("items", scores.support);
    json->Field("predicted", scores.predicted);
    json->EndObject();
  }
  json->EndArray();
  json->NewLine(1);
  json->Key("confusion");
  json->BeginArray();
  for (int label = 0; label < report.class_count(); ++label) {
    json->NewLine(2);
    json->BeginArray();
    for (int predicted = 0; predicted < report.class_count(); ++predicted)
      json->Integer(report.count(label, predicted));
    json->EndArray();
  }
  json->EndArray();
  json->EndObject();
}

}  // namespace crema
