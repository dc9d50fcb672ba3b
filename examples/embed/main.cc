// A program that uses crema from outside: installed headers and crema::crema, nothing else (docs/cpp.md).
//
//   embed DEPLOY WEIGHTS
//
// runs a net, changes a parameter of it, uses a layer type of its own and trains a net step by step.
#include <crema/files.h>
#include <crema/layer.h>
#include <crema/net.h>
#include <crema/solver.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

namespace {

void Fail(const std::string& what) {
  std::cerr << "embed: " << what << "\n";
  std::exit(1);
}

void Fill(crema::Tensor tensor) {
  for (int64_t i = 0; i < tensor.count(); ++i) tensor.f32()[i] = static_cast<float>(i % 7) / 7;
}

// net.forward() and net.params of pycaffe.
void UseNet(const std::string& deploy, const std::string& weights) {
  crema::Net net(crema::ReadNetFile(deploy), {.phase = crema::TEST, .backward = false});
  const crema::WeightsReport report = net.LoadWeights(crema::ReadWeights(weights));
  if (!report.fresh.empty()) Fail(weights + " has nothing for layer " + report.fresh[0]);

  const crema::NetInput input = net.inputs().at(0);
  Fill(input.value);
  net.Forward();
  const crema::NetOutput output = net.outputs().at(0);
  const int64_t classes = output.value.shape()[1];
  const float* const scores = output.value.f32();
  const int64_t best = std::max_element(scores, scores + classes) - scores;
  std::cout << output.name << " " << output.value.shape().ToString() << ", class " << best << ": " << scores[best]
            << "\n";

  crema::Parameter& bias = net.parameters().back();
  std::vector<float> values(static_cast<size_t>(bias.shape.count()));
  bias.CopyDataTo(values.data());
  values[0] += 1000;
  bias.SetData(values.data());
  net.ParametersChanged();
  net.Forward();
  if (std::abs(net.outputs().at(0).value.f32()[0] - 1) > 1e-5F) Fail("the parameter was not changed");
  std::cout << bias.name() << " changed: class 0\n";
}

// y = x / 2, a type that files can name as they name crema's own.
class HalveLayer : public crema::Layer {
 public:
  void Setup(crema::LayerSetup& setup) override {
    setup.ExpectBottoms(1);
    setup.ExpectTops(1);
    setup.SetTop(0, setup.bottom_shape(0));
  }
  void Forward(const crema::LayerRun& run) override {
    for (int64_t i = 0; i < run.tops[0].count(); ++i) run.tops[0].f32()[i] = run.bottoms[0].f32()[i] / 2;
  }
  void Backward(const crema::LayerRun& run) override {
    for (int64_t i = 0; i < run.tops[0].count(); ++i) run.bottom_grads[0].f32()[i] = run.top_grads[0].f32()[i] / 2;
  }
};
REGISTER_LAYER(Halve, HalveLayer);

// solver.step() of pycaffe: learns to give 1 for every row.
constexpr char kSolver[] = R"(
base_lr: 0.1 lr_policy: "fixed" max_iter: 20 random_seed: 1 snapshot_after_train: false
net_param {
  name: "embed"
  layer { name: "x" type: "DummyData" top: "x" top: "one" dummy_data_param {
    shape { dim: 4 dim: 3 } shape { dim: 4 dim: 1 }
    data_filler { type: "uniform" min: 0 max: 1 } data_filler { value: 1 } } }
  layer { name: "half" type: "Halve" bottom: "x" top: "half" }
  layer { name: "ip" type: "InnerProduct" bottom: "half" top: "y"
    inner_product_param { num_output: 1 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "one" top: "loss" }
}
)";

void TrainStepByStep() {
  crema::Solver solver(crema::ParseSolver(kSolver, "embed.prototxt"), {});
  solver.Step(1);
  const float first = solver.smoothed_loss();
  while (solver.iteration() < 20) solver.Step(1);
  std::cout << "loss " << first << ", after 20 iterations " << solver.smoothed_loss() << "\n";
  if (!(solver.smoothed_loss() < first)) Fail("nothing was learnt");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) Fail("usage: embed DEPLOY WEIGHTS");
  try {
    UseNet(argv[1], argv[2]);
    TrainStepByStep();
    std::cout << crema::LayerTypes().size() << " layer types\n";
  } catch (const std::exception& error) {
    Fail(error.what());
  }
}
