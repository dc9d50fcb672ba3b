#include "report/timing_table.h"

#include <algorithm>
#include <cstdio>

#include "report/text_table.h"

namespace crema {

namespace {

std::string Percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%%", whole > 0 ? 100 * part / whole : 0);
  return text;
}

// By pass: the sum over all layers.
std::vector<double> Sums(const std::vector<LayerTiming>& timings, std::vector<double> LayerTiming::*direction) {
  std::vector<double> sums;
  for (const LayerTiming& timing : timings) {
    const std::vector<double>& times = timing.*direction;
    sums.resize(std::max(sums.size(), times.size()));
    for (size_t i = 0; i < times.size(); ++i) sums[i] += times[i];
  }
  return sums;
}

std::string PassLine(const char* name, const std::vector<double>& sums) {
  const auto [low, high] = std::minmax_element(sums.begin(), sums.end());
  return std::string(name) + FormatSeconds(Median(sums)) + "  (" + FormatSeconds(*low) + " to " + FormatSeconds(*high) +
         ")\n";
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::string TimingTable(const std::vector<LayerTiming>& timings, int64_t items) {
  const std::vector<double> forward = Sums(timings, &LayerTiming::forward);
  const std::vector<double> backward = Sums(timings, &LayerTiming::backward);
  double total = 0;
  for (const LayerTiming& timing : timings) total += Median(timing.forward) + Median(timing.backward);

  std::vector<std::string> headings = {"layer", "type", "kernel", ">forward"};
  if (!backward.empty()) headings.push_back(">backward");
  headings.push_back(">share");
  TextTable table(headings);
  for (const LayerTiming& timing : timings) {
    const double f = Median(timing.forward), b = Median(timing.backward);
    std::vector<std::string> row = {timing.layer, timing.type, timing.kernel, FormatSeconds(f)};
    if (!backward.empty()) row.push_back(FormatSeconds(b));
    row.push_back(Percent(f + b, total));
    table.AddRow(std::move(row));
  }
  std::string text = table.ToString();
  if (forward.empty()) return text;
  text += "\n" + PassLine("forward   ", forward);
  double pass = Median(forward);
  if (!backward.empty()) {
    std::vector<double> both = forward;
    for (size_t i = 0; i < both.size(); ++i) both[i] += backward[i];
    text += PassLine("backward  ", backward) + PassLine("both      ", both);
    pass = Median(both);
  }
  if (items > 0 && pass > 0) text += "items     " + FormatScaled(static_cast<double>(items) / pass) + " a second\n";
  return text;
}

}  // namespace crema
