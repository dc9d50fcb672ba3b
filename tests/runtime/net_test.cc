#include "crema/net.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "crema/device.h"
#include "crema/error.h"
#include "graph/program.h"
#include "ops/arrays/vector_math.h"
#include "runtime/small_net.h"

namespace crema {
namespace {

std::vector<float> Gradients(Net& net) {
  std::vector<float> all;
  for (const Parameter& p : net.parameters()) {
    all.resize(all.size() + p.shape.count());
    p.CopyGradTo(all.data() + all.size() - p.shape.count());
  }
  return all;
}

TEST(Net, SharedMemoryGivesTheSameBitsAsSeparateMemory) {
  Net shared(File(kSmallNet), {});
  NetOptions options;
  options.keep_all = true;
  Net separate(File(kSmallNet), options);
  EXPECT_LT(shared.compiled().program.arena_bytes, separate.compiled().program.arena_bytes);
  for (int pass = 0; pass < 3; ++pass) {
    FillAllInputs(shared);
    FillAllInputs(separate);
    EXPECT_EQ(shared.Forward(), separate.Forward());
    shared.Backward();
    separate.Backward();
    EXPECT_EQ(Gradients(shared), Gradients(separate));
  }
}

TEST(Net, UnlikeReadersOfOneValueInSharedMemory) {
  const auto ip = [](const std::string& name, const std::string& bottom) {
    return "layer { name: \"" + name + "\" type: \"InnerProduct\" bottom: \"" + bottom + "\" top: \"" + name +
           "\" inner_product_param { num_output: 5 weight_filler { type: \"xavier\" } } }\n";
  };
  const NetFile file = File(
      "layer { name: \"in\" type: \"Input\" top: \"data\" top: \"label\" "
      "input_param { shape { dim: 6 dim: 5 } shape { dim: 6 } } }\n" +
      ip("a", "data") + ip("b", "a") + ip("c", "a") + ip("d", "a") +
      "layer { name: \"p\" type: \"Eltwise\" bottom: \"b\" bottom: \"c\" bottom: \"d\" bottom: \"a\" top: \"p\" "
      "eltwise_param { operation: SUM coeff: 1 coeff: -2 coeff: 0.5 coeff: 3 } }\n"
      "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"p\" bottom: \"label\" top: \"loss\" }\n");
  Net shared(file, {}), separate(file, {.keep_all = true});
  for (Net* net : {&shared, &separate}) {
    FillAllInputs(*net);
    net->Forward();
    net->Backward();
  }
  EXPECT_EQ(Gradients(shared), Gradients(separate));
}

// Without a backward pass nobody asks which bottom won, and nothing is kept of it.
TEST(Net, MaximumsNeedNoMemoryOfTheirSourceWhereNothingIsTrained) {
  const NetFile file = File(
      "layer { name: 'in' type: 'Input' top: 'a' top: 'b' top: 'c' input_param { shape { dim: 3 dim: 50 } } }"
      "layer { name: 'max' type: 'Eltwise' bottom: 'a' bottom: 'b' bottom: 'c' top: 'max' "
      "eltwise_param { operation: MAX } }");
  Net net(file, {.phase = TEST, .backward = false}), trained(file, {.force_backward = true});
  for (Net* n : {&net, &trained}) {
    int phase = 0;
    for (const char* blob : {"a", "b", "c"}) {
      const Tensor data = n->blob(blob);
      for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(static_cast<float>(i * ++phase));
    }
    n->Forward();
    const Tensor a = n->blob("a"), b = n->blob("b"), c = n->blob("c"), max = n->blob("max");
    for (int64_t i = 0; i < max.count(); ++i) {
      ASSERT_EQ(max.f32()[i], std::max({a.f32()[i], b.f32()[i], c.f32()[i]})) << i;
    }
  }
  for (const PlannedTensor& tensor : net.compiled().program.tensors) {
    EXPECT_EQ(tensor.name.find("saved"), std::string::npos) << tensor.name;
  }
}

TEST(Net, PassesDifferInDropoutAndCanBeRepeated) {
  Net net(File(kSmallNet), {});
  FillAllInputs(net);
  const float first = net.Forward(), second = net.Forward();
  EXPECT_NE(first, second);
  net.set_pass(0);
  EXPECT_EQ(net.Forward(), first);
  EXPECT_EQ(net.pass(), 1u);
}

TEST(Net, TheSeedDecidesTheFillersLayerByLayer) {
  NetOptions one, two;
  two.context.seed = 1;
  Net a(File(kSmallNet), one), b(File(kSmallNet), one), c(File(kSmallNet), two);
  const auto first = [](Net& net, int p) { return net.parameters()[p].data.f32()[0]; };
  EXPECT_EQ(first(a, 0), first(b, 0));
  EXPECT_NE(first(a, 0), first(c, 0));
  // A layer added in front leaves the others' start alone.
  std::string more = kSmallNet;
  more += "layer { name: 'ip2' type: 'InnerProduct' bottom: 'ip' top: 'ip2' inner_product_param { num_output: 2 } }";
  Net d(File(more), one);
  EXPECT_EQ(first(a, 2), first(d, 2));
}

TEST(Net, AccumulatesOverSeveralPasses) {
  NetOptions options;
  options.accumulate = true;
  Net sum(File(kSmallNet), options);
  Net once(File(kSmallNet), {});
  FillAllInputs(sum);
  FillAllInputs(once);
  sum.ClearGradients();
  std::vector<float> expected;
  for (int pass = 0; pass < 2; ++pass) {
    sum.Forward();
    sum.Backward();
    once.Forward();
    once.Backward();
    const auto part = Gradients(once);
    if (expected.empty()) expected.resize(part.size());
    for (size_t i = 0; i < part.size(); ++i) expected[i] += part[i];
  }
  EXPECT_EQ(Gradients(sum), expected);
  sum.ClearGradients();
  sum.set_pass(1);
  sum.Forward();
  sum.Backward();
  EXPECT_EQ(Gradients(sum), Gradients(once));
}

TEST(Net, SumsTheGradientsOfSeveralReaders) {
  // loss(ip(x) + ip'(x)) with one weight matrix shared equals loss(2 ip(x)).
  const char* const head =
      "layer { name: 'in' type: 'Input' top: 'data' top: 'label' "
      "input_param { shape { dim: 4 dim: 3 } shape { dim: 4 } } }"
      "layer { name: 'pre' type: 'InnerProduct' bottom: 'data' top: 'x' inner_product_param { "
      "num_output: 3 weight_filler { type: 'xavier' } } }";
  const auto ip = [](const std::string& name, const std::string& top) {
    return "layer { name: '" + name + "' type: 'InnerProduct' bottom: 'x' top: '" + top +
           "' param { name: 'w' } inner_product_param { num_output: 5 bias_term: false weight_filler { type: "
           "'gaussian' } } }";
  };
  const char* const tail = "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'e' bottom: 'label' top: 'loss' }";
  Net two(File(head + ip("a", "a") + ip("b", "b") +
               "layer { name: 'e' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 'e' }" + tail),
          {});
  Net one(
      File(head + ip("a", "a") +
           "layer { name: 'e' type: 'Eltwise' bottom: 'a' top: 'e' bottom: 'a' eltwise_param { coeff: 1 coeff: 1 } }" +
           tail),
      {});
  for (Net* net : {&two, &one}) {
    for (int64_t i = 0; i < 12; ++i) net->blob("data").f32()[i] = std::cos(static_cast<float>(i));
    for (int64_t i = 0; i < 4; ++i) net->blob("label").f32()[i] = static_cast<float>(i);
  }
  EXPECT_FLOAT_EQ(two.Forward(), one.Forward());
  two.Backward();
  one.Backward();
  const auto a = Gradients(two), b = Gradients(one);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6);
}

TEST(Net, TestNetUsesTheTrainNetsParameters) {
  Net train(File(kSmallNet), {});
  NetOptions options;
  options.phase = TEST;
  options.backward = false;
  options.share_with = &train;
  Net test(File(kSmallNet), options);
  EXPECT_EQ(test.parameters()[0].data.raw(), train.parameters()[0].data.raw());
  FillAllInputs(test);
  const float before = test.Forward();
  Scale(train.parameters()[2].data.count(), 3, train.parameters()[2].data.f32());
  EXPECT_NE(test.Forward(), before);

  std::string other = kSmallNet;
  other.replace(other.find("num_output: 5"), 13, "num_output: 7");
  try {
    Net mismatched(File(other), options);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("ip[0] is 7x54 in the test net but 5x54"), std::string::npos)
        << error.what();
  }
}

TEST(Net, ANetThatBorrowsParametersHasNoGradients) {
  Net owner(File(kSmallNet), {});
  NetOptions options;
  options.share_with = &owner;
  Net borrower(File(kSmallNet), options);
  FillAllInputs(borrower);
  borrower.Forward();
  EXPECT_THROW(borrower.Backward(), UserError);
}

TEST(Net, ComputesOnTheDeviceThatIsNamed) {
  NetOptions options;
  options.context.device = &CpuDevice();
  Net net(File(kSmallNet), options), same(File(kSmallNet), {});
  FillAllInputs(net);
  FillAllInputs(same);
  EXPECT_EQ(net.Forward(), same.Forward());
  EXPECT_THROW(GpuDevice(9999), EnvironmentError);
}

TEST(Net, WrongCallsAreUserErrors) {
  const auto says = [](const auto& action, const std::string& text) {
    try {
      action();
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  Net net(File(kSmallNet), {});
  FillAllInputs(net);
  says([&] { net.Backward(); }, "call Forward before Backward");
  says([&] { net.RepeatBackward(); }, "call Forward before Backward");
  says([&] { net.set_data_positions({1, 2, 3}); }, "data layers, but 3 positions are given");
  Net used(File(kSmallNet), {.phase = TEST, .backward = false});
  FillAllInputs(used);
  used.Forward();
  says([&] { used.Backward(); }, "the net has no backward pass");
  std::vector<float> gradient(used.parameters()[0].shape.count());
  says([&] { used.parameters()[0].CopyGradTo(gradient.data()); }, "has no gradient of its own");
  Net passing(File(kSmallNet), {.keep_gradients = false});
  FillAllInputs(passing);
  passing.Forward();
  says([&] { passing.Backward(); }, "nobody takes the gradients");
  says([&] { passing.ForwardBackward(); }, "nobody takes the gradients");
  says([] { Net(File(kSmallNet), {.accumulate = true, .keep_gradients = false}); }, "adds to gradients");
  says([] { Net(File(kSmallNet), {.share_memory = true}); }, "name it with share_with");
}

TEST(Net, NamesTheFirstNonFiniteValue) {
  Net net(File(kSmallNet), {});
  FillAllInputs(net);
  net.Forward();
  EXPECT_EQ(net.FindNonFinite(), "");
  net.blob("data").f32()[5] = std::numeric_limits<float>::infinity();
  net.Forward();
  EXPECT_EQ(net.FindNonFinite(), "layer \"in\" (Input), top \"data\"");
  FillAllInputs(net);
  Fill(net.parameters()[2].data.count(), 3e38f, net.parameters()[2].data.f32());
  net.Forward();
  EXPECT_EQ(net.FindNonFinite(), "layer \"ip\" (InnerProduct), top \"ip\"");
  net.parameters()[2].data.f32()[1] = std::nanf("");
  EXPECT_EQ(net.FindNonFinite(), "parameter ip[0]");
}

// What is NaN in L1Loss's target does not count.
TEST(Net, BlamesDataOnlyWhereNoLayerMakesNonFiniteValues) {
  Net net(File(R"(
    layer { name: "in" type: "Input" top: "data" top: "flow" input_param { shape { dim: 2 dim: 3 } } }
    layer { name: "flat" type: "Flatten" bottom: "flow" top: "target" }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
            inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
    layer { name: "half" type: "Power" bottom: "target" top: "half" power_param { scale: 0.5 } }
    layer { name: "loss" type: "L1Loss" bottom: "ip" bottom: "half" top: "loss" l1_loss_param { } }
  )"),
          {});
  for (const char* name : {"data", "flow"}) Fill(net.blob(name).count(), 0.5f, net.blob(name).f32());
  net.blob("flow").f32()[1] = std::nanf("");
  net.Forward();
  EXPECT_EQ(net.FindNonFinite(), "layer \"in\" (Input), top \"flow\"");
  Fill(net.parameters()[0].data.count(), 3e38f, net.parameters()[0].data.f32());
  Fill(net.blob("data").count(), 3e38f, net.blob("data").f32());
  net.Forward();
  EXPECT_EQ(net.FindNonFinite(), "layer \"ip\" (InnerProduct), top \"ip\"");
}

TEST(Net, LabelsOutsideTheClassesAreTheUsersMistake) {
  Net net(File(kSmallNet), {});
  FillAllInputs(net);
  net.blob("label").f32()[2] = 5;
  try {
    net.Forward();
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("item 2"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("\"loss\""), std::string::npos) << error.what();
  }
}

// Keeps the numbers of the steps, and whether each began where the one before it ended.
struct StepList : StepRecorder {
  std::vector<int> steps;
  int first_backward = 0;
  bool gapless = true;
  Clock::time_point last;

  void OnStep(int step, Clock::time_point begin, Clock::time_point end) override {
    if (step != 0 && step != first_backward) gapless &= begin == last;
    gapless &= begin <= end;
    steps.push_back(step);
    last = end;
  }
};

TEST(Net, RecordsEveryStepWhileAsked) {
  Net net(File(kSmallNet), {});
  FillAllInputs(net);
  StepList list;
  list.first_backward = static_cast<int>(net.compiled().program.forward.size());
  net.set_recorder(&list);
  std::vector<int> expected;
  for (int pass = 0; pass < 2; ++pass) {
    net.Forward();
    net.Backward();
    for (int i = 0; i < net.compiled().program.steps(); ++i) expected.push_back(i);
  }
  EXPECT_EQ(list.steps, expected);
  EXPECT_TRUE(list.gapless);
  net.set_recorder(nullptr);
  net.Forward();
  EXPECT_EQ(list.steps, expected);
}

}  // namespace
}  // namespace crema
