// Weights that are kept in a form of their kernel's own are the same weights to everyone outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "crema/files.h"
#include "crema/net.h"
#include "device/device.h"
#include "graph/program.h"
#include "report/dump.h"

namespace crema {
namespace {

std::string Convolution(const std::string& name, const std::string& bottom, const std::string& more,
                        const std::string& outside = "") {
  return "layer { type: \"Convolution\" name: \"" + name + "\" bottom: \"" + bottom + "\" top: \"" + name + "\" " +
         outside + " convolution_param { " + more + " weight_filler { type: \"msra\" } } }\n";
}

std::string Normalised(const std::string& name) {
  return "layer { type: \"BatchNorm\" name: \"" + name + "_bn\" bottom: \"" + name + "\" top: \"" + name +
         "_n\" }\nlayer { type: \"Scale\" name: \"" + name + "_scale\" bottom: \"" + name + "_n\" top: \"" + name +
         "_s\" scale_param { bias_term: true } }\n";
}

// Channels that fill no block, groups, one filter a channel, 1x1, several axes of kernel, with bias and without,
// frozen, and two that share.
std::string NetText() {
  const std::string shared = "param { name: \"w\" }";
  return "layer { type: \"Input\" name: \"in\" top: \"data\" top: \"label\" "
         "input_param { shape { dim: 4 dim: 3 dim: 12 dim: 10 } shape { dim: 4 } } }\n" +
         Convolution("c1", "data", "num_output: 20 kernel_size: 3 pad: 1") +
         Convolution("one", "c1", "num_output: 32 kernel_size: 1 bias_term: false") + Normalised("one") +
         Convolution("depth", "one_s", "num_output: 32 group: 32 kernel_size: 3 pad: 1 bias_term: false") +
         Normalised("depth") + Convolution("wide", "depth_s", "num_output: 24 kernel_h: 1 kernel_w: 3 group: 2") +
         Convolution("frozen", "wide", "num_output: 32 kernel_size: 3", "param { lr_mult: 0 } param { lr_mult: 0 }") +
         Convolution("a", "frozen", "num_output: 32 kernel_size: 3 pad: 1 bias_term: false", shared) +
         Convolution("b", "a", "num_output: 32 kernel_size: 3 pad: 1 bias_term: false", shared) +
         Convolution("last", "b", "num_output: 33 kernel_size: 3 stride: 2") +
         "layer { type: \"InnerProduct\" name: \"ip\" bottom: \"last\" top: \"ip\" inner_product_param { num_output: 5 "
         "weight_filler { type: \"xavier\" } } }\n"
         "layer { type: \"SoftmaxWithLoss\" name: \"loss\" bottom: \"ip\" bottom: \"label\" top: \"loss\" }\n";
}

NetFile File() { return ParseNet(NetText(), "net.prototxt"); }

NetOptions Options(std::vector<std::string> skip_passes = {}) {
  NetOptions options;
  options.context.seed = 11;
  options.skip_passes = std::move(skip_passes);
  return options;
}

NetOptions TestOptions(const Net& train, std::vector<std::string> skip_passes = {}) {
  NetOptions options = Options(std::move(skip_passes));
  options.phase = TEST;
  options.backward = false;
  options.share_with = &train;
  return options;
}

void FillInputs(Net& net, float phase = 0) {
  const Tensor data = net.blob("data"), label = net.blob("label");
  for (int64_t i = 0; i < data.count(); ++i) data.f32()[i] = std::sin(phase + 0.37f * static_cast<float>(i));
  for (int64_t i = 0; i < label.count(); ++i) label.f32()[i] = static_cast<float>(i % 5);
}

std::vector<float> Data(const Parameter& p) {
  std::vector<float> values(p.shape.count());
  p.CopyDataTo(values.data());
  return values;
}

std::vector<std::string> LaidOut(const Net& net) {
  std::vector<std::string> names;
  for (const Parameter& p : net.parameters()) {
    if (p.layout) names.push_back(p.name());
  }
  return names;
}

// As after some training.
void SetStatistics(Net& net) {
  for (Parameter& p : net.parameters()) {
    if (!p.layer.ends_with("_bn")) continue;
    for (int64_t i = 0; i < p.data.count(); ++i) p.data.f32()[i] = p.index == 0 ? 0.1f : p.index == 1 ? 0.8f : 2;
  }
}

std::vector<float> Outputs(Net& net) {
  FillInputs(net);
  net.Forward();
  const Tensor scores = net.blob("ip");
  return {scores.f32(), scores.f32() + scores.count()};
}

TEST(LaidOutWeights, AreReadAnewByAllNetsThatShareThem) {
  NetOptions options = Options();
  options.phase = TEST;
  options.backward = false;
  options.outputs = {"ip"};
  Net owner(File(), options);
  const auto sharing = [&] {
    NetOptions other = options;
    other.share_with = &owner;
    return other;
  };
  Net borrower(File(), sharing()), another(File(), sharing());
  const std::vector<float> before = Outputs(owner);
  EXPECT_EQ(Outputs(borrower), before);
  EXPECT_EQ(Outputs(another), before);
  options.context.seed = 12;
  Net source(File(), options);
  const std::vector<float> after = Outputs(source);
  ASSERT_NE(after, before);
  for (int way = 0; way < 2; ++way) {
    borrower.LoadWeights(ParseWeights(source.ToProto().SerializeAsString(), "source"));
    EXPECT_EQ(Outputs(borrower), after) << way;
    EXPECT_EQ(Outputs(owner), after) << way;
    EXPECT_EQ(Outputs(another), after) << way;
    for (Parameter& p : owner.parameters()) p.SetData(std::vector<float>(static_cast<size_t>(p.shape.count())).data());
    EXPECT_NE(Outputs(borrower), after) << way;
    EXPECT_NE(Outputs(another), after) << way;
  }
}

TEST(LaidOutWeights, AreThoseThatOneLayerTrains) {
  const Net net(File(), Options());
  const std::vector<std::string> names = LaidOut(net);
  for (const char* name : {"c1[0]", "one[0]", "last[0]"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  for (const char* name : {"c1[1]", "frozen[0]", "a[0]", "ip[0]", "one_bn[0]"}) {
    EXPECT_EQ(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
  for (const Parameter& p : std::as_const(net).parameters()) {
    EXPECT_EQ(p.data.count(), p.layout ? p.layout->count() : p.shape.count()) << p.name();
    if (p.grad.defined()) {
      EXPECT_EQ(p.grad.count(), p.data.count()) << p.name();
    }
  }
  NetOptions all = Options();
  all.keep_all = true;
  EXPECT_TRUE(LaidOut(Net(File(), all)).empty());
  EXPECT_TRUE(LaidOut(Net(File(), Options({"lay_out_weights"}))).empty());
  NetOptions test = Options();
  test.phase = TEST;
  test.backward = false;
  EXPECT_TRUE(LaidOut(Net(File(), test)).empty());
}

TEST(LaidOutWeights, StartAsPlainOnes) {
  const Net laid_out(File(), Options()), plain(File(), Options({"lay_out_weights"}));
  EXPECT_TRUE(laid_out.ToProto().SerializeAsString() == plain.ToProto().SerializeAsString());
}

TEST(LaidOutWeights, AreReadAndWrittenBitForBit) {
  const Net from(File(), Options({"lay_out_weights"}));
  NetOptions other = Options();
  other.context.seed = 12;
  Net to(File(), other);
  std::vector<LayerWeights> weights;
  const NetParameter proto = from.ToProto();
  for (const LayerParameter& layer : proto.layer()) {
    LayerWeights& one = weights.emplace_back(LayerWeights{layer.name(), layer.type(), {}});
    for (const BlobProto& blob : layer.blobs()) {
      one.blobs.push_back(
          {Shape({blob.shape().dim().begin(), blob.shape().dim().end()}), {blob.data().begin(), blob.data().end()}});
    }
    if (one.blobs.empty()) weights.pop_back();
  }
  EXPECT_FALSE(to.ToProto().SerializeAsString() == from.ToProto().SerializeAsString());
  to.LoadWeights(weights);
  EXPECT_TRUE(to.ToProto().SerializeAsString() == from.ToProto().SerializeAsString());
}

TEST(LaidOutWeights, GradientsAreWrittenPlain) {
  Net laid_out(File(), Options()), plain(File(), Options({"lay_out_weights"}));
  for (Net* net : {&laid_out, &plain}) {
    FillInputs(*net);
    net->Forward();
    net->Backward();
  }
  const NetParameter a = laid_out.ToProto(true), b = plain.ToProto(true);
  int compared = 0;
  for (int l = 0; l < a.layer_size(); ++l) {
    for (int i = 0; i < a.layer(l).blobs_size(); ++i) {
      const auto &x = a.layer(l).blobs(i).diff(), &y = b.layer(l).blobs(i).diff();
      ASSERT_EQ(x.size(), y.size());
      float largest = 1e-3f;
      for (const float value : y) largest = std::max(largest, std::abs(value));
      for (int k = 0; k < x.size(); ++k) ASSERT_NEAR(x[k], y[k], 1e-4f * largest) << a.layer(l).name() << " " << k;
      compared += x.size() > 0;
    }
  }
  EXPECT_GT(compared, 10);
}

// iter_size: parts of a gradient are added up as they are stored.
TEST(LaidOutWeights, GradientsAddUp) {
  NetOptions accumulating = Options(), plain = Options({"lay_out_weights"});
  accumulating.accumulate = plain.accumulate = true;
  Net a(File(), accumulating), b(File(), plain);
  for (Net* net : {&a, &b}) {
    net->ClearGradients();
    for (int part = 0; part < 3; ++part) {
      FillInputs(*net, static_cast<float>(part));
      net->Forward();
      net->Backward();
    }
  }
  const std::span<const Parameter> ours = std::as_const(a).parameters(), theirs = std::as_const(b).parameters();
  for (size_t p = 0; p < ours.size(); ++p) {
    if (!ours[p].grad.defined()) continue;
    std::vector<float> x(ours[p].shape.count()), y(x.size());
    ours[p].CopyGradTo(x.data());
    theirs[p].CopyGradTo(y.data());
    float largest = 1e-3f;
    for (const float value : y) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], y[i], 1e-4f * largest) << ours[p].name() << " " << i;
  }
}

// Test nets read what the train net keeps, also where they fold normalisation into it.
TEST(LaidOutWeights, TestNetsReadThem) {
  Net laid_out(File(), Options()), plain(File(), Options({"lay_out_weights"}));
  SetStatistics(laid_out);
  SetStatistics(plain);
  for (const bool fused : {true, false}) {
    const std::vector<std::string> skip = fused ? std::vector<std::string>{} : std::vector<std::string>{"fuse_layers"};
    NetOptions lent = TestOptions(laid_out, skip);
    lent.share_memory = true;
    NetOptions watched = TestOptions(laid_out, skip);
    watched.keep_all = true;
    NetOptions unprepared = TestOptions(laid_out, skip);
    unprepared.backward = true;
    Net tested(File(), TestOptions(laid_out, skip)), borrowing(File(), lent), watching(File(), watched),
        converting(File(), unprepared), expected(File(), TestOptions(plain, skip));
    EXPECT_EQ(LaidOut(tested), LaidOut(laid_out));
    for (Net* net : {&tested, &borrowing, &watching, &converting, &expected}) FillInputs(*net);
    const float loss = expected.Forward();
    EXPECT_GT(loss, 0.1f);
    EXPECT_EQ(tested.Forward(), loss);
    EXPECT_EQ(borrowing.Forward(), loss);
    EXPECT_NEAR(watching.Forward(), loss, 1e-5f * loss);
    EXPECT_NEAR(converting.Forward(), loss, 1e-5f * loss);

    // And what it becomes.
    for (Net* net : {&laid_out, &plain}) {
      for (Parameter& p : net->parameters()) {
        std::vector<float> values = Data(p);
        if (p.index == 0 && p.shape.axes() == 4) {
          for (size_t i = 0; i < values.size(); ++i) values[i] *= 1 + 0.1f * std::sin(static_cast<float>(i));
        }
        p.SetData(values.data());
      }
    }
    const float later = expected.Forward();
    EXPECT_NE(later, loss);
    EXPECT_EQ(tested.Forward(), later);
    EXPECT_EQ(borrowing.Forward(), later);
    EXPECT_TRUE(tested.ToProto().SerializeAsString() == expected.ToProto().SerializeAsString());
  }
}

TEST(LaidOutWeights, AnotherTypeCannotBorrowThem) {
  const Net train(ParseNet("layer { type: \"Input\" name: \"in\" top: \"data\" "
                           "input_param { shape { dim: 2 dim: 3 dim: 8 dim: 8 } } }\n" +
                               Convolution("c", "data", "num_output: 32 kernel_size: 3 bias_term: false") +
                               "layer { type: \"InnerProduct\" name: \"ip\" bottom: \"c\" top: \"ip\" loss_weight: 1 "
                               "inner_product_param { num_output: 1 } }",
                           "train.prototxt"),
                  Options());
  ASSERT_EQ(LaidOut(train), std::vector<std::string>{"c[0]"});
  std::string text =
      "layer { type: \"Input\" name: \"in\" top: \"data\" "
      "input_param { shape { dim: 2 dim: 32 dim: 8 dim: 8 } } }\n" +
      Convolution("c", "data", "num_output: 3 kernel_size: 3 bias_term: false");
  text.replace(text.find("Convolution"), 11, "Deconvolution");
  try {
    const Net test(ParseNet(text, "test.prototxt"), TestOptions(train));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("layer \"c\" (Deconvolution) cannot use blob 0"), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("test.prototxt:2"), std::string::npos) << error.what();
  }
}

TEST(LaidOutWeights, DumpsShowTheirForm) {
  const Net net(File(), Options()), plain(File(), Options({"lay_out_weights"}));
  const Parameter& last = *std::find_if(net.parameters().begin(), net.parameters().end(),
                                        [](const Parameter& p) { return p.name() == "last[0]"; });
  const std::string text = DumpPlan(net.compiled(), false), json = DumpJson(net.compiled());
  const size_t at = text.find("\nlast[0] ");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.substr(at, text.find('\n', at + 1) - at).find(last.layout->name()), std::string::npos) << text;
  EXPECT_NE(json.find("[\"" + last.layout->name() + "\", \"plain\"]"), std::string::npos) << json;
  EXPECT_EQ(DumpPlan(plain.compiled(), false).find("kept as"), std::string::npos);
  EXPECT_EQ(DumpJson(plain.compiled()).find("param_layouts"), std::string::npos);
}

// What an update would add to padding that other tensors wrote over stays zero.
class PaddingReader : public GradientReader {
 public:
  explicit PaddingReader(const Net& net) : net_(net) {}
  void OnGradient(int parameter, const Tensor& gradient) override {
    const Parameter& p = net_.parameters()[parameter];
    if (!p.layout) return;
    std::vector<float> used(p.layout->count(), 0.0f);
    p.layout->FromPlain(std::vector<float>(p.shape.count(), 1.0f).data(), used.data());
    for (size_t i = 0; i < used.size(); ++i) {
      if (used[i] != 0) continue;
      ++padding;
      EXPECT_EQ(gradient.f32()[i], 0.0f) << p.name() << ", place " << i;
    }
  }
  int64_t padding = 0;

 private:
  const Net& net_;
};

TEST(LaidOutWeights, GradientsInTheMemoryOfThePassHaveZerosInTheirPadding) {
  NetOptions options = Options();
  options.keep_gradients = false;
  Net net(File(), options);
  PaddingReader reader(net);
  for (int pass = 0; pass < 3; ++pass) {
    FillInputs(net, static_cast<float>(pass));
    net.Forward();
    net.Backward(&reader);
  }
  if (reader.padding == 0) GTEST_SKIP() << "on this CPU no form that weights are kept in has padding";
}

}  // namespace
}  // namespace crema
