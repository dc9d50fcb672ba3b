// Small nets of Darknet, made by tests, and what they compute here.
#ifndef CREMA_TESTS_DARKNET_MADE_NET_H_
#define CREMA_TESTS_DARKNET_MADE_NET_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "crema/net.h"
#include "darknet/import.h"
#include "temporary_folder.h"

namespace crema::darknet {

// Of one image, channel by channel.
struct Image {
  int64_t channels = 0, height = 0, width = 0;
  std::vector<float> values = {};

  Image(int64_t channels, int64_t height, int64_t width)
      : channels(channels), height(height), width(width), values(static_cast<size_t>(channels * height * width)) {}
  int64_t count() const { return channels * height * width; }
  float& at(int64_t c, int64_t y, int64_t x) { return values[static_cast<size_t>((c * height + y) * width + x)]; }
  float at(int64_t c, int64_t y, int64_t x) const { return values[static_cast<size_t>((c * height + y) * width + x)]; }
};

// Numbers in [low, high), others for each seed.
std::vector<float> RandomNumbers(uint64_t seed, int64_t count, float low = -1, float high = 1);
Image RandomImage(uint64_t seed, int64_t channels, int64_t height, int64_t width);

// "[net]" with an image of that size.
std::string NetSection(int64_t channels, int64_t height, int64_t width);

// "[convolutional]" that copies what it reads, with the weights that make it so.
std::string CopySection(int64_t channels);
std::vector<float> CopyWeights(int64_t channels);

// The bytes of a .weights file.
std::string WeightsBytes(const std::vector<float>& numbers, int32_t major = 0, int32_t minor = 2);

// Two files in a folder of its own.
class MadeNet {
 public:
  MadeNet(const std::string& cfg, const std::string& weights);
  MadeNet(const std::string& cfg, const std::vector<float>& numbers) : MadeNet(cfg, WeightsBytes(numbers)) {}

  const std::string& cfg() const { return cfg_; }
  const std::string& weights() const { return weights_; }
  ImportedNet Import(const DarknetImportOptions& options = {}) const {
    return ImportDarknetNet(cfg_, weights_, options);
  }
  // What Import throws; empty where it throws nothing.
  std::string Error() const;

 private:
  const TemporaryFolder folder_;
  const std::string cfg_ = folder_ / "net.cfg", weights_ = folder_ / "net.weights";
};

// What the net makes of images, which lie in its input one behind the other: its output of that name, or its only one.
std::vector<float> Outputs(const ImportedNet& imported, const std::vector<float>& images, const std::string& name = {});

// With an error where a number differs by more than `tolerance` times the largest one.
void ExpectNear(const std::vector<float>& got, const std::vector<float>& wanted, double tolerance = 1e-5);

}  // namespace crema::darknet

#endif  // CREMA_TESTS_DARKNET_MADE_NET_H_
