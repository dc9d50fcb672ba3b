// What of a solver file workers are bound to: one of them goes on with a coordinator that is started again where this
// is the same.
#include "distributed/training/solver_for_workers.h"

#include <gtest/gtest.h>

#include "schema/wire_bytes.h"
#include "solver/data_parallel_test.h"

namespace crema {
namespace {

class SolverOfWorkers : public DataParallel {
 protected:
  std::string Of(const std::string& settings, const std::string& seed = "random_seed: 5\n") {
    std::string text = SolverText("test_iter: 4 test_interval: 20 " + settings, 40);
    const std::string given = "random_seed: 5\n";
    text.replace(text.find(given), given.size(), seed);
    SolverOptions options;
    options.role = SolverOptions::Role::kCoordinator;
    options.path = folder_ / "solver.prototxt";
    const SolverFile file = ParseSolver(text, "solver.prototxt");
    Solver coordinator(file, options);
    return WireBytes(SolverForWorkers(file, options, coordinator));
  }
};

TEST_F(SolverOfWorkers, IsTheSameWhereOnlyTheCoordinatorsPartChanges) {
  folder_.Write("net.prototxt", SharedNet(6));
  const std::string plain = Of("");
  for (const char* settings :
       {"average_loss: 20", "display: 7", "debug_info: true", "snapshot: 10", "snapshot_keep: 3",
        "snapshot_after_train: false", "snapshot_diff: true", "snapshot_format: HDF5", "test_initialization: false",
        "test_compute_loss: true", "ap_version: \"11point\"", "show_per_class_result: true", "solver_mode: CPU",
        "device_id: 1", "best { output: \"loss\" patience: 3 }"}) {
    EXPECT_TRUE(Of(settings) == plain) << settings;
  }
  for (const char* seed : {"", "random_seed: 6\n"}) EXPECT_TRUE(Of("", seed) == plain) << seed;
}

TEST_F(SolverOfWorkers, IsAnotherWhereWorkersTrainOtherwise) {
  folder_.Write("net.prototxt", SharedNet(6));
  const std::string plain = Of("");
  for (const char* settings : {"momentum: 0.8", "iter_size: 2", "weight_decay: 0.1", "clip_gradients: 1",
                               "precision: BF16", "distributed { local_steps: 3 }"}) {
    EXPECT_FALSE(Of(settings) == plain) << settings;
  }
}

}  // namespace
}  // namespace crema
