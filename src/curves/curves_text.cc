#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "base/number_text.h"
#include "base/printable.h"
#include "base/text_table.h"
#include "curves/panels.h"

namespace crema {

namespace {

constexpr int kColumns = 72, kRows = 12;  // characters of a drawing
constexpr int kDotsAcross = 2, kDotsDown = 4;

// Dots in characters: the Braille patterns of Unicode, of two by four dots each.
class DotCanvas {
 public:
  void Dot(double across, double down) {
    const int x =
        std::clamp(static_cast<int>(std::lround(across * (kColumns * kDotsAcross - 1))), 0, kColumns * kDotsAcross - 1);
    const int y = std::clamp(static_cast<int>(std::lround(down * (kRows * kDotsDown - 1))), 0, kRows * kDotsDown - 1);
    constexpr std::array<std::array<int, kDotsAcross>, kDotsDown> kBits = {
        {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
    cells_[static_cast<size_t>(y / kDotsDown)][static_cast<size_t>(x / kDotsAcross)] |=
        kBits[static_cast<size_t>(y % kDotsDown)][static_cast<size_t>(x % kDotsAcross)];
  }

  void Line(double x1, double y1, double x2, double y2) {
    for (double* at : {&x1, &y1, &x2, &y2}) *at = std::clamp(*at, 0.0, 1.0);
    const double steps =
        1 + std::max(std::fabs(x2 - x1) * kColumns * kDotsAcross, std::fabs(y2 - y1) * kRows * kDotsDown);
    for (double i = 0; i <= steps; ++i) Dot(x1 + (x2 - x1) * i / steps, y1 + (y2 - y1) * i / steps);
  }

  std::string Row(int row) const {
    std::string text;
    for (const int bits : cells_[static_cast<size_t>(row)]) {
      const int code = 0x2800 + bits;
      text += static_cast<char>(0xE0 | code >> 12);
      text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
      text += static_cast<char>(0x80 | (code & 0x3F));
    }
    return text;
  }

 private:
  std::array<std::array<int, kColumns>, kRows> cells_ = {};
};

std::string Drawn(const Panel& panel, const Axis& progress, const CurveOptions& options) {
  DotCanvas canvas;
  for (const ShownCurve& shown : panel.curves) {
    const std::vector<CurvePoint>& all = shown.curve->points;
    const std::vector<CurvePoint> points = Thinned(all, kColumns * kDotsAcross);
    for (size_t i = 0; i < points.size(); ++i) {
      const CurvePoint& from = points[i == 0 ? 0 : i - 1];
      canvas.Line(progress.Place(Progress(from, options)), 1 - panel.values.Place(from.value),
                  progress.Place(Progress(points[i], options)), 1 - panel.values.Place(points[i].value));
    }
  }
  std::array<std::string, kRows> labels;
  size_t widest = 0;
  for (const Tick& tick : ValueTicks(panel.values, 4)) {
    const auto row = std::lround((1 - panel.values.Place(tick.value)) * (kRows - 1));
    labels[static_cast<size_t>(std::clamp<long>(row, 0, kRows - 1))] = tick.label;
    widest = std::max(widest, tick.label.size());
  }
  std::string text = panel.title + (panel.values.logarithmic ? " (logarithmic)" : "") + ":\n";
  for (int row = 0; row < kRows; ++row) {
    const std::string& label = labels[static_cast<size_t>(row)];
    text += std::string(2 + widest - label.size(), ' ') + label + " |" + canvas.Row(row) + "\n";
  }
  std::string ticks(widest + 4 + kColumns, ' ');
  for (const Tick& tick : ProgressTicks(progress, 5, options)) {
    const auto at = static_cast<size_t>(std::lround(progress.Place(tick.value) * (kColumns - 1))) + widest + 4;
    const size_t begin = std::min(at - std::min(at, tick.label.size() / 2), ticks.size() - tick.label.size());
    ticks.replace(begin, tick.label.size(), tick.label);
  }
  return text + ticks.substr(0, ticks.find_last_not_of(' ') + 1) + "\n";
}

}  // namespace

std::string CurvesText(const std::vector<TrainingRun>& runs, const CurveOptions& options) {
  std::string text;
  for (const TrainingRun& run : runs) {
    text += (text.empty() ? "" : "\n") + run.name + (run.net.empty() ? "" : " (" + run.net + ")") + ": iteration " +
            FormatCount(run.iteration) + (run.max_iter > 0 ? " of " + FormatCount(run.max_iter) : "") +
            (run.ended ? ", ended" : "") + "\n";
    if (run.not_finite_from >= 0) {
      text += "a loss is not finite (nan, inf) from iteration " + FormatCount(run.not_finite_from) + " on\n";
    }
    TextTable table({"curve", ">points", ">first", ">last", ">best", ">at iteration"});
    for (const Curve& curve : run.curves) {
      const bool rate = curve.kind == CurveKind::kLearningRate;
      const CurvePoint& best = BestPoint(curve);
      table.AddRow({rate ? curve.output : CurveLabel(curve) + " " + curve.output, FormatCount(curve.points.size()),
                    FormatNumber(curve.points.front().value), FormatNumber(curve.points.back().value),
                    rate ? "" : FormatNumber(best.value), rate ? "" : FormatCount(best.iteration)});
    }
    text += table.ToString();
  }
  const Axis progress = ProgressAxis(runs, options);
  for (const Panel& panel : Panels(runs)) {
    const bool of_losses = panel.curves[0].curve->is_loss();
    if (of_losses) text += "\n" + Drawn(panel, progress, options);
  }
  return Harmless(std::move(text));
}

}  // namespace crema
