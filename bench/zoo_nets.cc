#include "bench/zoo_nets.h"

#include <algorithm>
#include <random>

#include "graph/program.h"
#include "report/assumed_inputs.h"
#include "report/step_info.h"

namespace crema::bench {

namespace {

constexpr ZooNet kNets[] = {
    {"lenet", 64, 10},
    {"cifar_quick", 100, 10},
    {"resnet20", 128, 10},
    {"alexnet", 32, 1000},
    {"squeezenet", 32, 1000},
    {"googlenet", 16, 1000},
    {"resnet50", 8, 1000},
    {"mobilenet", 16, 1000},
    {"lstm", 0, 10000, true},
    {"char_transformer", 0, 65, true, ZooNet::Reads::kText},
    {"sequence_reading", 64, 10, false, ZooNet::Reads::kStrips},
};

std::string Path(const ZooNet& zoo, const char* file) {
  return std::string(CREMA_MODEL_ZOO "/") + (zoo.reads == ZooNet::Reads::kItems ? "" : "../configs/") + zoo.name + "/" +
         file;
}

NetFile TextNet(const ZooNet& zoo) {
  return AssumeInputs(ReadNetFile(Path(zoo, "train_val.prototxt")), {{"text", Shape{64, 3, 32, 1}}}, false);
}

// For use: without what compares with labels.
NetFile WithSoftmax(NetFile file) {
  NetParameter net = file.net;
  net.clear_layer();
  for (LayerParameter layer : file.net.layer()) {
    if (layer.type() == "Accuracy") continue;
    if (layer.type() == "SoftmaxWithLoss") {
      layer.set_type("Softmax");
      layer.mutable_bottom()->RemoveLast();
    }
    *net.add_layer() = layer;
  }
  return MakeNetFile(net, {});
}

}  // namespace

std::span<const ZooNet> ZooNets() { return kNets; }

NetFile InferenceNet(const ZooNet& zoo) {
  if (zoo.reads == ZooNet::Reads::kText) return WithSoftmax(TextNet(zoo));
  NetFile file = ReadNetFile(Path(zoo, "deploy.prototxt"));
  if (zoo.batch > 0) file.net.mutable_layer(0)->mutable_input_param()->mutable_shape(0)->set_dim(0, zoo.batch);
  return file;
}

NetFile TrainingNet(const ZooNet& zoo) {
  if (zoo.reads == ZooNet::Reads::kText) return TextNet(zoo);
  NetFile file = ReadNetFile(Path(zoo, "train_val.prototxt"));
  if (zoo.reads == ZooNet::Reads::kStrips) {
    const int64_t images = 5 * int64_t{zoo.batch};
    return AssumeInputs(std::move(file), {{"data", Shape{images, 1, 28, 28}}, {"label", Shape{images}}}, false);
  }
  if (zoo.batch == 0) return file;
  const NetFile inference = InferenceNet(zoo);
  const auto& dims = inference.net.layer(0).input_param().shape(0).dim();
  const BlobShapes shapes = {{"data", Shape(std::vector<int64_t>(dims.begin(), dims.end()))},
                             {"label", Shape{zoo.batch}}};
  return AssumeInputs(std::move(file), shapes, false);
}

void FillInputs(const ZooNet& zoo, const Net& net) {
  std::mt19937 random(1);
  std::normal_distribution<float> noise;
  std::uniform_int_distribution<int> classes(0, zoo.classes - 1);
  for (const NetInput& input : net.inputs()) {
    float* const values = input.value.f32();
    const int64_t count = input.value.count();
    if (input.name == "cont") {
      std::fill_n(values, count, 1.0f);
    } else if (input.name == "label" || zoo.words) {
      std::generate_n(values, count, [&] { return static_cast<float>(classes(random)); });
    } else {
      std::generate_n(values, count, [&] { return noise(random); });
    }
  }
}

double Gigaflops(const Net& net) { return PassFlops(net.compiled()) / 1e9; }

int64_t LearnableCount(const Net& net) {
  int64_t count = 0;
  for (const GraphParam& param : net.compiled().graph.params) {
    if (param.learnable) count += param.spec.shape.count();
  }
  return count;
}

}  // namespace crema::bench
