// What tests of curves share: a folder, files in it, and the curve of a run by what it is called.
#ifndef CREMA_TESTS_CURVES_RUN_FILES_H_
#define CREMA_TESTS_CURVES_RUN_FILES_H_

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "curves/training_run.h"
#include "files.h"
#include "temporary_folder.h"

namespace crema {

class RunFiles : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) const {
    WriteFile(folder_ / name, text);
    return folder_ / name;
  }
  static std::vector<std::string> Names(const TrainingRun& run) {
    std::vector<std::string> names;
    for (const Curve& curve : run.curves) {
      names.push_back(curve.kind == CurveKind::kLearningRate ? curve.output : CurveLabel(curve) + " " + curve.output);
    }
    return names;
  }
  // "0:2.5 100:0.5", of the curve that Names calls so; empty without it.
  static std::string Points(const TrainingRun& run, const std::string& name);

  const TemporaryFolder folder_;
};

}  // namespace crema

#endif  // CREMA_TESTS_CURVES_RUN_FILES_H_
