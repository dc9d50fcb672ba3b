#include "curves/run_files.h"

#include <algorithm>

#include "base/number_text.h"

namespace crema {

std::string RunFiles::Points(const TrainingRun& run, const std::string& name) {
  const std::vector<std::string> names = Names(run);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return "";
  std::string text;
  for (const CurvePoint& point : run.curves[static_cast<size_t>(found - names.begin())].points) {
    text += (text.empty() ? "" : " ") + std::to_string(point.iteration) + ":" + FormatNumber(point.value);
  }
  return text;
}

}  // namespace crema
