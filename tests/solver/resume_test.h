// A run that was broken off and resumed, beside one that never stopped.
#ifndef CREMA_SOLVER_RESUME_TEST_H_
#define CREMA_SOLVER_RESUME_TEST_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "files.h"
#include "solver/snapshots/snapshot.h"
#include "solver/training_test.h"

namespace crema {

class Resume : public SmallTraining {
 protected:
  // Everything a finished run leaves: the model, the histories and the losses on the way.
  void ExpectSame(const std::string& more) {
    Train(more, 20);
    const Recorder straight = recorder_;
    const std::string model = ReadFile(folder_ / "snap_iter_20.caffemodel");
    const std::string state = ReadFile(folder_ / "snap_iter_20.solverstate");
    for (const char* end : {"caffemodel", "solverstate"})
      std::filesystem::remove(folder_ / ("snap_iter_20." + std::string(end)));

    // Stopped rather than max_iter: 10, since policies may depend on that.
    int asked = 0;
    SolverOptions stop;
    stop.requested_action = [&asked, this] {
      asked = static_cast<int>(recorder_.iterations.size());
      return asked == 10 && recorder_.order.back() == '.' ? SolverAction::kStop : SolverAction::kNone;
    };
    EXPECT_TRUE(Train(more, 20, std::move(stop)).stopped_early);
    ASSERT_EQ(recorder_.iterations.size(), 10u);
    Train(more, 20, {.snapshot = folder_ / "snap_iter_10.solverstate"});

    ASSERT_EQ(recorder_.iterations.size(), 10u);
    for (size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(recorder_.iterations[i].iteration, static_cast<int>(i) + 10);
      EXPECT_EQ(recorder_.iterations[i].loss, straight.iterations[i + 10].loss);
    }
    ASSERT_GE(straight.displays.size(), recorder_.displays.size());
    for (size_t i = 0; i < recorder_.displays.size(); ++i) {
      const Display& before = straight.displays[straight.displays.size() - recorder_.displays.size() + i];
      EXPECT_EQ(recorder_.displays[i].smoothed_loss, before.smoothed_loss);
      EXPECT_EQ(recorder_.displays[i].learning_rate, before.learning_rate);
    }
    ASSERT_EQ(recorder_.tests.size(), straight.tests.size() / 2);
    for (size_t i = 0; i < recorder_.tests.size(); ++i) {
      const TestResult& before = straight.tests[straight.tests.size() - recorder_.tests.size() + i];
      EXPECT_EQ(recorder_.tests[i].iteration, before.iteration);
      EXPECT_EQ(recorder_.tests[i].outputs[1].value, before.outputs[1].value);
    }
    EXPECT_TRUE(ReadFile(folder_ / "snap_iter_20.caffemodel") == model) << "models differ";
    EXPECT_TRUE(ReadFile(folder_ / "snap_iter_20.solverstate") == state) << "states differ";
  }
};

}  // namespace crema

#endif  // CREMA_SOLVER_RESUME_TEST_H_
