#include "curves/panels.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/duration.h"
#include "base/number_text.h"

namespace crema {

namespace {

constexpr size_t kLongestSummary = 70;
constexpr size_t kMostCurves = 12;       // of a panel
constexpr double kLogarithmicSpan = 20;  // from the smallest to the largest value; of losses, which fall fast at first:
constexpr double kLogarithmicSpanOfLosses = 5;

Axis ValueAxis(const std::vector<ShownCurve>& curves) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const ShownCurve& shown : curves) {
    for (const CurvePoint& point : shown.curve->points) {
      low = std::min(low, point.value);
      high = std::max(high, point.value);
    }
  }
  Axis axis;
  const bool of_losses = curves[0].curve->is_loss();
  axis.logarithmic =
      low > 1e-30 && high < 1e30 && high / low > (of_losses ? kLogarithmicSpanOfLosses : kLogarithmicSpan);
  if (axis.logarithmic) {
    const double margin = std::pow(high / low, 0.04);
    return {low / margin, high * margin, true};
  }
  // Differences of what is farther out are infinite.
  low = std::clamp(low, -1e300, 1e300);
  high = std::clamp(high, -1e300, 1e300);
  double margin = 0.05 * (high - low);
  if (margin <= std::fabs(high) * 1e-9) margin = high == 0 ? 1 : 0.1 * std::fabs(high);
  return {low - margin, high + margin, false};
}

// The smallest of 1, 2 and 5 times a power of ten that is at least `step`.
double RoundStep(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> LinearTicks(const Axis& axis, double step, std::string (*label)(double)) {
  std::vector<Tick> ticks;
  for (double at = std::ceil(axis.low / step - 1e-9); at * step <= axis.high + 1e-9 * step; ++at) {
    ticks.push_back({at * step, label(at * step)});
  }
  return ticks;
}

std::string ValueLabel(double value) { return FormatNumber(std::fabs(value) < 1e-12 ? 0 : value, "%.6g"); }
std::string IterationLabel(double value) { return FormatCount(std::llround(value)); }

}  // namespace

double Axis::Place(double value) const {
  return logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
}

std::vector<Panel> Panels(const std::vector<TrainingRun>& runs) {
  std::vector<Panel> panels;
  Panel rate;
  for (size_t r = 0; r < runs.size(); ++r) {
    for (const Curve& curve : runs[r].curves) {
      Panel* panel = &rate;
      if (curve.kind != CurveKind::kLearningRate) {
        auto found =
            std::find_if(panels.begin(), panels.end(), [&curve](const Panel& p) { return p.title == curve.output; });
        if (found == panels.end()) found = panels.insert(found, Panel{curve.output, {}, 0, {}});
        panel = &*found;
      }
      panel->title = curve.output;
      if (panel->curves.size() == kMostCurves) {
        ++panel->left_out;
        continue;
      }
      std::string label = curve.kind == CurveKind::kLearningRate ? "" : CurveLabel(curve);
      if (runs.size() > 1) label = runs[r].name + (label.empty() ? "" : ": " + label);
      panel->curves.push_back({&curve, r, label});
    }
  }
  if (!rate.curves.empty()) panels.push_back(rate);
  for (Panel& panel : panels) panel.values = ValueAxis(panel.curves);
  return panels;
}

double Progress(const CurvePoint& point, const CurveOptions& options) {
  return options.over_time ? point.seconds : point.iteration;
}

Axis ProgressAxis(const std::vector<TrainingRun>& runs, const CurveOptions& options) {
  Axis axis{0, 0, false};
  for (const TrainingRun& run : runs) {
    for (const Curve& curve : run.curves) axis.high = std::max(axis.high, Progress(curve.points.back(), options));
  }
  if (axis.high <= 0) axis.high = 1;
  return axis;
}

std::vector<Tick> ValueTicks(const Axis& axis, int wanted) {
  if (!axis.logarithmic) return LinearTicks(axis, RoundStep((axis.high - axis.low) / wanted), ValueLabel);
  std::vector<Tick> ticks;
  const double decades = std::log10(axis.high / axis.low);
  const int step = std::max(1, static_cast<int>(std::lround(decades / wanted)));
  for (double power = std::floor(std::log10(axis.low)); power <= std::log10(axis.high); power += step) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, power);
      if ((factor > 1 && decades > wanted / 2.0) || value < axis.low || value > axis.high) continue;
      ticks.push_back({value, ValueLabel(value)});
    }
  }
  return ticks;
}

std::vector<Tick> ProgressTicks(const Axis& axis, int wanted, const CurveOptions& options) {
  const double span = axis.high - axis.low;
  if (!options.over_time) return LinearTicks(axis, std::max(1.0, RoundStep(span / wanted)), IterationLabel);
  for (const double step :
       {1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 21600.0, 43200.0, 86400.0}) {
    if (step >= span / wanted) return LinearTicks(axis, step, FormatDuration);
  }
  return LinearTicks(axis, 86400 * RoundStep(span / wanted / 86400), FormatDuration);
}

std::vector<CurvePoint> Smoothed(const std::vector<CurvePoint>& points, size_t width) {
  std::vector<CurvePoint> smoothed = points;
  for (size_t i = 0; i < points.size(); ++i) {
    // As far to both sides, so that the curve does not lag behind.
    const size_t half = std::min({width / 2, i, points.size() - 1 - i});
    // Each anew: in differences of running sums one spike would drown all that comes behind it.
    double sum = 0;
    for (size_t k = i - half; k <= i + half; ++k) sum += points[k].value;
    smoothed[i].value = sum / static_cast<double>(2 * half + 1);
  }
  return smoothed;
}

std::vector<CurvePoint> Thinned(const std::vector<CurvePoint>& points, size_t most) {
  const size_t together = (points.size() + most - 1) / most;
  if (together <= 1) return points;
  std::vector<CurvePoint> thinned;
  for (size_t i = 0; i < points.size(); i += together) {
    const size_t end = std::min(points.size(), i + together);
    CurvePoint mean = points[(i + end - 1) / 2];
    mean.value = 0;
    for (size_t k = i; k < end; ++k) mean.value += points[k].value / static_cast<double>(end - i);
    thinned.push_back(mean);
  }
  return thinned;
}

std::string TestSummary(const TrainingRun& run) {
  std::string text;
  for (const Curve& curve : run.curves) {
    if (curve.kind != CurveKind::kTest || !curve.element.empty()) continue;
    if (text.size() > kLongestSummary) return text + "; ...";
    const CurvePoint& best = BestPoint(curve);
    text += (text.empty() ? "" : "; ") + CurveLabel(curve) + " " + curve.output + " " +
            FormatNumber(curve.points.back().value, "%.4g");
    if (best.value != curve.points.back().value) {
      text += ", at best " + FormatNumber(best.value, "%.4g") + " at " + FormatCount(best.iteration);
    }
  }
  return text;
}

}  // namespace crema
