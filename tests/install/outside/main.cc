// Uses crema as another project would: installed headers and crema::crema, nothing else.
#include <crema/files.h>
#include <crema/layer.h>
#include <crema/net.h>

#include <cmath>
#include <iostream>

namespace {

// A layer type of this project's own: y = x / 2.
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

constexpr char kNet[] = R"(
name: "outside"
layer { name: "x" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "half" type: "Halve" bottom: "x" top: "y" }
)";

void Fail(const std::string& what) {
  std::cerr << "outside: " << what << "\n";
  std::exit(1);
}

void Run(crema::Net& net, const std::string& input) {
  crema::Tensor x = net.blob(input);
  for (int64_t i = 0; i < x.count(); ++i) x.f32()[i] = static_cast<float>(i % 7);
  net.Forward();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    crema::Net own(crema::ParseNet(kNet, "outside.prototxt"), {.phase = crema::TEST});
    Run(own, "x");
    for (int i = 0; i < 6; ++i) {
      if (own.blob("y").f32()[i] != static_cast<float>(i) / 2) Fail("the Halve layer gave a wrong value");
    }

    if (argc != 2) Fail("usage: outside NET");
    crema::Net lenet(crema::ReadNetFile(argv[1]), {.phase = crema::TEST});
    Run(lenet, "data");
    const crema::Tensor prob = lenet.blob("prob");
    const int64_t classes = prob.shape()[1];
    for (int64_t row = 0; row < prob.shape()[0]; ++row) {
      double sum = 0;
      for (int64_t k = 0; k < classes; ++k) sum += prob.f32()[row * classes + k];
      if (classes != 10 || std::abs(sum - 1) > 1e-5) Fail("the rows of prob do not sum to 1");
    }
    std::cout << "outside: " << crema::LayerTypes().size() << " layer types, prob " << prob.shape().ToString() << "\n";
  } catch (const crema::UserError& error) {
    Fail(error.what());
  }
}
