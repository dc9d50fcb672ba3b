#include "inference/prediction_writer.h"

#include "base/number_text.h"
#include "report/classification_report.h"
#include "report/csv.h"
#include "report/json_writer.h"

namespace crema {

namespace {

const char* ScoreName(const PredictionOptions& options) { return options.probabilities ? "probability" : "score"; }

std::string NameOf(const PredictionOptions& options, int index) {
  return options.labels.empty() ? std::to_string(index) : options.labels[index];
}

std::string JsonLine(const PredictionOptions& options, const std::string& image, const ScoredImage& scored,
                     const std::vector<int>& best) {
  JsonWriter json;
  json.BeginObject();
  json.Key("image");
  json.String(image);
  if (!scored.problem.empty()) {
    json.Key("error");
    json.String(scored.problem);
  } else {
    json.Key("predictions");
    json.BeginArray();
    for (const int index : best) {
      json.BeginObject();
      json.Key("class");
      json.Integer(index);
      if (!options.labels.empty()) {
        json.Key("label");
        json.String(options.labels[index]);
      }
      json.Key(ScoreName(options));
      json.Number(scored.scores[index]);
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace

std::string PredictionHeading(const PredictionOptions& options) {
  return options.format == PredictionFormat::kCsv ? std::string("image,rank,class,label,") + ScoreName(options) + "\n"
                                                  : "";
}

std::string PredictionLines(const PredictionOptions& options, const std::string& image, const ScoredImage& scored) {
  const std::vector<int> best = HighestScores(scored.scores, options.top);
  if (options.format == PredictionFormat::kJson) return JsonLine(options, image, scored, best);
  if (!scored.problem.empty()) return "";
  std::string text = options.format == PredictionFormat::kText ? image + "\n" : "";
  int rank = 0;
  for (const int index : best) {
    const float score = scored.scores[index];
    ++rank;
    if (options.format == PredictionFormat::kCsv) {
      text += CsvLine(
          {image, std::to_string(rank), std::to_string(index), NameOf(options, index), FormatNumber(score, "%.9g")});
    } else {
      const std::string shown =
          options.probabilities ? FormatNumber(100 * score, "%7.2f%%") : FormatNumber(score, "%10.4f");
      text += "  " + shown + "  " + NameOf(options, index) + "\n";
    }
  }
  return text;
}

}  // namespace crema
