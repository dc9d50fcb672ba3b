#include "curves/curve_writers.h"

#include <charconv>
#include <cmath>
#include <map>
#include <ranges>

#include "base/atomic_file.h"
#include "base/listed.h"
#include "base/number_text.h"
#include "crema/error.h"
#include "curves/event_folder.h"
#include "report/csv.h"
#include "report/svg.h"

namespace crema {

namespace {

// The fewest digits that read as the same float, which values are in records and logs: 0.1, not 0.100000001.
std::string Written(double value) {
  const float number = static_cast<float>(value);
  if (!std::isfinite(number)) return FormatNumber(value, "%.9g");
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

}  // namespace

std::string CurvesHtml(const std::vector<TrainingRun>& runs, const CurveOptions& options) {
  const std::string title = Listed(runs | std::views::transform(&TrainingRun::name), {.most = kAllNames});
  return "<!DOCTYPE html>\n<html>\n<head>\n<meta charset=\"utf-8\">\n" +
         std::string(options.reload ? "<meta http-equiv=\"refresh\" content=\"3\">\n" : "") + "<title>" +
         XmlEscaped(title) + "</title>\n</head>\n<body>\n" + CurvesSvg(runs, options) + "</body>\n</html>\n";
}

std::string CurvesCsv(const std::vector<TrainingRun>& runs) {
  std::vector<std::string> headings;
  std::map<std::string, size_t> columns;
  const auto heading = [](const Curve& curve) {
    return curve.kind == CurveKind::kLearningRate ? curve.output : CurveLabel(curve) + " " + curve.output;
  };
  for (const TrainingRun& run : runs) {
    for (const Curve& curve : run.curves) {
      if (columns.emplace(heading(curve), headings.size()).second) headings.push_back(heading(curve));
    }
  }
  constexpr size_t kFirst = 3;  // columns before those of the curves
  std::vector<std::string> fields = {"run", "iteration", "seconds"};
  fields.insert(fields.end(), headings.begin(), headings.end());
  std::string csv = CsvLine(fields);
  for (const TrainingRun& run : runs) {
    std::map<int, std::vector<std::string>> lines;
    for (const Curve& curve : run.curves) {
      for (const CurvePoint& point : curve.points) {
        std::vector<std::string>& line = lines[point.iteration];
        if (line.empty()) {
          line = {run.name, std::to_string(point.iteration), FormatNumber(point.seconds, "%.3f")};
          line.resize(fields.size());
        }
        line[kFirst + columns[heading(curve)]] = Written(point.value);
      }
    }
    for (const auto& [iteration, line] : lines) csv += CsvLine(line);
  }
  return csv;
}

bool IsEventFolder(const std::string& path) { return path.ends_with('/'); }

void CheckCurveFile(const std::string& path, bool table) {
  if (path.ends_with(".svg") || path.ends_with(".html") || (table && path.ends_with(".csv"))) return;
  if (IsEventFolder(path)) return;
  throw UserError(Location{path, 0, 0}, std::string("curves are drawn into files that end with .svg or .html") +
                                            (table ? ", numbers are written into .csv" : "") +
                                            ", and for TensorBoard into a folder, which ends with /");
}

void WriteCurves(const std::vector<TrainingRun>& runs, const CurveOptions& options, const std::string& path) {
  CheckCurveFile(path, true);
  if (IsEventFolder(path)) return EventFolder(path).Write(runs);
  WriteWholeFile(path, path.ends_with(".csv")    ? CurvesCsv(runs)
                       : path.ends_with(".html") ? CurvesHtml(runs, options)
                                                 : kXmlHead + CurvesSvg(runs, options));
}

}  // namespace crema
