// What a picture of curves shows, before it is known how: panels, axes and ticks.
#ifndef CREMA_CURVES_PANELS_H_
#define CREMA_CURVES_PANELS_H_

#include <string>
#include <vector>

#include "curves/curve_writers.h"
#include "curves/training_run.h"

namespace crema {

struct ShownCurve {
  const Curve* curve = nullptr;
  size_t run = 0;
  std::string label;  // what legends call it
};

struct Axis {
  double low = 0, high = 1;  // low < high
  bool logarithmic = false;

  // 0 at low, 1 at high.
  double Place(double value) const;
};

struct Tick {
  double value = 0;
  std::string label;
};

struct Panel {
  std::string title;
  std::vector<ShownCurve> curves;
  size_t left_out = 0;  // of more curves than a person can tell apart
  Axis values;
};

// One for each output, in the order of the first run that has it, the learning rate last.
std::vector<Panel> Panels(const std::vector<TrainingRun>& runs);
// The horizontal axis of all panels.
Axis ProgressAxis(const std::vector<TrainingRun>& runs, const CurveOptions& options);
double Progress(const CurvePoint& point, const CurveOptions& options);

// At round numbers, about `wanted` of them.
std::vector<Tick> ValueTicks(const Axis& axis, int wanted);
std::vector<Tick> ProgressTicks(const Axis& axis, int wanted, const CurveOptions& options);

// Moving mean over `width` points, fewer at both ends.
std::vector<CurvePoint> Smoothed(const std::vector<CurvePoint>& points, size_t width);
// Means of as many neighbours as leave at most `most` points.
std::vector<CurvePoint> Thinned(const std::vector<CurvePoint>& points, size_t most);

// "accuracy 0.9083 at the end, 0.91 at best (iteration 4,500)" of the tests' outputs, for a heading.
std::string TestSummary(const TrainingRun& run);

}  // namespace crema

#endif  // CREMA_CURVES_PANELS_H_
