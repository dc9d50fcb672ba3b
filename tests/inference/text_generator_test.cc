// What comes next in a text, as nets tell it, and what is drawn of it.
#include "inference/text_generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/files.h"

namespace crema {
namespace {

using Units = std::vector<int64_t>;
using Floats = std::vector<float>;

TEST(DrawUnit, GivesEachItsShare) {
  const Floats probabilities = {0.5f, 0, 0.25f, 0.25f};
  const auto drawn = [&](const UnitDraw& draw) {
    Units all;
    for (const double share : {0.0, 0.49, 0.51, 0.74, 0.76, 0.999999}) {
      all.push_back(DrawUnit(draw, probabilities, share));
    }
    return all;
  };
  EXPECT_EQ(drawn({}), (Units{0, 0, 2, 2, 3, 3}));
  EXPECT_EQ(drawn({.temperature = 0}), Units(6, 0));
  // Shares of 4, 1 and 1.
  EXPECT_EQ(drawn({.temperature = 0.5}), (Units{0, 0, 0, 2, 2, 3}));
  EXPECT_EQ(drawn({.top = 1}), Units(6, 0));
  // Of equal ones the first: shares of 2 and 1.
  EXPECT_EQ(drawn({.top = 2}), (Units{0, 0, 0, 2, 2, 2}));
  EXPECT_EQ(drawn({.top = 9}), drawn({}));
  EXPECT_EQ(DrawUnit({.temperature = 1e-3}, Floats{1e-30f, 2e-30f}, 0.999), 1);
}

TEST(DrawUnit, RefusesWhatIsNoProbability) {
  for (const Floats& none : {Floats{0, 0}, Floats{0.5f, NAN}, Floats{0.5f, -1}, Floats{1, INFINITY}}) {
    EXPECT_THROW(DrawUnit({}, none, 0.5), UserError);
  }
}

// Says after each unit how many were read, up to 3: the LSTM's cell adds up, and the text's first unit clears it.
constexpr char kCounting[] = R"(
layer { name: "in" type: "Input" top: "data" top: "cont" input_param { shape { dim: 7 dim: 3 } } }
layer { name: "embed" type: "Embed" bottom: "data" top: "embed"
        embed_param { input_dim: 4 num_output: 1 bias_term: false weight_filler { type: "constant" value: 1 } } }
layer { name: "lstm" type: "LSTM" bottom: "embed" bottom: "cont" top: "lstm"
        recurrent_param { num_output: 1 weight_filler { type: "constant" value: 0.5 } } }
layer { name: "ip" type: "InnerProduct" bottom: "lstm" top: "ip"
        inner_product_param { num_output: 4 axis: 2 weight_filler { type: "gaussian" std: 3 } } }
layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" softmax_param { axis: 2 } })";

Floats CopyOf(std::span<const float> values) { return {values.begin(), values.end()}; }

TEST(TextGenerator, GoesOnWithTheStateOfRecurrentLayers) {
  const NetFile file = ParseNet(kCounting, "net.prototxt");
  const Units text = {2, 0, 3, 1, 1};
  TextGenerator generator(file, {}, 4);
  // The same in one pass over the whole text.
  NetFile whole = file;
  for (BlobShape& shape : *whole.net.mutable_layer(0)->mutable_input_param()->mutable_shape()) {
    shape.set_dim(0, 5);
    shape.set_dim(1, 1);
  }
  Net net(whole, {.phase = TEST, .backward = false});
  for (size_t i = 0; i < text.size(); ++i) {
    net.inputs()[0].value.f32()[i] = static_cast<float>(text[i]);
    net.inputs()[1].value.f32()[i] = i > 0 ? 1.0f : 0.0f;
  }
  net.Forward();
  std::vector<Floats> told;
  for (size_t i = 0; i < text.size(); ++i) {
    generator.Read(text[i]);
    told.push_back(CopyOf(generator.Next()));
    for (size_t c = 0; c < 4; ++c) EXPECT_NEAR(told[i][c], net.blob("prob").f32()[4 * i + c], 1e-5) << i;
  }
  EXPECT_NE(told[3], told[4]);  // after the same unit
}

// A window of three places, each of which tells of its own unit and its place.
constexpr char kWindow[] = R"(
layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 8 dim: 3 } } }
layer { name: "embed" type: "Embed" bottom: "data" top: "embed"
        embed_param { input_dim: 4 num_output: 4 bias_term: false weight_filler { type: "gaussian" std: 1 } } }
layer { name: "place" type: "Bias" bottom: "embed" top: "placed"
        bias_param { axis: 1 num_axes: 2 filler { type: "gaussian" std: 1 } } }
layer { name: "prob" type: "Softmax" bottom: "placed" top: "prob" softmax_param { axis: -1 } })";

TEST(TextGenerator, SeesTheLatestUnitsOfAWindow) {
  const NetFile file = ParseNet(kWindow, "net.prototxt");
  const Units text = {2, 0, 3, 1, 1};
  TextGenerator generator(file, {}, 4);
  Net net(file, {.phase = TEST, .backward = false});
  const Tensor input = net.inputs()[0].value;
  std::fill(input.f32(), input.f32() + input.count(), 0.0f);
  for (size_t i = 0; i < text.size(); ++i) {
    generator.Read(text[i]);
    const size_t place = std::min<size_t>(i, 2);
    for (size_t k = 0; k <= place; ++k) input.f32()[k] = static_cast<float>(text[i - place + k]);
    net.Forward();
    const float* expected = net.blob("prob").f32() + 4 * place;
    for (int again = 0; again < 2; ++again) {
      EXPECT_EQ(CopyOf(generator.Next()), Floats(expected, expected + 4)) << i;
    }
  }
}

std::string Refused(std::string net, const std::string& before, const std::string& now, int64_t units = 4) {
  if (!before.empty()) net.replace(net.find(before), before.size(), now);
  try {
    const TextGenerator generator(ParseNet(net, "net.prototxt"), {}, units);
    return "accepted";
  } catch (const UserError& error) {
    return error.what();
  }
}

TEST(TextGenerator, SaysWhatANetMustBe) {
  EXPECT_EQ(Refused(kCounting, "", ""), "accepted");
  const auto expect = [](const std::string& said, const std::string& part) {
    EXPECT_NE(said.find(part), std::string::npos) << said;
  };
  expect(Refused(kCounting, "", "", 5),
         "the outputs of the net are \"prob 1x1x4\"; one that writes text with this vocabulary, of 5 units, has one "
         "output "
         "with 5 probabilities for each of the 1 places, along the last axis");
  expect(
      Refused(kWindow, "top: \"data\"", "top: \"data\" top: \"more\""),
      "the inputs of the net are \"data 8x3\", \"more 8x3\"; one that writes text has one, a top of an Input layer for "
      "the numbers of units");
  expect(
      Refused(kCounting, "top: \"cont\" input_param",
              "input_param { shape { dim: 7 dim: 3 } } }\n"
              "layer { name: \"c\" type: \"DummyData\" top: \"cont\" dummy_data_param { shape { dim: 1 dim: 1 } } }\n"
              "layer { name: \"more\" type: \"Input\" top: \"more\" input_param"),
      "their second bottom, \"cont\", which tells whether the text goes on: both are tops of Input layers");
  expect(
      Refused(kWindow,
              "layer { name: \"prob\" type: \"Softmax\" bottom: \"placed\" top: \"prob\" softmax_param { axis: -1 } }",
              ""),
      "\"placed\" is not made by a Softmax layer, and holds no probabilities; put one behind it: layer {");
}

}  // namespace
}  // namespace crema
