// Updates of weights that lie in a form of their kernel's own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "crema/net.h"
#include "solver/rules/updater.h"

namespace crema {
namespace {

constexpr char kNet[] = R"(
layer { type: "Input" name: "in" top: "data" top: "label"
        input_param { shape { dim: 4 dim: 3 dim: 9 dim: 8 } shape { dim: 4 } } }
layer { type: "Convolution" name: "c1" bottom: "data" top: "c1"
        convolution_param { num_output: 20 kernel_size: 3 weight_filler { type: "msra" } } }
layer { type: "TanH" name: "t1" bottom: "c1" top: "c1" }
layer { type: "Convolution" name: "c2" bottom: "c1" top: "c2"
        convolution_param { num_output: 18 group: 2 kernel_size: 3 bias_term: false weight_filler { type: "msra" } } }
layer { type: "Convolution" name: "c3" bottom: "c2" top: "c3"
        convolution_param { num_output: 33 kernel_size: 1 weight_filler { type: "msra" } } }
layer { type: "InnerProduct" name: "ip" bottom: "c3" top: "ip"
        inner_product_param { num_output: 5 weight_filler { type: "xavier" } } }
layer { type: "SoftmaxWithLoss" name: "loss" bottom: "ip" bottom: "label" top: "loss" })";

class LaidOutUpdates : public testing::TestWithParam<const char*> {
 protected:
  SolverParameter Solver() const {
    SolverParameter solver;
    solver.set_type(GetParam());
    const std::string type = GetParam();
    if (type != "AdaGrad" && type != "RMSProp") solver.set_momentum(0.9f);
    if (type == "RMSProp") solver.set_rms_decay(0.98f);
    solver.set_delta(1e-6f);
    solver.set_weight_decay(0.01f);
    solver.set_clip_gradients(2);
    return solver;
  }
};

struct Trained {
  explicit Trained(const SolverParameter& solver, std::vector<std::string> skip_passes)
      : net(ParseNet(kNet, "net.prototxt"), Options(std::move(skip_passes))),
        updater(solver, std::as_const(net).parameters()) {
    for (int step = 0; step < 4; ++step) {
      const Tensor data = net.blob("data"), label = net.blob("label");
      for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(0.37f * static_cast<float>(i + step));
      for (int64_t i = 0; i < label.count(); ++i) label.f32()[i] = static_cast<float>((i + step) % 5);
      losses.push_back(net.Forward());
      net.Backward();
      norms.push_back(updater.GradientNorm());
      updater.Begin(step, 0.002f, updater.ClipScale(norms.back()));
      updater.Apply();
    }
  }
  static NetOptions Options(std::vector<std::string> skip_passes) {
    NetOptions options;
    options.context.seed = 3;
    options.skip_passes = std::move(skip_passes);
    return options;
  }

  Net net;
  Updater updater;
  std::vector<double> losses, norms;
};

std::vector<float> Plain(const Parameter& p, const Tensor& stored) {
  std::vector<float> values(p.shape.count());
  CopyToPlain(p.layout.get(), stored, values.data());
  return values;
}

TEST_P(LaidOutUpdates, EqualPlainOnes) {
  const Trained laid_out(Solver(), {}), plain(Solver(), {"lay_out_weights"});
  for (size_t step = 0; step < laid_out.losses.size(); ++step) {
    EXPECT_NEAR(laid_out.losses[step], plain.losses[step], 1e-4 * plain.losses[step]);
    EXPECT_NEAR(laid_out.norms[step], plain.norms[step], 1e-3 * plain.norms[step]);
  }
  EXPECT_NE(laid_out.losses.front(), laid_out.losses.back());
  const std::span<const Parameter> ours = laid_out.net.parameters(), theirs = plain.net.parameters();
  int kept = 0;
  for (int i = 0; i < laid_out.updater.histories(); ++i) {
    const size_t p = i % ours.size();
    kept += ours[p].layout != nullptr;
    EXPECT_EQ(theirs[p].layout, nullptr);
    const auto near = [&](const std::vector<float>& a, const std::vector<float>& b, const char* what) {
      float largest = 0;
      for (const float value : b) largest = std::max(largest, std::abs(value));
      for (size_t k = 0; k < a.size(); ++k) {
        ASSERT_NEAR(a[k], b[k], 0.02f * largest) << what << " of " << ours[p].name() << " " << k;
      }
    };
    near(Plain(ours[p], ours[p].data), Plain(theirs[p], theirs[p].data), "values");
    near(Plain(ours[p], laid_out.updater.history(i)), Plain(theirs[p], plain.updater.history(i)), "history");
  }
  EXPECT_GE(kept, 3);
}

TEST_P(LaidOutUpdates, LeavePaddingZero) {
  const Trained trained(Solver(), {});
  int64_t padding = 0;
  const std::span<const Parameter> parameters = trained.net.parameters();
  for (int i = 0; i < trained.updater.histories(); ++i) {
    const Parameter& p = parameters[i % parameters.size()];
    if (!p.layout) continue;
    padding += p.layout->count() - p.layout->plain_count();
    for (const Tensor& stored : {p.data, p.grad, trained.updater.history(i)}) {
      std::vector<float> again(stored.count());
      p.layout->FromPlain(Plain(p, stored).data(), again.data());
      EXPECT_TRUE(std::equal(again.begin(), again.end(), stored.f32())) << p.name();
    }
  }
  if (padding == 0) GTEST_SKIP() << "the kernels of this CPU pad nothing";
}

INSTANTIATE_TEST_SUITE_P(All, LaidOutUpdates,
                         testing::Values("SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam", "AdamW"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace crema
