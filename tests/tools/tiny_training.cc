#include "tools/tiny_training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "base/random.h"
#include "crema/data.pb.h"
#include "crema/net.pb.h"
#include "data/databases/lmdb_writer.h"
#include "tools/patterns.h"

namespace crema::testing_tools {

namespace {

constexpr int kRecords = 230, kSide = 12;

// A bright band in noise, its height by class: mirrored, it stays in its class.
Datum Picture(int record, int label) {
  const RandomStream random(20, 1000 + static_cast<uint64_t>(record));
  Datum datum;
  datum.set_channels(1);
  datum.set_height(kSide);
  datum.set_width(kSide);
  datum.set_label(label);
  std::string pixels(kSide * kSide, '\0');
  for (int i = 0; i < kSide * kSide; ++i) {
    const bool bright = i / kSide / (kSide / 4) == label % 4;
    pixels[i] = static_cast<char>(random.Bits(i)[0] % 150 + (bright ? 60 : 0));
  }
  datum.set_data(pixels);
  return datum;
}

}  // namespace

void WriteTinyTraining(const ScratchFolder& folder, const TinyTraining& options) {
  LmdbWriter database(folder / "db", LmdbWriter::Existing::kRefuse);
  for (int i = 0; i < kRecords; ++i) {
    char key[16];
    std::snprintf(key, sizeof key, "%08d", i);
    const int label = static_cast<int>(RandomStream(21, 0).Below(i, 4));
    std::string record = Picture(i, i == options.bad_record ? 7 : label).SerializeAsString();
    if (i == options.cut_record) record.resize(record.size() / 2);
    database.Put(key, record);
  }
  database.Commit();

  const auto data = [&](const char* phase, int batch, bool shuffle) {
    return std::string("layer {\n  name: \"data\"\n  type: \"Data\"\n  top: \"data\"\n  top: \"label\"\n") +
           "  include { phase: " + phase +
           " }\n  transform_param { scale: 0.00390625 crop_size: 10 mirror: " + (shuffle ? "true" : "false") +
           " }\n  data_param { source: \"db\" batch_size: " + std::to_string(batch) +
           " backend: LMDB threads: " + std::to_string(options.data_threads) + (shuffle ? " shuffle: true" : "") +
           " }\n}\n";
  };
  folder.Write("net.prototxt", "name: \"Tiny\"\n" + data("TRAIN", 16, true) + data("TEST", 23, false) + R"(layer {
  name: "conv1"
  type: "Convolution"
  bottom: "data"
  top: "conv1"
  convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } }
}
layer {
  name: "pool1"
  type: "Pooling"
  bottom: "conv1"
  top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 }
}
layer {
  name: "ip1"
  type: "InnerProduct"
  bottom: "pool1"
  top: "ip1"
  inner_product_param { num_output: )" +
                                   std::to_string(options.hidden) +
                                   R"( weight_filler { type: "xavier" } }
}
layer { name: "relu1" type: "ReLU" bottom: "ip1" top: "ip1" }
layer { name: "drop1" type: "Dropout" bottom: "ip1" top: "ip1" }
layer {
  name: "ip2"
  type: "InnerProduct"
  bottom: "ip1"
  top: "ip2"
  inner_product_param { num_output: 4 weight_filler { type: "xavier" } }
}
layer { name: "accuracy" type: "Accuracy" bottom: "ip2" bottom: "label" top: "accuracy" include { phase: TEST } }
layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" }
)");
  folder.Write("solver.prototxt",
               "net: \"net.prototxt\"\nbase_lr: " + options.base_lr +
                   "\nmomentum: 0.9\nweight_decay: 0.0005\nlr_policy: \"inv\"\ngamma: 0.0001\n" +
                   "power: 0.75\ntest_iter: 10\ndisplay: 10\nrandom_seed: 5\n" +
                   "snapshot_prefix: \"tiny\"\nsolver_mode: CPU\nmax_iter: " + std::to_string(options.max_iter) +
                   "\ntest_interval: " + std::to_string(options.test_interval) +
                   "\nsnapshot: " + std::to_string(options.snapshot) + "\n" + options.more);
}

std::string Model(const ScratchFolder& folder, int iteration) {
  return ReadText(folder / ("tiny_iter_" + std::to_string(iteration) + ".caffemodel"));
}

bool SameModel(const ScratchFolder& a, const ScratchFolder& b, int iteration) {
  const std::string model = Model(a, iteration);
  return !model.empty() && model == Model(b, iteration);
}

int NewestState(const ScratchFolder& folder) {
  int newest = -1;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("tiny_iter_") && name.ends_with(".solverstate")) {
      newest = std::max(newest, std::stoi(name.substr(10)));
    }
  }
  return newest;
}

float LastAccuracy(const std::string& log) {
  const auto accuracies = FindAll(log, R"(Test net output #0: accuracy = ([\.\deE+-]+))");
  return accuracies.empty() ? -1 : std::stof(accuracies.back());
}

double Difference(const std::string& model, const std::string& other) {
  NetParameter nets[2];
  const double apart = std::numeric_limits<double>::infinity();
  if (!nets[0].ParseFromString(model) || !nets[1].ParseFromString(other)) return apart;
  double worst = 0;
  int blobs = 0;
  for (int i = 0; i < nets[0].layer_size(); ++i) {
    for (int b = 0; b < nets[0].layer(i).blobs_size(); ++b) {
      if (i >= nets[1].layer_size() || b >= nets[1].layer(i).blobs_size()) return apart;
      const auto &one = nets[0].layer(i).blobs(b).data(), &two = nets[1].layer(i).blobs(b).data();
      if (one.size() != two.size() || one.empty()) return apart;
      ++blobs;
      double difference = 0, largest = 0;
      for (int k = 0; k < one.size(); ++k) {
        difference = std::max(difference, std::abs(static_cast<double>(one[k]) - static_cast<double>(two[k])));
        largest = std::max(largest, std::abs(static_cast<double>(one[k])));
      }
      worst = std::max(worst, largest > 0 ? difference / largest : difference);
    }
  }
  return blobs > 0 ? worst : apart;
}

bool GpuIsEmulated() { return RunProgram({"crema", "device_query"}).out.find("Emulated GPU") != std::string::npos; }

}  // namespace crema::testing_tools
