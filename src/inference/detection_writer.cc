#include "inference/detection_writer.h"

#include "base/number_text.h"
#include "report/csv.h"
#include "report/json_writer.h"

namespace crema {

namespace {

std::string JsonLine(const DetectionOptions& options, const std::string& image, const DetectedImage& detected) {
  JsonWriter json;
  json.BeginObject();
  json.Field("image", image);
  if (!detected.problem.empty()) {
    json.Field("error", detected.problem);
  } else {
    json.Key("objects");
    json.BeginArray();
    for (const DetectedObject& object : detected.objects) {
      json.BeginObject();
      json.Field("class", object.label);
      if (!options.labels.empty()) {
        json.Field("label", options.labels[object.label]);
      }
      json.Field("score", object.score);
      json.Key("box");
      json.BeginArray();
      for (const float corner : {object.xmin, object.ymin, object.xmax, object.ymax}) json.Number(corner);
      json.EndArray();
      json.EndObject();
    }
    json.EndArray();
  }
  json.EndObject();
  return json.text() + "\n";
}

}  // namespace

std::string DetectionHeading(const DetectionOptions& options) {
  return options.format == PredictionFormat::kCsv ? "image,class,label,score,xmin,ymin,xmax,ymax\n" : "";
}

std::string DetectionLines(const DetectionOptions& options, const std::string& image, const DetectedImage& detected) {
  if (options.format == PredictionFormat::kJson) return JsonLine(options, image, detected);
  std::string text;
  for (const DetectedObject& object : detected.objects) {
    const std::string name = ClassName(options.labels, object.label);
    if (options.format == PredictionFormat::kCsv) {
      text += CsvLine({image, std::to_string(object.label), name, FormatNumber(object.score, "%.9g"),
                       FormatNumber(object.xmin, "%.9g"), FormatNumber(object.ymin, "%.9g"),
                       FormatNumber(object.xmax, "%.9g"), FormatNumber(object.ymax, "%.9g")});
    } else {
      text += image + "  " + name + "  " + FormatNumber(object.score, "%.4f") + " ";
      for (const float corner : {object.xmin, object.ymin, object.xmax, object.ymax}) {
        text += " " + FormatNumber(corner, "%.1f");
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace crema
