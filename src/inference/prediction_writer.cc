#include "inference/prediction_writer.h"

#include <algorithm>

#include "base/number_text.h"
#include "report/classification_report.h"
#include "report/csv.h"
#include "report/json_writer.h"

namespace crema {

namespace {

const char* ScoreName(const PredictionOptions& options) { return options.probabilities ? "probability" : "score"; }

std::vector<int> LabelsOf(const ScoredImage& scored) {
  std::vector<int> labels;
  for (const float label : scored.scores) {
    if (label < 0) break;
    labels.push_back(static_cast<int>(label));
  }
  return labels;
}

// Whether every name but that of the blank is one character of UTF-8, as those of an alphabet are.
bool AreCharacters(const std::vector<std::string>& names, int blank) {
  const auto begins_character = [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; };
  for (size_t i = 0; i < names.size(); ++i) {
    if (static_cast<int>(i) == blank) continue;
    if (std::count_if(names[i].begin(), names[i].end(), begins_character) != 1) return false;
  }
  return !names.empty();
}

std::string TextOf(const PredictionOptions& options, const std::vector<int>& labels) {
  const char* between = AreCharacters(options.labels, options.blank) ? "" : " ";
  std::string text;
  for (const int label : labels) text += (text.empty() ? "" : between) + ClassName(options.labels, label);
  return text;
}

void WriteSequence(const PredictionOptions& options, const ScoredImage& scored, JsonWriter* json) {
  const std::vector<int> labels = LabelsOf(scored);
  json->Key("labels");
  json->BeginArray();
  for (const int label : labels) json->Integer(label);
  json->EndArray();
  json->Field("text", TextOf(options, labels));
}

std::string JsonLine(const PredictionOptions& options, const std::string& image, const ScoredImage& scored,
                     const std::vector<int>& best) {
  JsonWriter json;
  json.BeginObject();
  json.Field("image", image);
  if (!scored.problem.empty()) {
    json.Field("error", scored.problem);
  } else if (options.sequences) {
    WriteSequence(options, scored, &json);
  } else {
    json.Key("predictions");
    json.BeginArray();
    for (const int index : best) {
      json.BeginObject();
      json.Field("class", index);
      if (!options.labels.empty()) {
        json.Field("label", options.labels[index]);
      }
      json.Field(ScoreName(options), scored.scores[index]);
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace

std::string ClassName(const std::vector<std::string>& labels, int index) {
  return labels.empty() ? std::to_string(index) : labels[index];
}

std::string PredictionHeading(const PredictionOptions& options) {
  if (options.format != PredictionFormat::kCsv) return "";
  return options.sequences ? "image,text\n" : std::string("image,rank,class,label,") + ScoreName(options) + "\n";
}

std::string PredictionLines(const PredictionOptions& options, const std::string& image, const ScoredImage& scored) {
  const std::vector<int> best = options.sequences ? std::vector<int>() : HighestScores(scored.scores, options.top);
  if (options.format == PredictionFormat::kJson) return JsonLine(options, image, scored, best);
  if (!scored.problem.empty()) return "";
  if (options.sequences) {
    const std::string told = TextOf(options, LabelsOf(scored));
    return options.format == PredictionFormat::kCsv ? CsvLine({image, told}) : image + "\n  " + told + "\n";
  }
  std::string text = options.format == PredictionFormat::kText ? image + "\n" : "";
  int rank = 0;
  for (const int index : best) {
    const float score = scored.scores[index];
    ++rank;
    if (options.format == PredictionFormat::kCsv) {
      text += CsvLine({image, std::to_string(rank), std::to_string(index), ClassName(options.labels, index),
                       FormatNumber(score, "%.9g")});
    } else {
      const std::string shown =
          options.probabilities ? FormatNumber(100 * score, "%7.2f%%") : FormatNumber(score, "%10.4f");
      text += "  " + shown + "  " + ClassName(options.labels, index) + "\n";
    }
  }
  return text;
}

}  // namespace crema
