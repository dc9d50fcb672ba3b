// Weights that nets take from files, and what they write into them.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "crema/error.h"
#include "graph/program.h"
#include "ops/arrays/vector_math.h"
#include "runtime/small_net.h"

namespace crema {
namespace {

TEST(Net, FilesHaveNoTopThatTheirAuthorDidNotWrite) {
  Net net(File(R"(
      layer { name: "data" type: "Input" top: "data" top: "label" input_param {
        shape { dim: 2 dim: 3 } shape { dim: 2 dim: 1 } } }
      layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" inner_product_param { num_output: 1 } }
      layer { name: "loss" type: "EuclideanLoss" bottom: "ip" bottom: "label" })"),
          {});
  const NetParameter proto = net.ToProto();
  EXPECT_EQ(proto.layer(1).top_size(), 1);
  EXPECT_EQ(proto.layer(2).top_size(), 0) << proto.layer(2).top(0);
}

TEST(Net, WeightsComeBackThroughTheFileFormat) {
  Net from(File(kSmallNet), {});
  NetOptions options;
  options.context.seed = 99;
  Net to(File(kSmallNet), options);
  std::vector<LayerWeights> weights;
  const NetParameter proto = from.ToProto();
  for (const LayerParameter& layer : proto.layer()) {
    if (layer.blobs_size() == 0) continue;
    LayerWeights w{layer.name(), layer.type(), {}};
    for (const BlobProto& blob : layer.blobs()) {
      std::vector<int64_t> dims(blob.shape().dim().begin(), blob.shape().dim().end());
      w.blobs.push_back({Shape(dims), {blob.data().begin(), blob.data().end()}});
    }
    weights.push_back(w);
  }
  weights.push_back({"other", "InnerProduct", {}});
  const WeightsReport report = to.LoadWeights(weights);
  EXPECT_EQ(report.copied, (std::vector<std::string>{"conv", "ip"}));
  EXPECT_EQ(report.ignored, (std::vector<std::string>{"other"}));
  EXPECT_TRUE(report.fresh.empty());
  FillAllInputs(from);
  FillAllInputs(to);
  to.set_pass(0);
  NetOptions test;
  EXPECT_EQ(to.parameters()[0].data.f32()[3], from.parameters()[0].data.f32()[3]);

  weights[0].blobs[1].data[2] = NAN;
  EXPECT_EQ(to.FindNanParameter(), "");
  try {
    to.LoadWeights(weights);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("element 2 of blob 1 is no number (NaN) in the weights file"),
              std::string::npos)
        << error.what();
  }
  weights[0].blobs[1].data[2] = -INFINITY;  // as masks are
  to.LoadWeights(weights);

  weights[0].blobs[0].shape = Shape{2, 6, 3, 3};
  try {
    to.LoadWeights(weights);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("blob 0 is 6x2x3x3 here but 2x6x3x3 in the weights file"),
              std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("net.prototxt:5"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("let the layer take them: strict_dim: false"), std::string::npos)
        << error.what();
  }

  weights[0].blobs[0].shape = Shape{2, 6, 3, 4};
  try {
    to.LoadWeights(weights);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).find("strict_dim"), std::string::npos) << error.what();
  }
}

TEST(Net, TakesWeightsOfAnotherShapeWhereALayerIsNotStrict) {
  Net net(File(R"(
layer { name: "in" type: "Input" top: "a" input_param { shape { dim: [1, 3, 2, 2] } } }
layer { name: "fc" type: "Convolution" bottom: "a" top: "b" strict_dim: false
        convolution_param { num_output: 2 kernel_size: 2 } })"),
          {});
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 1.0f);
  net.LoadWeights({{"fc", "InnerProduct", {{Shape{2, 12}, values}, {Shape{2}, {5, 6}}}}});
  EXPECT_EQ(net.parameters()[0].data.f32()[23], 24);
  EXPECT_EQ(net.parameters()[1].data.f32()[1], 6);
  EXPECT_THROW(net.LoadWeights({{"fc", "InnerProduct", {{Shape{2, 11}, values}, {Shape{2}, {5, 6}}}}}), UserError);
}

TEST(Net, WeightsThatDoNotFitChangeNothing) {
  const NetFile file = File(R"(
layer { name: "in" type: "Input" top: "a" input_param { shape { dim: 1 dim: 2 } } }
layer { name: "b" type: "InnerProduct" bottom: "a" top: "b" inner_product_param { num_output: 2 bias_term: false } }
layer { name: "c" type: "InnerProduct" bottom: "b" top: "c" inner_product_param { num_output: 1 bias_term: false } }
)");
  Net net(file, {});
  net.LoadWeights({{"b", "", {{Shape{2, 2}, {1, 2, 3, 4}}}}});
  const auto b = [&] { return std::as_const(net).parameters()[0].data.f32()[0]; };
  for (const LayerWeights& wrong :
       {LayerWeights{"c", "", {{Shape{1, 3}, {1, 2, 3}}}}, LayerWeights{"c", "", {{Shape{1, 2}, {1}}}},
        LayerWeights{"c", "", {{Shape{1, 2}, {1, 2, 3}}}}}) {
    EXPECT_THROW(net.LoadWeights({{"b", "", {{Shape{2, 2}, {5, 6, 7, 8}}}}, wrong}), UserError);
    EXPECT_EQ(b(), 1);
  }
  net.LoadWeights({{"b", "", {{Shape{2, 2}, {5, 6, 7, 8}}}}, {"c", "", {{Shape{1, 2}, {1, 2}}}}});
  EXPECT_EQ(b(), 5);
}

TEST(Net, LayersOfOneNameKeepTheirOwnParameters) {
  const std::string product =
      R"( type: "InnerProduct" inner_product_param { num_output: 3 weight_filler { type: "xavier" } } })";
  const NetFile file = File(R"(
layer { name: "in" type: "Input" top: "a" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "h" bottom: "a" top: "b")" +
                            product + R"(
layer { name: "h" type: "ReLU" bottom: "b" top: "b" }
layer { name: "h" bottom: "b" top: "c")" +
                            product);
  Net from(file, {});
  for (size_t i = 0; i < 4; ++i) Fill(from.parameters()[i].data.count(), i + 1.0f, from.parameters()[i].data.f32());
  std::vector<LayerWeights> weights = {{"h", "InnerProduct", {}}, {"h", "InnerProduct", {}}};
  for (size_t i = 0; i < 4; ++i) {
    const Parameter& p = from.parameters()[i];
    weights[i / 2].blobs.push_back({p.shape, {p.data.f32(), p.data.f32() + p.data.count()}});
  }
  Net to(file, {});
  EXPECT_NE(to.parameters()[0].data.f32()[0], to.parameters()[2].data.f32()[0]) << "else they would stay alike";
  const WeightsReport report = to.LoadWeights(weights);
  EXPECT_EQ(report.copied, (std::vector<std::string>{"h", "h"}));
  EXPECT_TRUE(report.fresh.empty());
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(to.parameters()[i].data.f32()[0], i + 1.0f);

  NetOptions options;
  options.share_with = &from;
  Net borrower(file, options);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(borrower.parameters()[i].data.f32(), from.parameters()[i].data.f32());
  options = {};
  options.train_with = &from;
  Net companion(file, options);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(companion.parameters()[i].data.f32(), from.parameters()[i].data.f32());

  // Of a file with more of them than the net has, those are left out.
  weights.push_back(weights[0]);
  EXPECT_EQ(to.LoadWeights(weights).ignored, (std::vector<std::string>{"h"}));
  EXPECT_EQ(to.parameters()[0].data.f32()[0], 1);
}

}  // namespace
}  // namespace crema
