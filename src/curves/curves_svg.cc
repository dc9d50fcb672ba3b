#include <array>

#include "base/number_text.h"
#include "base/utf8.h"
#include "curves/panels.h"
#include "report/svg.h"

namespace crema {

namespace {

constexpr double kWidth = 860, kMargin = 16, kLeft = 76, kRight = 20;
constexpr double kTitle = 26, kLine = 18;                          // of the heading; of another line of text
constexpr double kPanel = 230, kPanelTop = 44, kPanelBottom = 26;  // a panel, of which above and below its axes
constexpr double kFont = 12, kSmallFont = 11, kCharacter = 0.58;   // width of one, of the font's size
constexpr size_t kLongestLabel = 40;
constexpr size_t kMostPoints = 1000, kMarked = 60;  // of a curve: drawn; with a mark each
constexpr size_t kSmoothedFrom = 100;               // points of a training curve

// Of Okabe and Ito, told apart by those who do not see all colours as well (Wong, Nature Methods 2011).
constexpr std::array<const char*, 7> kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#444444"};

std::string Coordinates(double x, double y) { return FormatNumber(x, "%.1f") + "," + FormatNumber(y, "%.1f"); }

std::string Line(double x1, double y1, double x2, double y2, const std::string& style) {
  return "<path d=\"M" + Coordinates(x1, y1) + " L" + Coordinates(x2, y2) + "\" " + style + "/>\n";
}

class Picture {
 public:
  Picture(const std::vector<TrainingRun>& runs, const CurveOptions& options)
      : runs_(runs), options_(options), panels_(Panels(runs)), progress_(ProgressAxis(runs, options)) {}

  std::string ToString() const {
    std::string body;
    double y = kMargin + kTitle - 8;
    body += SvgText(kMargin, y, 16, "start", Heading(), " font-weight=\"bold\"");
    if (runs_.size() == 1) {
      if (const std::string tests = TestSummary(runs_[0]); !tests.empty()) {
        body += SvgText(kMargin, y += kLine, kFont, "start", tests, " fill=\"#555555\"");
      }
    }
    y += 8;
    for (const Panel& panel : panels_) {
      body += Drawn(panel, y);
      y += kPanel;
    }
    const char* what = options_.over_time ? "time of training" : "iteration";
    body += SvgText((kLeft + kWidth - kRight) / 2, y += 10, kFont, "middle", what, " fill=\"#555555\"");
    return SvgHead(kWidth, y + kMargin) + body + "</svg>\n";
  }

 private:
  std::string Heading() const {
    if (runs_.size() > 1) return std::to_string(runs_.size()) + " runs";
    const TrainingRun& run = runs_[0];
    std::string text = (run.net.empty() ? run.name : run.net) + ", iteration " + FormatCount(run.iteration);
    if (run.max_iter > 0) text += " of " + FormatCount(run.max_iter);
    return run.not_finite_from < 0 ? text
                                   : text + ", a loss not finite from " + FormatCount(run.not_finite_from) + " on";
  }

  double X(double progress) const { return kLeft + progress_.Place(progress) * (kWidth - kRight - kLeft); }

  // Of one run: by curve. Of several: by run.
  std::string Colour(const Panel& panel, size_t i) const {
    size_t index = i;
    if (runs_.size() > 1) {
      index = panel.curves[i].run;
    } else if (panel.curves[i].curve->kind == CurveKind::kLearningRate) {
      index = kColours.size() - 1;
    } else if (panel.curves[0].curve->kind == CurveKind::kTest) {
      index = i + 1;  // the first colour is that of training
    }
    return kColours[index % kColours.size()];
  }

  std::string Drawn(const Panel& panel, double top) const {
    const double high = top + kPanelTop, low = top + kPanel - kPanelBottom;
    const auto y = [&](double value) { return low - panel.values.Place(value) * (low - high); };
    std::string svg =
        SvgText(kMargin, top + 20, 14, "start", panel.title + (panel.values.logarithmic ? " (logarithmic)" : ""),
                " font-weight=\"bold\"");
    for (const Tick& tick : ValueTicks(panel.values, 7)) {
      const double at = y(tick.value);
      svg += Line(kLeft, at, kWidth - kRight, at, "stroke=\"#e4e4e4\"");
      svg += SvgText(kLeft - 6, at + 4, kSmallFont, "end", tick.label, " fill=\"#555555\"");
    }
    for (const Tick& tick : ProgressTicks(progress_, 8, options_)) {
      const double at = X(tick.value);
      svg += Line(at, low, at, low + 4, "stroke=\"#888888\"");
      svg += SvgText(at, low + 17, kSmallFont, "middle", tick.label, " fill=\"#555555\"");
    }
    svg += Line(kLeft, low, kWidth - kRight, low, "stroke=\"#888888\"");
    std::string legend;
    double x = kLeft, legend_y = top + 36;
    for (size_t i = 0; i < panel.curves.size(); ++i) {
      const ShownCurve& shown = panel.curves[i];
      const std::string colour = Colour(panel, i);
      std::string label = Utf8Shortened(shown.label, kLongestLabel);
      svg += DrawnCurve(*shown.curve, colour, y, &label);
      if (shown.label.empty()) continue;
      const double width = 26 + static_cast<double>(Utf8Characters(label)) * kSmallFont * kCharacter + 14;
      if (x + width > kWidth - kRight && x > kLeft) {
        legend += SvgText(x, legend_y, kSmallFont, "start", "...");
        x = kWidth;  // what follows has no place either
      }
      if (x >= kWidth) continue;
      legend += Line(x, legend_y - 4, x + 20, legend_y - 4,
                     "stroke=\"" + colour + "\" stroke-width=\"" + Width(*shown.curve) + "\"" + Dashes(*shown.curve));
      legend += SvgText(x + 26, legend_y, kSmallFont, "start", label);
      x += width;
    }
    if (panel.left_out > 0) {
      legend += SvgText(kWidth - kRight, top + 20, kSmallFont, "end",
                        std::to_string(panel.left_out) + " more are not drawn", " fill=\"#555555\"");
    }
    return svg + legend;
  }

  // Of several runs training is dashed, since the colour tells the runs apart.
  std::string Dashes(const Curve& curve) const {
    return runs_.size() > 1 && curve.kind == CurveKind::kTraining ? " stroke-dasharray=\"4 2\"" : "";
  }
  static std::string Width(const Curve& curve) { return curve.kind == CurveKind::kTest ? "2" : "1.5"; }

  template <typename Y>
  std::string DrawnCurve(const Curve& curve, const std::string& colour, const Y& y, std::string* label) const {
    const std::string style =
        "fill=\"none\" stroke=\"" + colour + "\" stroke-width=\"" + Width(curve) + "\"" + Dashes(curve);
    const std::vector<CurvePoint> points = Thinned(curve.points, kMostPoints);
    if (curve.kind == CurveKind::kTraining && points.size() >= kSmoothedFrom) {
      const size_t width = points.size() / 50 * 2 + 1, each = (curve.points.size() + kMostPoints - 1) / kMostPoints;
      *label += " (mean of " + std::to_string(width * each) + " points)";
      // Of several runs the points themselves would hide each other.
      const std::string pale = runs_.size() == 1 ? Path(points, y, style + " opacity=\"0.25\"") : "";
      return pale + Path(Smoothed(points, width), y, style);
    }
    std::string svg = Path(points, y, style);
    if (curve.points.size() > kMarked || curve.kind == CurveKind::kLearningRate) return svg;
    for (const CurvePoint& point : curve.points) {
      svg +=
          "<circle cx=\"" + FormatNumber(X(Progress(point, options_)), "%.1f") + "\" cy=\"" +
          FormatNumber(y(point.value), "%.1f") + "\" r=\"3\" fill=\"" + colour + "\"><title>" +
          XmlEscaped(curve.output + " " + FormatNumber(point.value) + " at iteration " + FormatCount(point.iteration)) +
          "</title></circle>\n";
    }
    return svg;
  }

  template <typename Y>
  std::string Path(const std::vector<CurvePoint>& points, const Y& y, const std::string& style) const {
    std::string path = "<path d=\"";
    for (size_t i = 0; i < points.size(); ++i) {
      path += (i == 0 ? "M" : " L") + Coordinates(X(Progress(points[i], options_)), y(points[i].value));
    }
    return path + "\" " + style + "/>\n";
  }

  const std::vector<TrainingRun>& runs_;
  const CurveOptions& options_;
  const std::vector<Panel> panels_;
  const Axis progress_;
};

}  // namespace

std::string CurvesSvg(const std::vector<TrainingRun>& runs, const CurveOptions& options) {
  return Picture(runs, options).ToString();
}

}  // namespace crema
