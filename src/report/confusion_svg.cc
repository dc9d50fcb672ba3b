// The confusion matrix as a picture (https://www.w3.org/TR/SVG11/).
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/number_text.h"
#include "base/utf8.h"
#include "report/classification_writers.h"
#include "report/svg.h"

namespace crema {

namespace {

constexpr int kMostCounts = 30;  // classes with whose counts cells are legible
constexpr size_t kLongestLabel = 20;
constexpr double kSmallestSide = 4, kLargestSide = 56;  // of a cell
constexpr double kLargestPicture = 900;
constexpr double kMargin = 16, kTitle = 40, kTitleFont = 16,
                 kAxis = 22;  // an axis: the line of text that says what it shows

// From white to dark blue, by the share of the row; readable text on it is black below a half, white above.
std::string Colour(double share) {
  const auto mixed = [share](int light, int dark) {
    return static_cast<int>(std::lround(light + share * (dark - light)));
  };
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", mixed(255, 8), mixed(255, 48), mixed(255, 107));
  return text;
}

class Picture {
 public:
  Picture(const ClassificationReport& report, const std::string& title) : report_(report), title_(title) {
    const int classes = report.class_count();
    side_ = std::clamp(kLargestPicture / classes, kSmallestSide, kLargestSide);
    font_ = std::clamp(side_ * 0.6, 4.0, 13.0);
    size_t longest = 1;
    for (const std::string& name : report.classes()) {
      longest = std::max(longest, std::min(Utf8Characters(name), kLongestLabel));
    }
    names_ = static_cast<double>(longest) * font_ * 0.62 + 8;
    left_ = kMargin + kAxis + names_;
    top_ = kMargin + kTitle + kAxis + names_;
    grid_ = side_ * classes;
    const double title_width = static_cast<double>(Utf8Characters(title)) * kTitleFont * 0.62;
    width_ = std::max({left_ + grid_ + kMargin, 2 * kMargin + title_width, 420.0});
    height_ = top_ + grid_ + kMargin;
  }

  std::string ToString() const {
    std::string svg = kXmlHead + SvgHead(width_, height_);
    svg += SvgText(kMargin, kMargin + 14, kTitleFont, "start", title_, " font-weight=\"bold\"");
    svg += SvgText(kMargin, kMargin + 32, 12, "start",
                   "accuracy " + FormatNumber(100 * report_.accuracy(), "%.2f%%") + ", " +
                       FormatCount(report_.items()) + " items; colour: share of the row");
    svg += SvgText(left_, kMargin + kTitle + 14, 12, "start", "taken for", " fill=\"#555555\"");
    const double x = kMargin + 12, y = top_ + grid_;
    svg += SvgText(x, y, 12, "start", "is", Turned(x, y) + " fill=\"#555555\"");
    for (int i = 0; i < report_.class_count(); ++i) svg += Names(i);
    for (int label = 0; label < report_.class_count(); ++label) svg += Row(label);
    return svg + "<rect x=\"" + FormatNumber(left_) + "\" y=\"" + FormatNumber(top_) + "\" width=\"" +
           FormatNumber(grid_) + "\" height=\"" + FormatNumber(grid_) +
           "\" fill=\"none\" stroke=\"#888888\"/>\n</svg>\n";
  }

 private:
  static std::string Turned(double x, double y) {
    return " transform=\"rotate(-90 " + FormatNumber(x) + " " + FormatNumber(y) + ")\"";
  }

  // Of class i: beside its row and above its column.
  std::string Names(int i) const {
    const std::string name = Utf8Shortened(report_.classes()[i], kLongestLabel);
    const double middle = side_ * (i + 0.5) + font_ * 0.35;
    const double x = left_ + middle, y = top_ - 6;
    return SvgText(left_ - 6, top_ + middle, font_, "end", name) + SvgText(x, y, font_, "start", name, Turned(x, y));
  }

  std::string Row(int label) const {
    std::string svg;
    const int64_t support = report_.scores(label).support;
    for (int predicted = 0; predicted < report_.class_count(); ++predicted) {
      const int64_t count = report_.count(label, predicted);
      if (count == 0) continue;
      const double share = static_cast<double>(count) / static_cast<double>(support);
      const double x = left_ + side_ * predicted, y = top_ + side_ * label;
      svg += "<rect x=\"" + FormatNumber(x) + "\" y=\"" + FormatNumber(y) + "\" width=\"" + FormatNumber(side_) +
             "\" height=\"" + FormatNumber(side_) + "\" fill=\"" + Colour(share) + "\"><title>" +
             XmlEscaped(report_.classes()[label] + " taken for " + report_.classes()[predicted] + ": " +
                        FormatCount(count) + " of " + FormatCount(support)) +
             "</title></rect>\n";
      if (report_.class_count() > kMostCounts) continue;
      const std::string text = std::to_string(count);
      const double size = std::min(font_, side_ / (0.62 * static_cast<double>(text.size()) + 0.4));
      svg += SvgText(x + side_ / 2, y + side_ / 2 + size * 0.35, size, "middle", text,
                     share > 0.5 ? " fill=\"#ffffff\" pointer-events=\"none\"" : " pointer-events=\"none\"");
    }
    return svg;
  }

  const ClassificationReport& report_;
  const std::string& title_;
  double side_ = 0, font_ = 0, names_ = 0, left_ = 0, top_ = 0, grid_ = 0, width_ = 0, height_ = 0;
};

}  // namespace

std::string ConfusionSvg(const ClassificationReport& report, const std::string& title) {
  return Picture(report, title).ToString();
}

}  // namespace crema
