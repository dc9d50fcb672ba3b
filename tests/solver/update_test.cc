// Update rules against scalar formulas in double, over several steps.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <functional>
#include <map>

#include "base/random.h"
#include "solver/rules/updater.h"

namespace crema {
namespace {

constexpr int kSteps = 6;

// Three parameters: an ordinary one longer than a segment, a bias with its own multipliers, and a frozen one.
struct Model {
  explicit Model(uint64_t seed) : random(seed, 1) {
    const std::vector<Shape> shapes = {{70, 500}, {33}, {5}};
    const float lr_mults[] = {1, 2, 0}, decay_mults[] = {1, 0.5f, 1};
    values.resize(shapes.size());
    gradients.resize(shapes.size());
    for (size_t p = 0; p < shapes.size(); ++p) {
      values[p].resize(shapes[p].count());
      gradients[p].resize(shapes[p].count());
      for (size_t i = 0; i < values[p].size(); ++i) values[p][i] = random.Gaussian(draw++);
      values[p][0] = 0;  // L1 decay has a corner here
      Parameter parameter;
      parameter.layer = "layer" + std::to_string(p);
      parameter.data = Tensor(values[p].data(), {shapes[p]});
      parameter.trained = lr_mults[p] != 0;
      if (parameter.trained) parameter.grad = Tensor(gradients[p].data(), {shapes[p]});
      parameter.lr_mult = lr_mults[p];
      parameter.decay_mult = decay_mults[p];
      parameters.push_back(parameter);
    }
  }

  void DrawGradients() {
    for (auto& gradient : gradients) {
      for (float& g : gradient) g = 0.3f * random.Gaussian(draw++);
    }
  }

  RandomStream random;
  uint64_t draw = 0;
  std::vector<std::vector<float>> values, gradients;
  std::vector<Parameter> parameters;
};

SolverParameter BaseSolver(const std::string& type) {
  SolverParameter solver;
  solver.set_type(type);
  solver.set_base_lr(0.1f);
  if (type != "AdaGrad" && type != "RMSProp") solver.set_momentum(0.9f);
  solver.set_delta(1e-3f);
  solver.set_rms_decay(0.95f);
  solver.set_momentum2(0.99f);
  return solver;
}

// What the papers and Caffe's documentation say, one element at a time.
double Reference(const SolverParameter& s, int step, double g, double rate, double& a, double& b) {
  const double mu = s.momentum(), delta = s.delta();
  if (s.type() == "SGD") return a = mu * a + rate * g;
  if (s.type() == "Nesterov") {
    const double before = a;
    a = mu * a + rate * g;
    return (1 + mu) * a - mu * before;
  }
  if (s.type() == "AdaGrad") {
    a += g * g;
    return rate * g / (std::sqrt(a) + delta);
  }
  if (s.type() == "RMSProp") {
    a = s.rms_decay() * a + (1 - s.rms_decay()) * g * g;
    return rate * g / (std::sqrt(a) + delta);
  }
  if (s.type() == "AdaDelta") {
    a = mu * a + (1 - mu) * g * g;
    const double d = g * std::sqrt((b + delta) / (a + delta));
    b = mu * b + (1 - mu) * d * d;
    return rate * d;
  }
  const double t = step + 1, mu2 = s.momentum2();
  a = mu * a + (1 - mu) * g;
  b = mu2 * b + (1 - mu2) * g * g;
  return rate * std::sqrt(1 - std::pow(mu2, t)) / (1 - std::pow(mu, t)) * a / (std::sqrt(b) + delta);
}

void ExpectMatchesReference(const SolverParameter& solver) {
  Model model(3);
  Updater updater(solver, model.parameters);
  std::vector<std::vector<double>> w, a, b;
  for (const auto& values : model.values) {
    w.emplace_back(values.begin(), values.end());
    a.emplace_back(values.size(), 0.0);
    b.emplace_back(values.size(), 0.0);
  }
  const std::vector<float> frozen = model.values[2];
  for (int step = 0; step < kSteps; ++step) {
    model.DrawGradients();
    const double rate = 0.1 / (1 + step);
    SolverParameter now = solver;
    if (solver.momentum_policy() == "poly") now.set_momentum(0.2f + (0.99f - 0.2f) * static_cast<float>(step) / kSteps);
    if (solver.momentum_policy() == "opt") now.set_momentum(static_cast<float>(std::pow(1 - std::sqrt(rate) / 2, 2)));
    double norm = 0;
    for (int p = 0; p < 2; ++p) {
      for (const float g : model.gradients[p]) norm += double{g} * g;
    }
    norm = std::sqrt(norm);
    double scale = 1.0 / solver.iter_size();
    if (solver.clip_gradients() > 0 && norm > solver.clip_gradients()) scale *= solver.clip_gradients() / norm;
    EXPECT_NEAR(updater.GradientNorm(), norm, 1e-9 * norm);

    updater.Begin(step, static_cast<float>(rate), updater.ClipScale(updater.GradientNorm()));
    updater.Apply();
    for (int p = 0; p < 2; ++p) {
      double of_parameter = rate * model.parameters[p].lr_mult;
      if (solver.larc()) {
        double values = 0, gradients = 0;
        for (const double x : w[p]) values += x * x;
        for (const double g : model.gradients[p]) gradients += scale * g * scale * g;
        const double ratio = values > 0 ? solver.larc_eta() * std::sqrt(values) / std::sqrt(gradients) : 1;
        of_parameter = solver.larc_policy() == "clip" ? std::min(rate, ratio) : rate * ratio;
      }
      const double decay = solver.weight_decay() * model.parameters[p].decay_mult;
      double worst = 0;
      for (size_t i = 0; i < w[p].size(); ++i) {
        double g = scale * model.gradients[p][i];
        if (solver.type() == "AdamW") {
          w[p][i] *= 1 - of_parameter * decay;
        } else if (solver.regularization_type() == "L1") {
          g += decay * ((w[p][i] > 0) - (w[p][i] < 0));
        } else {
          g += decay * w[p][i];
        }
        w[p][i] -= Reference(now, step, g, of_parameter, a[p][i], b[p][i]);
        worst = std::max(worst, std::abs(w[p][i] - model.values[p][i]) / (1 + std::abs(w[p][i])));
      }
      EXPECT_LT(worst, 2e-6) << solver.ShortDebugString() << " step " << step << " parameter " << p;
    }
  }
  EXPECT_EQ(model.values[2], frozen);
}

TEST(MomentumPolicy, IsThatOfEachUpdate) {
  for (const char* type : {"SGD", "Nesterov"}) {
    SolverParameter solver = BaseSolver(type);
    solver.set_momentum(0.2f);
    solver.set_max_iter(kSteps);
    solver.set_momentum_policy("poly");
    ExpectMatchesReference(solver);
    solver.set_momentum_policy("opt");
    ExpectMatchesReference(solver);
  }
}

TEST(LocalRates, AreThoseOfLarc) {
  for (const char* type : {"SGD", "Nesterov"}) {
    for (const char* policy : {"scale", "clip"}) {
      // Of these, "clip" takes the rate itself for one parameter, and that of the norms for another.
      for (const float eta : {0.02f, 0.3f}) {
        SolverParameter solver = BaseSolver(type);
        solver.set_larc(true);
        solver.set_larc_policy(policy);
        solver.set_larc_eta(eta);
        solver.set_weight_decay(0.05f);
        ExpectMatchesReference(solver);
        solver.set_iter_size(4);
        solver.set_clip_gradients(2.5f);
        ExpectMatchesReference(solver);
      }
    }
  }
}

TEST(LocalRates, AreTheRateWhereThereIsNothingToMeasure) {
  float w[] = {0, 0, 3, 4}, g[] = {2, 0, 0, 0};
  std::vector<Parameter> parameters(2);
  for (size_t p = 0; p < 2; ++p) {
    parameters[p].data = Tensor(w + 2 * p, {Shape{2}});
    parameters[p].grad = Tensor(g + 2 * p, {Shape{2}});
    parameters[p].trained = true;
  }
  SolverParameter solver;
  solver.set_larc(true);
  solver.set_weight_decay(0.5f);
  Updater updater(solver, parameters);
  updater.Begin(0, 0.1f);
  updater.Apply();
  EXPECT_FLOAT_EQ(w[0], -0.2f) << "a parameter of zeros";
  EXPECT_FLOAT_EQ(w[2], 3 - 0.1f * 1.5f) << "a gradient of zeros, and weight decay";
}

class UpdateRules : public testing::TestWithParam<const char*> {};

TEST_P(UpdateRules, FollowTheirFormulas) { ExpectMatchesReference(BaseSolver(GetParam())); }

TEST_P(UpdateRules, DecayWeightsByL2) {
  SolverParameter solver = BaseSolver(GetParam());
  solver.set_weight_decay(0.05f);
  ExpectMatchesReference(solver);
}

TEST_P(UpdateRules, DecayWeightsByL1) {
  SolverParameter solver = BaseSolver(GetParam());
  solver.set_weight_decay(0.05f);
  if (solver.type() == "AdamW") GTEST_SKIP() << "CheckSolver refuses it";
  solver.set_regularization_type("L1");
  // Weights that L1 pulls across zero depend on the last bit; a small rate keeps their number and effect small.
  ExpectMatchesReference(solver);
}

TEST_P(UpdateRules, ClipTheAccumulatedGradientThenDivideByIterSize) {
  SolverParameter solver = BaseSolver(GetParam());
  solver.set_iter_size(4);
  solver.set_clip_gradients(2.5f);
  solver.set_weight_decay(0.05f);
  ExpectMatchesReference(solver);
}

TEST_P(UpdateRules, DoNotDependOnTheNumberOfThreads) {
  SolverParameter solver = BaseSolver(GetParam());
  solver.set_clip_gradients(1);
  std::vector<std::vector<float>> results;
  const int before = omp_get_max_threads();
  for (const int threads : {1, 3}) {
    omp_set_num_threads(threads);
    Model model(5);
    Updater updater(solver, model.parameters);
    for (int step = 0; step < 3; ++step) {
      model.DrawGradients();
      updater.Begin(step, 0.1f, updater.ClipScale(updater.GradientNorm()));
      updater.Apply();
    }
    results.push_back(model.values[0]);
  }
  omp_set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

TEST_P(UpdateRules, KeepHistoriesInTheOrderOfCaffesSnapshots) {
  const SolverParameter solver = BaseSolver(GetParam());
  Model model(3);
  const Updater updater(solver, model.parameters);
  const bool two = solver.type().starts_with("Adam") || solver.type() == "AdaDelta";
  ASSERT_EQ(updater.histories(), two ? 6 : 3);
  for (int i = 0; i < updater.histories(); ++i) {
    EXPECT_EQ(updater.history(i).shape(), model.parameters[i % 3].data.shape());
  }
}

INSTANTIATE_TEST_SUITE_P(All, UpdateRules,
                         testing::Values("SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam", "AdamW"),
                         [](const auto& info) { return std::string(info.param); });

TEST(UpdateRules, EveryRuleOfTheTableIsTested) { EXPECT_EQ(UpdateRuleTypes().size(), 7u); }

// Algorithm 2 of the paper, as it stands there, and as other programs compute it.
TEST(UpdateRules, AdamWIsThatOfThePaper) {
  const double gradients[] = {0.5, -2, 0.25, 3, 0.125}, rates[] = {0.1, 0.1, 0.05, 0.02, 0.2};
  float w = 2, g = 0;
  Parameter parameter;
  parameter.data = Tensor(&w, {Shape{1}});
  parameter.trained = true;
  parameter.grad = Tensor(&g, {Shape{1}});
  parameter.lr_mult = 0.5f;
  parameter.decay_mult = 2;
  SolverParameter solver;
  solver.set_type("AdamW");
  solver.set_momentum(0.9f);
  solver.set_momentum2(0.95f);
  solver.set_weight_decay(0.3f);
  Updater updater(solver, {&parameter, 1});
  double wanted = 2, m = 0, v = 0;
  for (int t = 1; t <= 5; ++t) {
    const double rate = 0.5 * rates[t - 1], gradient = gradients[t - 1];
    wanted -= rate * 0.6 * wanted;
    m = 0.9 * m + 0.1 * gradient;
    v = 0.95 * v + 0.05 * gradient * gradient;
    wanted -= rate * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.95, t))) + 1e-8);
    g = static_cast<float>(gradient);
    updater.Begin(t - 1, static_cast<float>(rates[t - 1]), 1);
    updater.Apply();
    EXPECT_NEAR(w, wanted, 1e-6) << t;
  }
  EXPECT_LT(w, 1.8);
}

TEST(UpdateRules, HistoryHoldsTheRate) {
  // One step at rate 1, then a zero gradient at rate 0: momentum still moves the weight by 0.5.
  float w = 0, g = 1;
  Parameter parameter;
  parameter.data = Tensor(&w, {Shape{1}});
  parameter.trained = true;
  parameter.grad = Tensor(&g, {Shape{1}});
  SolverParameter solver;
  solver.set_momentum(0.5f);
  Updater updater(solver, {&parameter, 1});
  updater.Begin(0, 1, 1);
  updater.Apply();
  EXPECT_EQ(w, -1.0f);
  g = 0;
  updater.Begin(1, 0, 1);
  updater.Apply();
  EXPECT_EQ(w, -1.5f);
}

TEST(UpdateRules, OldSolverTypesHaveNames) {
  SolverParameter solver;
  EXPECT_EQ(UpdateRuleName(solver), "SGD");
  solver.set_solver_type(SolverParameter::ADADELTA);
  EXPECT_EQ(UpdateRuleName(solver), "AdaDelta");
  for (const UpdateRuleType& type : UpdateRuleTypes()) EXPECT_EQ(FindUpdateRule(type.name), &type);
  EXPECT_EQ(FindUpdateRule("ADAM"), nullptr);
}

}  // namespace
}  // namespace crema
