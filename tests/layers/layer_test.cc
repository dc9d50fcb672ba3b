// Every case of every layer type: see docs/adding_a_layer.md.
#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "layers/layer_harness.h"

namespace crema::testing {
namespace {

using Arrays = std::vector<std::vector<float>>;

// What one forward and backward pass made.
struct Outcome {
  Arrays tops, bottom_gradients, param_gradients;
  std::string problem;
};

Wanted EverythingWanted(const LayerInstance& layer, const LayerCase& test) {
  Wanted wanted;
  for (int i = 0; i < test.bottom_size(); ++i) wanted.bottoms.push_back(layer.setup().has_gradient(i));
  for (const ParamRequest& request : layer.setup().params()) wanted.params.push_back(request.learnable);
  return wanted;
}

bool Any(const Wanted& wanted) {
  return std::count(wanted.bottoms.begin(), wanted.bottoms.end(), true) +
             std::count(wanted.params.begin(), wanted.params.end(), true) >
         0;
}

bool IsGradientTop(const LayerCase& test, int top) {
  const auto& tops = test.gradient_top();
  return tops.empty() || std::find(tops.begin(), tops.end(), top) != tops.end();
}

// Fixed weights that make one number of the tops; `constant` != 0 gives all elements that weight.
Arrays TopWeights(const LayerInstance& layer, const LayerCase& test, float constant) {
  Arrays weights;
  for (int i = 0; i < layer.setup().tops(); ++i) {
    std::vector<float> weight(static_cast<size_t>(layer.TopCount(i)), 0.0f);
    for (size_t e = 0; e < weight.size() && IsGradientTop(test, i); ++e) {
      weight[e] = constant != 0 ? constant : static_cast<float>(GenericValue(e, static_cast<uint64_t>(3000 + i)));
    }
    weights.push_back(std::move(weight));
  }
  return weights;
}

Outcome RunOnce(const LayerCase& test, const Wanted* wanted, bool in_place, float top_gradient = 0) {
  LayerInstance layer(test, wanted, in_place);
  layer.FillInputs();
  layer.Forward();
  Outcome outcome;
  for (int i = 0; i < layer.setup().tops(); ++i) outcome.tops.push_back(layer.Top(i));
  if (wanted != nullptr) {
    layer.Backward(TopWeights(layer, test, top_gradient));
    for (size_t i = 0; i < wanted->bottoms.size(); ++i) {
      outcome.bottom_gradients.push_back(layer.BottomGradient(static_cast<int>(i)));
    }
    for (size_t i = 0; i < wanted->params.size(); ++i) {
      outcome.param_gradients.push_back(layer.ParamGradient(static_cast<int>(i)));
    }
  }
  outcome.problem = layer.MemoryProblem();
  return outcome;
}

double Largest(const std::vector<float>& values) {
  double largest = 0;
  for (float value : values) largest = std::max(largest, std::fabs(static_cast<double>(value)));
  return largest;
}

// Expects |actual - expected| <= tolerance * largest |expected| (at least `floor`), and equal bits where tolerance is
// 0.
void ExpectClose(const std::vector<float>& actual, const std::vector<float>& expected, double tolerance, double floor,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  const double allowed = tolerance * std::max(floor, Largest(expected));
  for (size_t i = 0; i < actual.size(); ++i) {
    const bool same = actual[i] == expected[i] || std::fabs(static_cast<double>(actual[i]) - expected[i]) <= allowed;
    ASSERT_TRUE(same) << what << ", element " << i << ": " << actual[i] << " instead of " << expected[i];
  }
}

void ExpectSame(const Arrays& actual, const Arrays& expected, double tolerance, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    ExpectClose(actual[i], expected[i], tolerance, 1e-6, what + " " + std::to_string(i));
  }
}

void ExpectSame(const Outcome& actual, const Outcome& expected, double tolerance, const std::string& what) {
  ExpectSame(actual.tops, expected.tops, tolerance, what + ": top");
  ExpectSame(actual.bottom_gradients, expected.bottom_gradients, tolerance, what + ": gradient of bottom");
  ExpectSame(actual.param_gradients, expected.param_gradients, tolerance, what + ": gradient of parameter");
}

// Compares an analytic gradient with differences of the weighted sum of the tops, at some elements of `input`.
void CheckDifferences(const LayerCase& test, LayerInstance& layer, const Tensor& input,
                      const std::vector<float>& gradient, const Arrays& weights, const std::string& what) {
  const auto evaluate = [&] {
    layer.Forward();
    double sum = 0;
    for (int t = 0; t < layer.setup().tops(); ++t) {
      const std::vector<float> top = layer.Top(t);
      for (size_t e = 0; e < top.size(); ++e) {
        if (weights[t][e] != 0) sum += static_cast<double>(weights[t][e]) * top[e];
      }
    }
    return sum;
  };
  const int64_t samples = input.count() > 4096 ? 8 : 64;
  const int64_t stride = std::max<int64_t>(1, input.count() / samples);
  const double allowed = test.gradient_tolerance() * std::max(1e-3, Largest(gradient));
  for (int64_t i = 0; i < input.count(); i += stride) {
    const float original = input.f32()[i];
    const auto at = [&](double distance) {
      input.f32()[i] = static_cast<float>(original + distance);
      const double moved = static_cast<double>(input.f32()[i]) - original;
      return std::pair<double, double>(evaluate(), moved);
    };
    // Four points: the error falls with the fourth power of the step.
    const double h = test.gradient_step();
    const auto [near_up, up] = at(h);
    const auto [near_down, down] = at(-h);
    const auto [far_up, up2] = at(2 * h);
    const auto [far_down, down2] = at(-2 * h);
    input.f32()[i] = original;
    const double near = (near_up - near_down) / (up - down), far = (far_up - far_down) / (up2 - down2);
    const double difference = (4 * near - far) / 3;
    ASSERT_LE(std::fabs(difference - gradient[static_cast<size_t>(i)]), allowed)
        << "gradient of " << what << ", element " << i << ": Backward says " << gradient[static_cast<size_t>(i)]
        << ", differences say " << difference;
  }
}

void CheckExpectedGradients(const ::google::protobuf::RepeatedPtrField<CaseTensor>& expected, const Arrays& actual,
                            double tolerance, const std::string& what) {
  for (int i = 0; i < expected.size(); ++i) {
    if (expected.Get(i).value_size() == 0) continue;
    ASSERT_LT(static_cast<size_t>(i), actual.size()) << what;
    const Shape flat{static_cast<int64_t>(actual[i].size())};
    ExpectClose(actual[i], Values(expected.Get(i), flat, 0), tolerance, 1.0, what + " " + std::to_string(i));
  }
}

void CheckShapes(const LayerCase& test, const LayerSetup& setup) {
  if (test.expect_top_size() > 0) {
    ASSERT_EQ(test.expect_top_size(), setup.tops());
  }
  for (int i = 0; i < test.expect_top_size(); ++i) {
    EXPECT_EQ(setup.top_specs()[i].shape.ToString(), ShapeOf(test.expect_top(i)).ToString()) << "shape of top " << i;
  }
  if (test.has_expect_in_place()) {
    EXPECT_EQ(setup.in_place(), test.expect_in_place());
  }
  if (test.has_expect_view()) {
    EXPECT_EQ(setup.is_view(), test.expect_view());
  }
  if (test.has_expect_warning()) {
    const bool found = std::any_of(setup.warnings().begin(), setup.warnings().end(), [&](const Diagnostic& warning) {
      return warning.message.find(test.expect_warning()) != std::string::npos;
    });
    EXPECT_TRUE(found) << "no warning says: " << test.expect_warning();
  }
}

void CheckError(const LayerCase& test) {
  try {
    LayerInstance layer(test, nullptr, false);
    layer.FillInputs();
    layer.Forward();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(test.expect_error()), std::string::npos) << error.what();
    EXPECT_FALSE(test.has_expect_item()) << "a UserError names no item";
    return;
  } catch (const BadItem& error) {
    EXPECT_NE(std::string(error.what()).find(test.expect_error()), std::string::npos) << error.what();
    if (test.has_expect_item()) {
      EXPECT_EQ(error.item, test.expect_item());
    }
    return;
  }
  FAIL() << "accepted, but expected: " << test.expect_error();
}

class Threads {
 public:
  explicit Threads(int wanted) : before_(omp_get_max_threads()) { omp_set_num_threads(wanted); }
  ~Threads() { omp_set_num_threads(before_); }

 private:
  int before_;
};

void CheckInPlace(const LayerCase& test, const Wanted& everything, const Outcome& reference) {
  // The compiler overwrites bottom 0 only where the backward pass does not read it.
  const LayerInstance probe(test, Any(everything) ? &everything : nullptr, true);
  const bool backward = Any(everything) && probe.CanBackwardInPlace();
  const Outcome in_place = RunOnce(test, backward ? &everything : nullptr, true);
  EXPECT_EQ(in_place.problem, "");
  ExpectSame(in_place.tops, reference.tops, 0, "in place: top");
  if (!backward) return;
  ExpectSame(in_place.bottom_gradients, reference.bottom_gradients, 0, "in place: gradient of bottom");
  ExpectSame(in_place.param_gradients, reference.param_gradients, 0, "in place: gradient of parameter");
}

// Each gradient asked for by itself is what it is among all of them.
void CheckSingleGradients(const LayerCase& test, const Wanted& everything, const Outcome& reference) {
  const size_t bottoms = everything.bottoms.size();
  for (size_t i = 0; i < bottoms + everything.params.size(); ++i) {
    const bool of_bottom = i < bottoms;
    if (!(of_bottom ? everything.bottoms[i] : everything.params[i - bottoms])) continue;
    Wanted one{std::vector<bool>(bottoms, false), std::vector<bool>(everything.params.size(), false)};
    (of_bottom ? one.bottoms[i] : one.params[i - bottoms]) = true;
    const Outcome outcome = RunOnce(test, &one, false);
    EXPECT_EQ(outcome.problem, "");
    const auto& actual = of_bottom ? outcome.bottom_gradients[i] : outcome.param_gradients[i - bottoms];
    const auto& expected = of_bottom ? reference.bottom_gradients[i] : reference.param_gradients[i - bottoms];
    ExpectClose(actual, expected, 1e-5, 1e-3, "the gradient asked for alone of input " + std::to_string(i));
  }
}

void CheckCase(const LayerCase& test) {
  if (test.has_expect_error()) return CheckError(test);
  LayerInstance plain(test, nullptr, false);
  EXPECT_EQ(plain.MemoryProblem(), "");
  CheckShapes(test, plain.setup());
  if (plain.setup().is_view()) {
    for (const TensorSpec& top : plain.setup().top_specs()) {
      EXPECT_EQ(top.shape.count(), ShapeOf(test.bottom(0)).count()) << "a view keeps the number of elements";
      EXPECT_EQ(top.dtype, DType::kF32);
    }
    return;
  }
  if (test.shapes_only() || ::testing::Test::HasFatalFailure()) return;

  const bool backward = plain.setup().is_differentiable() && Any(EverythingWanted(plain, test));
  const Wanted everything = EverythingWanted(plain, test);
  const Wanted* wanted = backward ? &everything : nullptr;
  const Outcome reference = RunOnce(test, wanted, false);
  EXPECT_EQ(reference.problem, "");
  for (int i = 0; i < test.expect_top_size(); ++i) {
    if (test.expect_top(i).value_size() == 0) continue;
    const std::vector<float> expected = Values(test.expect_top(i), ShapeOf(test.expect_top(i)), 0);
    ExpectClose(reference.tops[i], expected, test.tolerance(), 1.0, "top " + std::to_string(i));
  }
  {
    const Outcome forward_only = RunOnce(test, nullptr, false);
    EXPECT_EQ(forward_only.problem, "");
    ExpectSame(forward_only.tops, reference.tops, 1e-6, "without a backward pass: top");
  }
  ExpectSame(RunOnce(test, wanted, false), reference, 0, "run again");
  {
    const Threads one(1);
    const Outcome single = RunOnce(test, wanted, false);
    omp_set_num_threads(2);
    ExpectSame(RunOnce(test, wanted, false), single, test.thread_tolerance(), "two threads against one");
  }
  if (plain.setup().in_place()) CheckInPlace(test, backward ? everything : Wanted{}, reference);
  if (!backward) return;
  CheckSingleGradients(test, everything, reference);
  if (test.expect_bottom_gradient_size() + test.expect_param_gradient_size() > 0) {
    const Outcome ones = RunOnce(test, wanted, false, 1.0f);
    CheckExpectedGradients(test.expect_bottom_gradient(), ones.bottom_gradients, test.tolerance(),
                           "gradient of bottom");
    CheckExpectedGradients(test.expect_param_gradient(), ones.param_gradients, test.tolerance(),
                           "gradient of parameter");
  }
  if (!test.check_gradient()) return;
  const Arrays weights = TopWeights(plain, test, 0);
  plain.FillInputs();
  for (size_t i = 0; i < everything.bottoms.size(); ++i) {
    if (!everything.bottoms[i]) continue;
    CheckDifferences(test, plain, plain.Bottom(static_cast<int>(i)), reference.bottom_gradients[i], weights,
                     "bottom " + std::to_string(i));
  }
  for (size_t i = 0; i < everything.params.size(); ++i) {
    if (!everything.params[i]) continue;
    CheckDifferences(test, plain, plain.Param(static_cast<int>(i)), reference.param_gradients[i], weights,
                     "parameter " + std::to_string(i));
  }
}

class LayerCaseTest : public ::testing::Test {
 public:
  explicit LayerCaseTest(LayerCase test) : test_(std::move(test)) {}
  void TestBody() override { CheckCase(test_); }

 private:
  LayerCase test_;
};

class UnreadableFile : public ::testing::Test {
 public:
  explicit UnreadableFile(std::string error) : error_(std::move(error)) {}
  void TestBody() override { FAIL() << error_; }

 private:
  std::string error_;
};

class ErrorList : public ::google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    text += std::to_string(line + 1) + ":" + std::to_string(column + 1) + ": " + message + "\n";
  }
  std::string text;
};

const std::string kFolder = std::string(CREMA_SOURCE_DIR) + "/tests/layers";

// Registers <Type>.<case> for every case of every file; an unreadable file becomes a failing test.
void RegisterCases() {
  std::set<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".prototxt") paths.insert(entry.path().string());
  }
  for (const std::string& path : paths) {
    const std::string type = std::filesystem::path(path).stem().string();
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    LayerCases cases;
    ErrorList errors;
    ::google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&errors);
    std::string problem;
    if (!parser.ParseFromString(text.str(), &cases)) problem = path + ":" + errors.text;
    std::set<std::string> names;
    for (LayerCase& test : *cases.mutable_case_()) {
      if (test.layer().type().empty()) test.mutable_layer()->set_type(type);
      if (test.layer().type() != type) problem += path + ": case " + test.name() + " is of another type\n";
      if (test.name().empty() || !names.insert(test.name()).second)
        problem += path + ": case without a name of its own\n";
      ::testing::RegisterTest(type.c_str(), test.name().c_str(), nullptr, nullptr, path.c_str(), __LINE__,
                              [test]() -> ::testing::Test* { return new LayerCaseTest(test); });
    }
    if (cases.case__size() == 0 && problem.empty()) problem = path + ": holds no case";
    if (!problem.empty()) {
      ::testing::RegisterTest("CaseFiles", type.c_str(), nullptr, nullptr, path.c_str(), __LINE__,
                              [problem]() -> ::testing::Test* { return new UnreadableFile(problem); });
    }
  }
}

TEST(LayerTypes, EachHasACaseFile) {
  EXPECT_FALSE(LayerTypes().empty());
  for (const LayerType* type : LayerTypes()) {
    EXPECT_TRUE(std::filesystem::exists(kFolder + "/" + type->name + ".prototxt"))
        << "layer type " << type->name << " has no tests/layers/" << type->name << ".prototxt";
  }
}

TEST(LayerTypes, AreFoundByName) {
  for (const LayerType* type : LayerTypes()) EXPECT_EQ(FindLayerType(type->name), type);
  EXPECT_EQ(FindLayerType("Nonsense"), nullptr);
}

}  // namespace

void RegisterLayerCases() { RegisterCases(); }

}  // namespace crema::testing

// Not gtest's own: cases are registered once the protobuf runtime is up.
int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  crema::testing::RegisterLayerCases();
  return RUN_ALL_TESTS();
}
