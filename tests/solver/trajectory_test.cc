// Training as BVLC Caffe trains: its losses on Fashion-MNIST, iteration by iteration.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "crema/solver.h"
#include "solver/recorder.h"
#include "solver/small_data.h"
#include "solver/writable_folder.h"
#include "source_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

const fs::path kFolder = fs::path(CorpusFolder()) / "training";

// Fashion-MNIST's four gzipped files; CREMA_FASHION_MNIST names another folder.
fs::path ImagesFolder() {
  const char* folder = std::getenv("CREMA_FASHION_MNIST");
  return folder != nullptr ? folder : "/usr/share/datasets/fashion-mnist";
}

constexpr int kFirstSteps = 7;

// Largest relative difference of losses in the first 20 iterations and after. Rules that divide a gradient by its own
// size turn the sign of a tiny one into a full step: a run of RMSProp differs from itself by 1e-2 after ten iterations
// when its weights are disturbed by 3e-7 in each, and one of AdaGrad by 3e-3. Only their first steps compare sharply.
struct Bounds {
  double first_steps, early, late;
};

Bounds BoundsOf(const std::string& folder) {
  const bool divides = folder.starts_with("adagrad") || folder.starts_with("rmsprop") || folder.starts_with("adam");
  return divides ? Bounds{1e-4, 1e-2, 3e-2} : Bounds{1e-4, 1e-3, 1e-2};
}

struct Row {
  int iteration;
  double loss, rate;
};

std::vector<Row> ReadLosses(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    std::istringstream stream(line);
    Row row{0, 0, 0};
    stream >> row.iteration >> row.loss >> row.rate;
    rows.push_back(row);
  }
  return rows;
}

class Trajectory : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!fs::exists(kFolder)) GTEST_SKIP() << "no corpus at " << kFolder;
    const fs::path images = ImagesFolder();
    if (!fs::exists(images / "train-images-idx3-ubyte.gz")) GTEST_SKIP() << "no Fashion-MNIST at " << images;
    // 60 iterations of three batches of 64 read no further.
    WriteFirstImages(images / "train-images-idx3-ubyte.gz", images / "train-labels-idx1-ubyte.gz", 60 * 3 * 64 + 192,
                     data_ / "fashion_mnist_train_lmdb");
    WriteFirstImages(images / "t10k-images-idx3-ubyte.gz", images / "t10k-labels-idx1-ubyte.gz", 1000,
                     data_ / "fashion_mnist_test_lmdb");
  }

  void Run(const std::string& solver_path, SolverOptions options) {
    SolverFile file = ReadSolverFile((kFolder / solver_path).string());
    file.solver.set_snapshot_prefix(data_ / "snap");
    options.path = (kFolder / "solver.prototxt").string();
    options.search_folders = {data_.path()};
    options.observers = {&recorder_};
    Solver solver(file, std::move(options));
    solver.Train();
  }

  void Compare(const std::string& losses, int first_iteration) {
    const std::vector<Row> rows = ReadLosses(kFolder / losses);
    const Bounds bounds = BoundsOf(losses);
    ASSERT_EQ(recorder_.displays.size(), rows.size());
    double worst_early = 0, worst_late = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const Display& display = recorder_.displays[i];
      const Row& row = rows[i];
      ASSERT_EQ(display.iteration, row.iteration);
      if (!display.final && row.rate > 0) {
        EXPECT_NEAR(display.learning_rate, row.rate, 1e-5 * row.rate);
      }
      const double error = std::abs(display.smoothed_loss - row.loss) / row.loss;
      const int done = row.iteration - first_iteration;
      EXPECT_LT(error, done < kFirstSteps ? bounds.first_steps
                       : done < 20        ? bounds.early
                                          : bounds.late)
          << "iteration " << row.iteration << ": " << display.smoothed_loss << ", Caffe " << row.loss;
      double& worst = done < 20 ? worst_early : worst_late;
      worst = std::max(worst, error);
    }
    std::printf("largest relative difference: %.2g in the first 20 iterations, %.2g after\n", worst_early, worst_late);
  }

  WritableFolder data_;
  Recorder recorder_;
};

TEST_P(Trajectory, AgreesWithCaffe) {
  const std::string name = GetParam();
  Run(name + "/solver.prototxt", {.weights = {(kFolder / "init.caffemodel").string()}});
  Compare(name + "/losses.tsv", 0);
  ASSERT_EQ(recorder_.tests.size(), 1u);
  EXPECT_EQ(recorder_.tests[0].batches, 10);
  EXPECT_EQ(recorder_.snapshots.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(All, Trajectory,
                         testing::Values("adadelta_fixed", "adagrad_fixed", "adam_fixed", "nesterov_poly",
                                         "rmsprop_inv", "sgd_exp_itersize", "sgd_fixed", "sgd_inv",
                                         "sgd_multistep_clip", "sgd_step_l1"),
                         [](const auto& info) { return std::string(info.param); });

class ResumedTrajectory : public Trajectory {};

TEST_P(ResumedTrajectory, GoesOnFromCaffesOwnSnapshot) {
  const std::string name = GetParam();
  Run(name + "/resume_solver.prototxt", {.snapshot = (kFolder / name / "snap_iter_30.solverstate").string()});
  Compare(name + "/resumed_losses.tsv", 30);
  ASSERT_EQ(recorder_.restored.size(), 1u);
  EXPECT_FALSE(recorder_.restored[0].exact);
  EXPECT_NE(recorder_.notices.find("data starts at the first record"), std::string::npos) << recorder_.notices;
}

INSTANTIATE_TEST_SUITE_P(All, ResumedTrajectory, testing::Values("adam_fixed", "sgd_fixed"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace crema
