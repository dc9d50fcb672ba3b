// Curves of trainings as pictures, tables and text.
#ifndef CREMA_CURVES_CURVE_WRITERS_H_
#define CREMA_CURVES_CURVE_WRITERS_H_

#include <string>
#include <vector>

#include "curves/training_run.h"

namespace crema {

struct CurveOptions {
  bool over_time = false;  // the horizontal axis: seconds of training instead of iterations
  bool reload = false;     // a page (.html) loads itself again every few seconds
};

// One panel for each output, one below the other, the learning rate last; of several runs the same outputs share a
// panel. A vertical axis is logarithmic where its values are positive and far apart: by a factor of 20, of losses 5.
// Training curves of many points are drawn pale, with their moving mean over them.
std::string CurvesSvg(const std::vector<TrainingRun>& runs, const CurveOptions& options);
// The same in a page of its own, that needs nothing from elsewhere.
std::string CurvesHtml(const std::vector<TrainingRun>& runs, const CurveOptions& options);
// A line for each run and iteration that has a point, a column for each curve; empty where it has none there.
std::string CurvesCsv(const std::vector<TrainingRun>& runs);
// For terminals: of each curve the first, last and best value, and a drawing of the losses, in characters (Braille
// patterns, UTF-8).
std::string CurvesText(const std::vector<TrainingRun>& runs, const CurveOptions& options);

// "runs/lenet/": not a file, but an EventFolder.
bool IsEventFolder(const std::string& path);
// Throws UserError where the ending of the file is none of .svg, .html, / and, with `table`, .csv.
void CheckCurveFile(const std::string& path, bool table);
// As its ending says. Replaces an older file only when whole. Throws UserError, EnvironmentError.
void WriteCurves(const std::vector<TrainingRun>& runs, const CurveOptions& options, const std::string& path);

}  // namespace crema

#endif  // CREMA_CURVES_CURVE_WRITERS_H_
