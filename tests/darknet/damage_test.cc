// Files that are damaged: each is an error that names a file, or a net, and nothing else.
#include <gtest/gtest.h>

#include "darknet/made_net.h"

namespace crema::darknet {
namespace {

std::string Whole() {
  return NetSection(3, 8, 8) +
         "[convolutional]\nbatch_normalize=1\nfilters=4\nsize=3\nstride=2\npad=1\nactivation=leaky\n"
         "[maxpool]\nsize=2\nstride=1\n[route]\nlayers=-1,0\ngroups=2\n[upsample]\nstride=2\n[reorg]\nstride=2\n"
         "[convolutional]\nfilters=7\nactivation=linear\n[yolo]\nmask=0\nanchors=1,2\nclasses=2\nnum=1\n"
         "[route]\nlayers=0\n[connected]\noutput=3\n[softmax]\n";
}
constexpr int64_t kNumbers = 16 + 4 * 27 + 7 + 7 * 16 + 3 + 3 * 64;

// The error, of which there must be one that names a file where nothing comes out.
std::string Import(const std::string& cfg, const std::string& weights) {
  const MadeNet made(cfg, weights);
  const std::string error = made.Error();
  EXPECT_TRUE(error.empty() || error.find("net.cfg") != std::string::npos ||
              error.find("net.weights") != std::string::npos)
      << error << "\n"
      << cfg;
  return error;
}

TEST(DamagedDarknet, WholeFilesAreRead) { EXPECT_EQ(Import(Whole(), WeightsBytes(RandomNumbers(1, kNumbers))), ""); }

TEST(DamagedDarknet, CfgIsCutOrChanged) {
  const std::string cfg = Whole(), weights = WeightsBytes(RandomNumbers(1, kNumbers));
  for (size_t size = 0; size < cfg.size(); ++size) Import(cfg.substr(0, size), weights);
  for (size_t i = 0; i < cfg.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = cfg;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      Import(changed, weights);
    }
  }
}

TEST(DamagedDarknet, CfgHasOtherNumbers) {
  const std::string cfg = Whole(), weights = WeightsBytes(RandomNumbers(1, kNumbers));
  for (size_t at = cfg.find('='); at != std::string::npos; at = cfg.find('=', at + 1)) {
    const size_t end = cfg.find('\n', at);
    for (const char* value : {"0", "-1", "1048576", "2147483648", "9223372036854775807", "9223372036854775808", "1e9",
                              "0.5", ",", "1,2,3", "x", "-"}) {
      Import(cfg.substr(0, at + 1) + value + cfg.substr(end), weights);
    }
  }
}

TEST(DamagedDarknet, WeightsAreCutOrChanged) {
  const std::string weights = WeightsBytes(RandomNumbers(1, kNumbers));
  int whole = 0;
  for (size_t size = 0; size < weights.size(); ++size)
    whole += Import(Whole(), weights.substr(0, size)).empty() ? 1 : 0;
  EXPECT_EQ(whole, 2);  // behind the first and the second section
  for (size_t i = 0; i < 64; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = weights;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      // Numbers may be any; the version says how long the header is.
      const std::string error = Import(Whole(), changed);
      if (i >= 12) {
        EXPECT_EQ(error, "") << i;
      }
    }
  }
}

}  // namespace
}  // namespace crema::darknet
