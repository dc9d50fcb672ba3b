// A small net and solver that tests vary.
#ifndef CREMA_SOLVER_TRAINING_TEST_H_
#define CREMA_SOLVER_TRAINING_TEST_H_

#include <gtest/gtest.h>

#include <string>

#include "crema/solver.h"
#include "solver/recorder.h"
#include "solver/small_data.h"
#include "solver/writable_folder.h"

namespace crema {

constexpr char kSmallNet[] = R"(
name: "small"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
        transform_param { scale: 0.00390625 } data_param { source: "train_lmdb" batch_size: 7 backend: LMDB } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
        transform_param { scale: 0.00390625 } data_param { source: "test_lmdb" batch_size: 4 backend: LMDB } }
layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1" param { lr_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
        inner_product_param { num_output: 16 weight_filler { type: "xavier" } } }
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" dropout_param { dropout_ratio: 0.4 } }
layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)";

// Each batch is a sequence of images, 6 rows of which are texts side by side that go on with the next batch.
constexpr char kRecurrentNet[] = R"(
name: "recurrent"
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TRAIN }
        transform_param { scale: 0.00390625 } data_param { source: "train_lmdb" batch_size: 7 backend: LMDB } }
layer { name: "data" type: "Data" top: "data" top: "label" include { phase: TEST }
        transform_param { scale: 0.00390625 } data_param { source: "test_lmdb" batch_size: 4 backend: LMDB } }
layer { name: "cont" type: "DummyData" top: "cont" include { phase: TRAIN }
        dummy_data_param { shape { dim: 7 dim: 6 } data_filler { value: 1 } } }
layer { name: "cont" type: "DummyData" top: "cont" include { phase: TEST }
        dummy_data_param { shape { dim: 4 dim: 6 } data_filler { value: 1 } } }
layer { name: "steps" type: "Reshape" bottom: "data" top: "steps" reshape_param { shape { dim: 0 dim: 6 dim: 6 } } }
layer { name: "lstm" type: "LSTM" bottom: "steps" bottom: "cont" top: "lstm"
        recurrent_param { num_output: 5 weight_filler { type: "uniform" min: -0.5 max: 0.5 } } }
layer { name: "ip" type: "InnerProduct" bottom: "lstm" top: "ip"
        inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "accuracy" type: "Accuracy" bottom: "ip" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }
)";

// kSmallNet with a SegAccuracy layer, for which each image is one pixel, and its mean intersection by union alone.
inline std::string PixelsNet(bool reset, int test_batch = 4) {
  std::string net = kSmallNet;
  net.replace(net.find("batch_size: 4"), 13, "batch_size: " + std::to_string(test_batch));
  return net + R"(
layer { name: "scores" type: "Reshape" bottom: "ip2" top: "scores"
        reshape_param { shape { dim: 0 dim: 3 dim: 1 dim: 1 } } }
layer { name: "pixels" type: "Reshape" bottom: "label" top: "pixels"
        reshape_param { shape { dim: 0 dim: 1 dim: 1 dim: 1 } } }
layer { name: "seg" type: "SegAccuracy" bottom: "scores" bottom: "pixels" top: "seg" top: "seg_of_1"
        seg_accuracy_param { output_label: 1 reset: )" +
         (reset ? "true" : "false") + R"( } }
layer { name: "seg_means" type: "Slice" bottom: "seg" top: "right" top: "recall" top: "overlap" slice_param { axis: 3 } }
)";
}

// kSmallNet with images that are mixed while training.
inline std::string MixUpNet(const std::string& settings) {
  std::string net = kSmallNet;
  net.insert(net.find("layer { name: \"ip1\""),
             "layer { name: \"mix\" type: \"MixUp\" bottom: \"data\" bottom: \"label\" top: \"data\" top: \"target\" "
             "include { phase: TRAIN } mixup_param { num_classes: 3 " +
                 settings + " } }\n");
  const std::string loss = "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip2\" bottom: ";
  return net.substr(0, net.find("layer { name: \"loss\"")) + loss +
         "\"target\" top: \"loss\" include { phase: TRAIN } }\n" + loss +
         "\"label\" top: \"loss\" include { phase: TEST } }\n";
}

inline float LossIn(const TestResult& test) {
  for (const OutputValue& value : test.outputs) {
    if (value.name == "loss") return value.value;
  }
  ADD_FAILURE() << "no loss";
  return 0;
}

class SmallTraining : public ::testing::Test {
 protected:
  SmallTraining() {
    // Sizes that no batch divides, so that positions wrap in the middle of one.
    WriteClasses(folder_ / "train_lmdb", 60);
    WriteClasses(folder_ / "test_lmdb", 18);
    folder_.Write("net.prototxt", kSmallNet);
  }

  // An ordinary solver; later fields of `more` win over earlier ones only where they are repeated nowhere.
  std::string SolverText(const std::string& more, int max_iter) const {
    return std::string("net: \"net.prototxt\"\n") +
           (more.find("lr_policy") == std::string::npos ? "lr_policy: \"fixed\"\n" : "") +
           "random_seed: 5\nmax_iter: " + std::to_string(max_iter) + "\n" +
           (more.find("base_lr") == std::string::npos ? "base_lr: 0.05\n" : "") +
           (more.find("snapshot_prefix") == std::string::npos ? "snapshot_prefix: \"" + (folder_ / "snap") + "\"\n"
                                                              : "") +
           more;
  }

  std::unique_ptr<Solver> Make(const std::string& text, SolverOptions options = {}) {
    recorder_ = Recorder();
    options.path = folder_ / "solver.prototxt";
    options.observers = {&recorder_};
    return std::make_unique<Solver>(ParseSolver(text, "solver.prototxt"), std::move(options));
  }

  TrainingResult Train(const std::string& more, int max_iter, SolverOptions options = {}) {
    return Make(SolverText(more, max_iter), std::move(options))->Train();
  }

  WritableFolder folder_;
  Recorder recorder_;
};

}  // namespace crema

#endif  // CREMA_SOLVER_TRAINING_TEST_H_
