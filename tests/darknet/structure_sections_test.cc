// Sections without weights, compared with Darknet's formulas as plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "darknet/made_net.h"

namespace crema::darknet {
namespace {

// A net that begins with a copy of the image, so that others can read that as section 0.
std::vector<float> OutputsBehindACopy(const std::string& lines, const Image& image, const std::string& name = {}) {
  const std::string cfg = NetSection(image.channels, image.height, image.width) + CopySection(image.channels) + lines;
  return Outputs(MadeNet(cfg, CopyWeights(image.channels)).Import(), image.values, name);
}

Image Pooled(const Image& image, int64_t size, int64_t stride_x, int64_t stride_y, int64_t padding) {
  Image result(image.channels, (image.height + padding - size) / stride_y + 1,
               (image.width + padding - size) / stride_x + 1);
  for (int64_t c = 0; c < result.channels; ++c) {
    for (int64_t y = 0; y < result.height; ++y) {
      for (int64_t x = 0; x < result.width; ++x) {
        float most = -FLT_MAX;
        for (int64_t i = 0; i < size; ++i) {
          for (int64_t j = 0; j < size; ++j) {
            const int64_t row = y * stride_y - padding / 2 + i, column = x * stride_x - padding / 2 + j;
            if (row < 0 || row >= image.height || column < 0 || column >= image.width) continue;
            most = std::max(most, image.at(c, row, column));
          }
        }
        result.at(c, y, x) = most;
      }
    }
  }
  return result;
}

// Below 0 everywhere, so that a zero of padding would show.
Image BelowZero(int64_t channels, int64_t height, int64_t width) {
  Image image(channels, height, width);
  image.values = RandomNumbers(7, image.count(), -2, -1);
  return image;
}

TEST(MaxPoolSection, EqualsALoop) {
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{8, 8}, {7, 9}, {13, 12}}) {
    const Image image = BelowZero(2, height, width);
    for (const int64_t size : {1, 2, 3, 5, 7}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (int64_t padding = -1; padding <= 2 * size - 2; ++padding) {
          std::string lines = "[maxpool]\nsize=" + std::to_string(size) + "\nstride=" + std::to_string(stride) + "\n";
          if (padding >= 0) lines += "padding=" + std::to_string(padding) + "\n";
          SCOPED_TRACE(lines + Shape({height, width}).ToString());
          const MadeNet made(NetSection(2, height, width) + CopySection(2) + lines, CopyWeights(2));
          const Image wanted = Pooled(image, size, stride, stride, padding < 0 ? size - 1 : padding);
          // A padding of which all windows' ends cannot be laid is refused.
          const std::string error = made.Error();
          if (!error.empty()) {
            EXPECT_NE(error.find("reaches further behind the image"), std::string::npos) << error;
            EXPECT_GT(padding, size - 1);
            continue;
          }
          ExpectNear(Outputs(made.Import(), image.values), wanted.values);
        }
      }
    }
  }
}

TEST(MaxPoolSection, TakesItsSizeFromTheStride) {
  const Image image = BelowZero(2, 8, 9);
  ExpectNear(OutputsBehindACopy("[maxpool]\nstride=2\n", image), Pooled(image, 2, 2, 2, 1).values);
  ExpectNear(OutputsBehindACopy("[maxpool]\nsize=3\nstride_x=1\nstride_y=2\n", image),
             Pooled(image, 3, 1, 2, 2).values);
}

// As YOLOv3-tiny wants it: as many pixels as before, padded on the right and below.
TEST(MaxPoolSection, KeepsTheSizeWithAStrideOfOne) {
  Image image(1, 2, 2);
  image.values = {-4, -3, -2, -1};
  EXPECT_EQ(OutputsBehindACopy("[maxpool]\nsize=2\nstride=1\n", image), (std::vector<float>{-1, -1, -1, -1}));
  image.values = {-1, -2, -3, -4};
  EXPECT_EQ(OutputsBehindACopy("[maxpool]\nsize=2\nstride=1\n", image), (std::vector<float>{-1, -2, -3, -4}));
}

TEST(AvgPoolSection, IsTheMeanOfAChannel) {
  const Image image = RandomImage(1, 2, 3, 4);
  std::vector<float> wanted(2);
  for (size_t i = 0; i < image.values.size(); ++i) wanted[i / 12] += image.values[i] / 12;
  ExpectNear(OutputsBehindACopy("[avgpool]\n", image), wanted);
}

std::vector<float> Channels(const Image& image, int64_t first, int64_t count) {
  const int64_t plane = image.height * image.width;
  return {image.values.begin() + first * plane, image.values.begin() + (first + count) * plane};
}

std::vector<float> Joined(std::vector<float> a, const std::vector<float>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(RouteSection, JoinsAndDividesChannels) {
  const Image image = RandomImage(1, 4, 3, 3);
  const std::string one = "[maxpool]\nsize=1\nstride=1\n";
  EXPECT_EQ(OutputsBehindACopy("[maxpool]\nsize=3\nstride=3\n[route]\nlayers=0\n" + one, image, "maxpool_3"),
            image.values);
  EXPECT_EQ(OutputsBehindACopy("[route]\nlayers = -1, 0\n", image), Joined(image.values, image.values));
  EXPECT_EQ(OutputsBehindACopy("[route]\nlayers=-1\ngroups=2\n", image), Channels(image, 0, 2));
  EXPECT_EQ(OutputsBehindACopy("[route]\nlayers=-1\ngroups=2\ngroup_id=1\n", image), Channels(image, 2, 2));
  EXPECT_EQ(OutputsBehindACopy("[route]\nlayers=-1\ngroups=4\ngroup_id=2\n", image), Channels(image, 2, 1));
  EXPECT_EQ(OutputsBehindACopy("[route]\nlayers=-1,0\ngroups=2\ngroup_id=1\n", image),
            Joined(Channels(image, 2, 2), Channels(image, 2, 2)));
}

TEST(ShortcutSection, AddsSections) {
  const Image image = RandomImage(1, 2, 3, 3);
  const auto times = [&](float factor, float below) {
    std::vector<float> result;
    for (const float value : image.values) result.push_back(value * factor * (value < 0 ? below : 1));
    return result;
  };
  ExpectNear(OutputsBehindACopy("[maxpool]\nsize=1\n[shortcut]\nfrom=-2\n", image), times(2, 1));
  ExpectNear(OutputsBehindACopy("[shortcut]\nfrom=0\nactivation=leaky\n", image), times(2, 0.1F));
  ExpectNear(OutputsBehindACopy("[shortcut]\nfrom = -1, 0\nactivation=linear\nweights_type=none\n", image),
             times(3, 1));
}

TEST(ScaleChannelsSection, MultipliesEachChannel) {
  const Image image = RandomImage(1, 3, 4, 5);
  std::vector<float> wanted;
  for (int64_t c = 0; c < 3; ++c) {
    double mean = 0;
    for (const float value : Channels(image, c, 1)) mean += static_cast<double>(value) / 20;
    for (const float value : Channels(image, c, 1)) {
      const double product = mean * value;
      wanted.push_back(static_cast<float>(product > 0 ? product : 0.1 * product));
    }
  }
  const std::string cfg =
      NetSection(3, 4, 5) + "[maxpool]\nsize=1\n[avgpool]\n[scale_channels]\nfrom=-2\nactivation=leaky\n";
  const ImportedNet imported = MadeNet(cfg, WeightsBytes({})).Import();
  // The input's channels come turned round.
  ExpectNear(Outputs(imported, Joined(Joined(Channels(image, 2, 1), Channels(image, 1, 1)), Channels(image, 0, 1))),
             wanted);
}

TEST(ScaleChannelsSection, MultipliesEachPixel) {
  const Image image = RandomImage(1, 4, 2, 3);
  std::vector<float> wanted;
  for (int64_t c = 0; c < 4; ++c) {
    for (int64_t i = 0; i < 6; ++i) wanted.push_back(Channels(image, c, 1)[i] * Channels(image, 3, 1)[i]);
  }
  ExpectNear(
      OutputsBehindACopy("[route]\nlayers=0\ngroups=4\ngroup_id=3\n[scale_channels]\nfrom=0\nscale_wh=1\n", image),
      wanted);
}

TEST(SamSection, MultipliesEachNumber) {
  const Image image = RandomImage(1, 2, 2, 3);
  std::vector<float> wanted;
  for (const float value : image.values) wanted.push_back(std::tanh(value * value));
  ExpectNear(OutputsBehindACopy("[maxpool]\nsize=1\n[sam]\nfrom=0\nactivation=tanh\n", image), wanted);
}

TEST(UpsampleSection, RepeatsPixels) {
  const Image image = RandomImage(1, 2, 3, 2);
  for (const int64_t stride : {1, 2, 3}) {
    Image wanted(2, 3 * stride, 2 * stride);
    for (int64_t c = 0; c < 2; ++c) {
      for (int64_t y = 0; y < wanted.height; ++y) {
        for (int64_t x = 0; x < wanted.width; ++x) wanted.at(c, y, x) = 0.5F * image.at(c, y / stride, x / stride);
      }
    }
    const std::string text = "[upsample]\nscale=.5\nstride=" + std::to_string(stride) + "\n";
    ExpectNear(OutputsBehindACopy(text, image), wanted.values);
  }
  EXPECT_EQ(OutputsBehindACopy("[upsample]\n", image).size(), image.values.size() * 4);
}

// Darknet's loop, whose shape is that of what it reads in [reorg], and that of what it makes in [reorg3d]. to_pixels:
// the other way.
std::vector<float> Reorganized(const std::vector<float>& from, int64_t channels, int64_t height, int64_t width,
                               int64_t stride, bool to_pixels) {
  std::vector<float> to(from.size());
  const int64_t few = channels / (stride * stride);
  for (int64_t k = 0; k < channels; ++k) {
    for (int64_t j = 0; j < height; ++j) {
      for (int64_t i = 0; i < width; ++i) {
        const int64_t coarse = (k * height + j) * width + i, square = k / few, row = j * stride + square / stride,
                      column = i * stride + square % stride,
                      fine = ((k % few) * height * stride + row) * width * stride + column;
        if (to_pixels) {
          to[static_cast<size_t>(fine)] = from[static_cast<size_t>(coarse)];
        } else {
          to[static_cast<size_t>(coarse)] = from[static_cast<size_t>(fine)];
        }
      }
    }
  }
  return to;
}

TEST(ReorgSection, MovesPixelsAsDarknetDoes) {
  const Image image = RandomImage(1, 8, 4, 6), finer = RandomImage(1, 9, 3, 6);
  EXPECT_EQ(OutputsBehindACopy("[reorg]\nstride=2\n", image), Reorganized(image.values, 8, 4, 6, 2, false));
  EXPECT_EQ(OutputsBehindACopy("[reorg]\nstride=2\nreverse=1\n", image), Reorganized(image.values, 8, 4, 6, 2, true));
  EXPECT_EQ(OutputsBehindACopy("[reorg]\nstride=3\n", finer), Reorganized(finer.values, 9, 3, 6, 3, false));
}

TEST(Reorg3dSection, MovesPixelsAsDarknetDoes) {
  const Image image = RandomImage(1, 5, 4, 6), finer = RandomImage(1, 2, 3, 9);
  EXPECT_EQ(OutputsBehindACopy("[route]\nlayers=-1\n[reorg3d]\nstride=2\n", image),
            Reorganized(image.values, 20, 2, 3, 2, false));
  EXPECT_EQ(OutputsBehindACopy("[reorg3d]\nstride=3\n", finer), Reorganized(finer.values, 18, 1, 3, 3, false));
  EXPECT_EQ(OutputsBehindACopy("[reorg3d]\n", finer), finer.values);
}

TEST(SoftmaxSection, IsOverAllNumbers) {
  const Image image = RandomImage(1, 2, 1, 2);
  double sum = 0;
  for (const float value : image.values) sum += std::exp(value);
  std::vector<float> wanted;
  for (const float value : image.values) wanted.push_back(static_cast<float>(std::exp(value) / sum));
  ExpectNear(OutputsBehindACopy("[softmax]\ngroups=1\n[cost]\ntype=sse\n", image), wanted);
}

TEST(DropoutSection, DoesNothing) {
  const Image image = RandomImage(1, 2, 2, 2);
  EXPECT_EQ(OutputsBehindACopy("[dropout]\nprobability=.5\n", image), image.values);
}

}  // namespace
}  // namespace crema::darknet
