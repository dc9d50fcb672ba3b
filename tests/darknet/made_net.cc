#include "darknet/made_net.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "base/random.h"
#include "errors.h"
#include "layer_weights.h"
#include "near.h"

namespace crema::darknet {

std::vector<float> RandomNumbers(uint64_t seed, int64_t count, float low, float high) {
  const RandomStream random(seed, 0);
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(low + (high - low) * random.Uniform(static_cast<uint64_t>(i)));
  return numbers;
}

Image RandomImage(uint64_t seed, int64_t channels, int64_t height, int64_t width) {
  Image image(channels, height, width);
  image.values = RandomNumbers(seed, image.count());
  return image;
}

std::string NetSection(int64_t channels, int64_t height, int64_t width) {
  return "[net]\nheight=" + std::to_string(height) + "\nwidth=" + std::to_string(width) +
         "\nchannels=" + std::to_string(channels) + "\n";
}

std::string CopySection(int64_t channels) {
  return "[convolutional]\nfilters=" + std::to_string(channels) + "\nactivation=linear\n";
}

std::vector<float> CopyWeights(int64_t channels) {
  std::vector<float> numbers(static_cast<size_t>(channels), 0);
  for (int64_t f = 0; f < channels; ++f) {
    for (int64_t c = 0; c < channels; ++c) numbers.push_back(f == c ? 1 : 0);
  }
  return numbers;
}

std::string WeightsBytes(const std::vector<float>& numbers, int32_t major, int32_t minor) {
  const bool is_long = int64_t{major} * 10 + minor >= 2 && major < 1000 && minor < 1000;
  const int32_t version[] = {major, minor, 0};
  std::string bytes(reinterpret_cast<const char*>(version), sizeof version);
  bytes += std::string(is_long ? 8 : 4, '\1');
  return bytes + std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
}

MadeNet::MadeNet(const std::string& cfg, const std::string& weights) {
  std::ofstream(cfg_, std::ios::binary) << cfg;
  std::ofstream(weights_, std::ios::binary) << weights;
}

std::string MadeNet::Error() const {
  return ThrownBy<UserError>([&] { Import(); });
}

std::vector<float> Outputs(const ImportedNet& imported, const std::vector<float>& images, const std::string& name) {
  Net net(MakeNetFile(imported.net, {}), {.phase = TEST, .backward = false});
  const WeightsReport report = net.LoadWeights(LayerWeightsOf(imported.weights));
  EXPECT_TRUE(report.ignored.empty() && report.fresh.empty());
  const Tensor input = net.inputs().at(0).value;
  EXPECT_EQ(input.count(), static_cast<int64_t>(images.size()));
  std::copy_n(images.begin(), std::min<size_t>(images.size(), static_cast<size_t>(input.count())), input.f32());
  net.Forward();
  EXPECT_TRUE(!name.empty() || imported.outputs.size() == 1);
  const Tensor output = net.blob(name.empty() ? imported.outputs.at(0).name : name);
  return {output.f32(), output.f32() + output.count()};
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& wanted, double tolerance) {
  ExpectClose(wanted, got, tolerance, "output", 1e-3);
}

}  // namespace crema::darknet
