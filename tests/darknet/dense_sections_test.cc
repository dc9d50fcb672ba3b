// [convolutional] and [connected], compared with Darknet's formulas as plain loops.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "darknet/activation.h"
#include "darknet/made_net.h"

namespace crema::darknet {
namespace {

constexpr double kEps = 1e-5;  // of Darknet's normalisation

using Function = std::function<double(double)>;

double Linear(double x) { return x; }

const std::map<std::string, Function>& Activations() {
  static const std::map<std::string, Function> functions = {
      {"linear", Linear},
      {"logistic", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"relu", [](double x) { return x > 0 ? x : 0; }},
      {"relu6", [](double x) { return std::min(std::max(x, 0.0), 6.0); }},
      {"relie", [](double x) { return x > 0 ? x : 0.01 * x; }},
      {"leaky", [](double x) { return x > 0 ? x : 0.1 * x; }},
      {"elu", [](double x) { return x >= 0 ? x : std::exp(x) - 1; }},
      {"tanh", [](double x) { return (std::exp(2 * x) - 1) / (std::exp(2 * x) + 1); }},
      {"swish", [](double x) { return x / (1 + std::exp(-x)); }},
      {"mish", [](double x) { return x * std::tanh(std::log(1 + std::exp(x))); }},
      {"gelu", [](double x) { return 0.5 * x * (1 + std::tanh(0.797885 * x + 0.035677 * x * x * x)); }},
  };
  return functions;
}

// Numbers of a section, one after the other.
class NumberReader {
 public:
  explicit NumberReader(std::vector<float> all) : all_(std::move(all)) {}
  std::vector<float> Next(int64_t count) {
    at_ += count;
    return {all_.begin() + at_ - count, all_.begin() + at_};
  }

 private:
  std::vector<float> all_;
  int64_t at_ = 0;
};

// What stands behind the sums of weights.
struct Ending {
  std::vector<float> biases, scales, means, variances;  // the latter empty without normalisation
  Function activation = Linear;

  double operator()(double sum, int64_t filter) const {
    const auto i = static_cast<size_t>(filter);
    if (!scales.empty()) sum = (sum - means[i]) / std::sqrt(variances[i] + kEps) * scales[i];
    return activation(sum + biases[i]);
  }
};

struct Kernel {
  int64_t filters = 1, size = 1, stride_x = 1, stride_y = 1, padding = 0, groups = 1, dilation = 1;
  bool normalize = false;
};

int64_t CountOf(const Kernel& s, int64_t channels) {
  return s.filters * (s.normalize ? 4 : 1) + s.filters * channels / s.groups * s.size * s.size;
}

Image Convolved(const Image& image, const Kernel& s, NumberReader numbers, const Function& activation = Linear) {
  Ending end{numbers.Next(s.filters), {}, {}, {}, activation};
  if (s.normalize) {
    end.scales = numbers.Next(s.filters);
    end.means = numbers.Next(s.filters);
    end.variances = numbers.Next(s.filters);
  }
  const int64_t channels = image.channels / s.groups, filters = s.filters / s.groups;
  const std::vector<float> weights = numbers.Next(s.filters * channels * s.size * s.size);
  const int64_t pad = s.padding * s.dilation, reach = s.dilation * (s.size - 1) + 1;
  Image result(s.filters, (image.height + 2 * pad - reach) / s.stride_y + 1,
               (image.width + 2 * pad - reach) / s.stride_x + 1);
  for (int64_t f = 0; f < s.filters; ++f) {
    for (int64_t y = 0; y < result.height; ++y) {
      for (int64_t x = 0; x < result.width; ++x) {
        double sum = 0;
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t i = 0; i < s.size; ++i) {
            for (int64_t j = 0; j < s.size; ++j) {
              const int64_t row = y * s.stride_y - pad + i * s.dilation, column = x * s.stride_x - pad + j * s.dilation;
              if (row < 0 || row >= image.height || column < 0 || column >= image.width) continue;
              sum += static_cast<double>(image.at(f / filters * channels + c, row, column)) *
                     weights[static_cast<size_t>(((f * channels + c) * s.size + i) * s.size + j)];
            }
          }
        }
        result.at(f, y, x) = static_cast<float>(end(sum, f));
      }
    }
  }
  return result;
}

// Imports "[convolutional]" with those lines behind an image of `channels`, and compares.
void CompareConvolution(const std::string& lines, const Kernel& s, int64_t channels, const Function& activation) {
  SCOPED_TRACE(lines);
  const Image image = RandomImage(1, channels, 7, 9);
  const std::vector<float> numbers = RandomNumbers(2, CountOf(s, channels), 0.1F, 1.1F);
  const MadeNet made(NetSection(channels, 7, 9) + "[convolutional]\n" + lines, numbers);
  ExpectNear(Outputs(made.Import(), image.values), Convolved(image, s, NumberReader(numbers), activation).values);
}

TEST(ConvolutionalSection, EqualsALoop) {
  const std::string linear = "activation=linear\n";
  CompareConvolution(linear, {}, 1, Linear);
  CompareConvolution(linear + "filters=4\nsize=3\npad=1\n", {.filters = 4, .size = 3, .padding = 1}, 2, Linear);
  CompareConvolution(linear + "filters=4\nsize=3\nstride=2\npad=1\nbatch_normalize=1\n",
                     {.filters = 4, .size = 3, .stride_x = 2, .stride_y = 2, .padding = 1, .normalize = true}, 2,
                     Linear);
  CompareConvolution(linear + "filters=3\nsize=3\nstride_x=1\nstride_y=3\npadding=2\n",
                     {.filters = 3, .size = 3, .stride_x = 1, .stride_y = 3, .padding = 2}, 2, Linear);
  CompareConvolution(linear + "filters=3\nsize=2\nstride=2\nstride_x=3\ncbn=1\n",
                     {.filters = 3, .size = 2, .stride_x = 3, .stride_y = 2, .normalize = true}, 2, Linear);
  // pad=1 pads by half of any size, and wins.
  CompareConvolution(linear + "filters=2\nsize=4\npad=1\npadding=1\n", {.filters = 2, .size = 4, .padding = 2}, 2,
                     Linear);
  CompareConvolution(linear + "filters=6\nsize=3\ngroups=2\npad=1\n",
                     {.filters = 6, .size = 3, .padding = 1, .groups = 2}, 4, Linear);
  CompareConvolution(linear + "filters=4\nsize=3\ngroups=4\nbatch_normalize=1\n",
                     {.filters = 4, .size = 3, .groups = 4, .normalize = true}, 4, Linear);
  CompareConvolution(linear + "filters=2\nsize=3\ndilation=2\npad=1\n",
                     {.filters = 2, .size = 3, .padding = 1, .dilation = 2}, 2, Linear);
  CompareConvolution(linear + "filters=2\nsize=1\ndilation=3\n", {.filters = 2}, 2, Linear);
}

TEST(ConvolutionalSection, HasEveryActivation) {
  const Kernel s{.filters = 3, .size = 3, .normalize = true};
  for (const auto& [name, function] : Activations()) {
    CompareConvolution("filters=3\nsize=3\nbatch_normalize=1\nactivation=" + name + "\n", s, 2, function);
  }
  CompareConvolution("filters=3\nsize=3\nbatch_normalize=1\n", s, 2, Activations().at("logistic"));
  EXPECT_EQ(ActivationNames().size(), Activations().size());
}

// Results far from 0, where a formula shows its bends.
TEST(ConvolutionalSection, HasActivationsOfLargeNumbers) {
  const Image image = RandomImage(3, 1, 8, 8);
  for (const auto& [name, function] : Activations()) {
    SCOPED_TRACE(name);
    const MadeNet made(NetSection(1, 8, 8) + "[convolutional]\nactivation=" + name + "\n", std::vector<float>{0.5F, 9});
    const Image wanted = Convolved(image, {}, NumberReader({0.5F, 9}), function);
    ExpectNear(Outputs(made.Import(), image.values), wanted.values);
  }
}

Image Reversed(const Image& image) {
  Image reversed = image;
  for (int64_t i = 0; i < image.count(); ++i) {
    const int64_t plane = image.height * image.width;
    reversed.values[static_cast<size_t>(i)] =
        image.values[static_cast<size_t>((image.channels - 1 - i / plane) * plane + i % plane)];
  }
  return reversed;
}

std::vector<std::string> TypesOf(const ImportedNet& imported) {
  std::vector<std::string> types;
  for (const LayerParameter& layer : imported.net.layer()) types.push_back(layer.type());
  return types;
}

// Darknet sees red first, the net here blue.
TEST(ConvolutionalSection, TakesBlueFirst) {
  const Image red_first = RandomImage(1, 3, 6, 5);
  const Kernel s{.filters = 4, .size = 3, .padding = 1, .normalize = true};
  const std::vector<float> numbers = RandomNumbers(2, CountOf(s, 3), 0.1F, 1.1F);
  const std::string lines = "[convolutional]\nfilters=4\nsize=3\npad=1\nbatch_normalize=1\nactivation=linear\n";
  const ImportedNet imported = MadeNet(NetSection(3, 6, 5) + lines, numbers).Import();
  ExpectNear(Outputs(imported, Reversed(red_first).values), Convolved(red_first, s, NumberReader(numbers)).values);
  EXPECT_EQ(TypesOf(imported), (std::vector<std::string>{"Input", "Convolution", "BatchNorm", "Scale"}));
}

TEST(ConvolutionalSection, OfGroupsGetsChannelsInTheirOrder) {
  const Image red_first = RandomImage(1, 3, 6, 5);
  const Kernel s{.filters = 3, .size = 3, .groups = 3};
  const std::vector<float> numbers = RandomNumbers(2, CountOf(s, 3));
  const std::string lines = "[convolutional]\nfilters=3\nsize=3\ngroups=3\nactivation=linear\n";
  const ImportedNet imported = MadeNet(NetSection(3, 6, 5) + lines, numbers).Import();
  ExpectNear(Outputs(imported, Reversed(red_first).values), Convolved(red_first, s, NumberReader(numbers)).values);
  EXPECT_EQ(TypesOf(imported), (std::vector<std::string>{"Input", "Convolution", "Convolution"}));
}

// A section that has no weights to turn round, and one behind it.
TEST(ConvolutionalSection, BehindAnotherFirstSectionGetsRedFirst) {
  const Image red_first = RandomImage(1, 3, 4, 4);
  const std::vector<float> numbers = RandomNumbers(2, 4);
  const std::string lines = "[maxpool]\nsize=1\nstride=1\n[convolutional]\nfilters=1\nactivation=linear\n";
  const ImportedNet imported = MadeNet(NetSection(3, 4, 4) + lines, numbers).Import();
  ExpectNear(Outputs(imported, Reversed(red_first).values),
             Convolved(red_first, {.filters = 1}, NumberReader(numbers)).values);
}

std::vector<float> Connected(const std::vector<float>& input, int64_t outputs, bool normalize, NumberReader numbers,
                             const Function& activation) {
  const auto inputs = static_cast<int64_t>(input.size());
  Ending end{numbers.Next(outputs), {}, {}, {}, activation};
  const std::vector<float> weights = numbers.Next(outputs * inputs);
  if (normalize) {
    end.scales = numbers.Next(outputs);
    end.means = numbers.Next(outputs);
    end.variances = numbers.Next(outputs);
  }
  std::vector<float> result;
  for (int64_t o = 0; o < outputs; ++o) {
    double sum = 0;
    for (int64_t i = 0; i < inputs; ++i) {
      sum += static_cast<double>(input[static_cast<size_t>(i)]) * weights[static_cast<size_t>(o * inputs + i)];
    }
    result.push_back(static_cast<float>(end(sum, o)));
  }
  return result;
}

TEST(ConnectedSection, EqualsALoop) {
  const Image image = RandomImage(1, 2, 3, 4);
  const std::vector<float> numbers = RandomNumbers(2, 5 * 4 + 5 * 24, 0.1F, 1.1F);
  const std::string lines = NetSection(2, 3, 4) + "[connected]\noutput=5\n";
  const std::vector<float> plain(numbers.begin(), numbers.begin() + 5 + 5 * 24);
  ExpectNear(Outputs(MadeNet(lines, plain).Import(), image.values),
             Connected(image.values, 5, false, NumberReader(plain), Activations().at("logistic")));
  ExpectNear(Outputs(MadeNet(lines + "batch_normalize=1\nactivation=leaky\n", numbers).Import(), image.values),
             Connected(image.values, 5, true, NumberReader(numbers), Activations().at("leaky")));
}

TEST(ConnectedSection, TakesBlueFirst) {
  const Image red_first = RandomImage(1, 3, 2, 3);
  const std::vector<float> numbers = RandomNumbers(2, 4 + 4 * 18);
  const std::string cfg = NetSection(3, 2, 3) + "[connected]\noutput=4\nactivation=linear\n";
  const std::vector<float> wanted = Connected(red_first.values, 4, false, NumberReader(numbers), Linear);
  ExpectNear(Outputs(MadeNet(cfg, numbers).Import(), Reversed(red_first).values), wanted);
  // As a file of the first version has them: input by input.
  std::vector<float> turned(numbers.begin(), numbers.begin() + 4);
  for (int64_t i = 0; i < 18; ++i) {
    for (int64_t o = 0; o < 4; ++o) turned.push_back(numbers[static_cast<size_t>(4 + o * 18 + i)]);
  }
  ExpectNear(Outputs(MadeNet(cfg, WeightsBytes(turned, 1001, 0)).Import(), Reversed(red_first).values), wanted);
}

TEST(ConnectedSection, MakesAnImageOfOnePixel) {
  const Image image = RandomImage(1, 1, 2, 2);
  const std::vector<float> numbers = RandomNumbers(2, 3 + 12 + 2 + 6);
  const std::string cfg = NetSection(1, 2, 2) + "[connected]\noutput=3\nactivation=linear\n" +
                          "[convolutional]\nfilters=2\nactivation=linear\n";
  NumberReader all(numbers);
  Image vector(3, 1, 1);
  vector.values = Connected(image.values, 3, false, NumberReader(all.Next(15)), Linear);
  ExpectNear(Outputs(MadeNet(cfg, numbers).Import(), image.values),
             Convolved(vector, {.filters = 2}, NumberReader(all.Next(8))).values);
}

TEST(Batch, RunsImagesSideBySide) {
  const std::string cfg = NetSection(2, 4, 4) + "[convolutional]\nfilters=2\nsize=3\n[connected]\noutput=3\n";
  const MadeNet made(cfg, RandomNumbers(2, 2 + 36 + 3 + 24));
  const Image first = RandomImage(3, 2, 4, 4), second = RandomImage(4, 2, 4, 4);
  std::vector<float> both = first.values, wanted = Outputs(made.Import(), first.values);
  both.insert(both.end(), second.values.begin(), second.values.end());
  const std::vector<float> other = Outputs(made.Import(), second.values);
  wanted.insert(wanted.end(), other.begin(), other.end());
  ExpectNear(Outputs(made.Import({.batch = 2}), both), wanted);
}

}  // namespace
}  // namespace crema::darknet
