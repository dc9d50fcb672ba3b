// A training run of a second or two: pictures of four classes that a small net tells apart.
#ifndef CREMA_TESTS_TOOLS_TINY_TRAINING_H_
#define CREMA_TESTS_TOOLS_TINY_TRAINING_H_

#include <filesystem>
#include <string>
#include <vector>

#include "tools/program.h"

namespace crema::testing_tools {

struct TinyTraining {
  int max_iter = 300;
  int snapshot = 20;
  int test_interval = 50;
  int data_threads = 1;
  int hidden = 64;  // outputs of the larger layer: sets the size of snapshots
  std::string base_lr = "0.02";
  int bad_record = -1;    // its label is 7, where 0 to 3 are classes
  int cut_record = -1;    // lacks the end of its pixels
  std::string more = {};  // further lines of the solver file
};

// Writes solver.prototxt, net.prototxt and the database db into the folder.
void WriteTinyTraining(const ScratchFolder& folder, const TinyTraining& options);

// Runs what was written there.
inline const std::vector<std::string> kTrain = {"train", "--solver=solver.prototxt"};
inline Setting In(const ScratchFolder& folder) { return {.folder = folder.path()}; }

// The bytes of the model of an iteration; empty where there is none.
std::string Model(const ScratchFolder& folder, int iteration);
// Whether both folders hold a model of this iteration with the same bytes; not EXPECT_EQ, which would print them.
bool SameModel(const ScratchFolder& a, const ScratchFolder& b, int iteration);
// Iteration of the newest snapshot; -1: there is none.
int NewestState(const ScratchFolder& folder);

// Of the last test in a log; -1: none.
float LastAccuracy(const std::string& log);

// Of two models, as the bytes of their files: the largest difference of a weight, over the largest weight of its blob;
// infinity where the nets are not alike.
double Difference(const std::string& model, const std::string& other);

// Whether GPUs are the emulated ones, which fail when the environment tells them to (tests/cuda/emulation).
bool GpuIsEmulated();

}  // namespace crema::testing_tools

#endif  // CREMA_TESTS_TOOLS_TINY_TRAINING_H_
