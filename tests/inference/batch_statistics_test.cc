// Statistics of what layers get that normalise by the batch, and weights that hold them.
#include "inference/batch_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "crema/error.h"
#include "crema/files.h"

namespace crema {
namespace {

constexpr int kItems = 3, kChannels = 2, kPixels = 4;

std::string NetOf(const std::string& layers) {
  return "layer { name: \"in\" type: \"Input\" top: \"a\"\n"
         "  input_param { shape { dim: [3, 2, 2, 2] } } }\n"
         "layer { name: \"twice\" type: \"Power\" bottom: \"a\" top: \"a\" power_param { scale: 2 } }\n" +
         layers;
}

// In place, as SegNet's are.
const std::string kSegNet =
    "layer { name: \"n\" type: \"BN\" bottom: \"a\" top: \"a\" bn_param { eps: 0.5\n"
    "  scale_filler { value: 3 } shift_filler { value: 0.25 } } }\n"
    "layer { name: \"r\" type: \"ReLU\" bottom: \"a\" top: \"a\" }\n";

class Gathered {
 public:
  explicit Gathered(const std::string& layers)
      : net_(ParseNet(NetOf(layers), "net.prototxt"), {.phase = TRAIN, .keep_all = true, .backward = false}) {
    BatchStatistics statistics(net_);
    for (int pass = 0; pass < 2; ++pass) {
      float* values = net_.inputs()[0].value.f32();
      for (int i = 0; i < kItems * kChannels * kPixels; ++i) {
        values[i] = std::sin(1.7f * static_cast<float>(i)) + static_cast<float>(pass * (i / kPixels % kChannels));
      }
      Count(values);
      net_.Forward();
      statistics.Add();
    }
    weights = statistics.Weights();
  }

  const LayerParameter& Layer(const std::string& name) const {
    for (const LayerParameter& layer : weights.layer()) {
      if (layer.name() == name) return layer;
    }
    throw std::logic_error("no layer " + name);
  }

  // Of what the layer gets, twice the input.
  double mean[kChannels] = {}, variance[kChannels] = {};
  NetParameter weights;

 private:
  void Count(const float* values) {
    for (int c = 0; c < kChannels; ++c) {
      double sum = 0, squares = 0;
      for (int n = 0; n < kItems; ++n) {
        for (int i = 0; i < kPixels; ++i) sum += 2 * values[(n * kChannels + c) * kPixels + i];
      }
      constexpr int kCount = kItems * kPixels;
      for (int n = 0; n < kItems; ++n) {
        for (int i = 0; i < kPixels; ++i) {
          squares += std::pow(2 * values[(n * kChannels + c) * kPixels + i] - sum / kCount, 2);
        }
      }
      mean[c] += sum / kCount / 2;
      variance[c] += squares / (kCount - 1) / 2;
    }
  }

  Net net_;
};

TEST(BatchStatistics, OfSegNetLieInSlopeAndBias) {
  const Gathered gathered(kSegNet);
  const LayerParameter& layer = gathered.Layer("n");
  EXPECT_EQ(layer.bn_param().bn_mode(), BNParameter::INFERENCE);
  ASSERT_EQ(layer.blobs_size(), 2);
  for (int c = 0; c < kChannels; ++c) {
    const double slope = 3 / std::sqrt(gathered.variance[c] + 0.5);
    EXPECT_NEAR(layer.blobs(0).data(c), slope, 1e-5);
    EXPECT_NEAR(layer.blobs(1).data(c), 0.25 - gathered.mean[c] * slope, 1e-5);
  }
}

TEST(BatchStatistics, OfBatchNormReplaceTheRunningOnes) {
  const Gathered gathered("layer { name: \"n\" type: \"BatchNorm\" bottom: \"a\" top: \"b\" }\n");
  const LayerParameter& layer = gathered.Layer("n");
  ASSERT_EQ(layer.blobs_size(), 3);
  EXPECT_EQ(layer.blobs(2).data(0), 1);
  for (int c = 0; c < kChannels; ++c) {
    EXPECT_NEAR(layer.blobs(0).data(c), gathered.mean[c], 1e-5);
    EXPECT_NEAR(layer.blobs(1).data(c), gathered.variance[c], 1e-5);
  }
}

TEST(BatchStatistics, OfPspNetStandBehindSlopeAndBias) {
  const Gathered gathered(
      "layer { name: \"n\" type: \"BN\" bottom: \"a\" top: \"b\" bn_param { slope_filler { value: 2 } } }\n");
  const LayerParameter& layer = gathered.Layer("n");
  ASSERT_EQ(layer.blobs_size(), 4);
  for (int c = 0; c < kChannels; ++c) {
    EXPECT_EQ(layer.blobs(0).data(c), 2);
    EXPECT_NEAR(layer.blobs(2).data(c), gathered.mean[c], 1e-5);
    EXPECT_NEAR(layer.blobs(3).data(c), gathered.variance[c], 1e-5);
  }
}

void ExpectRefused(const std::string& layers, const std::string& text) {
  const Net net(ParseNet(NetOf(layers), "net.prototxt"), {.phase = TRAIN, .keep_all = true, .backward = false});
  try {
    const BatchStatistics statistics(net);
    FAIL() << text;
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(BatchStatistics, AreRefusedWhereTheyHaveNoPlace) {
  ExpectRefused("layer { name: \"r\" type: \"ReLU\" bottom: \"a\" top: \"b\" }\n",
                "no layer of the net normalises by the batch in phase TRAIN");
  ExpectRefused("layer { name: \"n\" type: \"BN\" bottom: \"a\" top: \"b\" bn_param { bn_mode: INFERENCE } }\n",
                "no layer of the net normalises by the batch");
  const std::string shared = " param { name: \"s\" } param { name: \"t\" } bn_param { scale_filler { value: 1 } } }\n";
  ExpectRefused("layer { name: \"n\" type: \"BN\" bottom: \"a\" top: \"b\"" + shared +
                    "layer { name: \"m\" type: \"BN\" bottom: \"b\" top: \"c\"" + shared,
                "net.prototxt:4:1: error: layer \"n\" (BN) shares its parameters with another one");
}

}  // namespace
}  // namespace crema
