// Choices between kernels that several processes make, of which one file remembers the first.
#include "cuda/device/choice_file.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "temporary_folder.h"

namespace crema::cuda {
namespace {

class Choices : public ::testing::Test {
 protected:
  Choices() { setenv("XDG_CACHE_HOME", folder_.path().c_str(), 1); }

  const TemporaryFolder folder_;
};

TEST_F(Choices, OfTheProcessThatWasFirstStand) {
  ChoiceFile one("choices"), two("choices");
  EXPECT_EQ(one.Remember("a convolution", 3), 3);
  EXPECT_EQ(two.Remember("a convolution", 5), 3);
  EXPECT_EQ(two.Remember("another", 1), 1);
  EXPECT_EQ(one.Remember("a third", 2), 2);
  EXPECT_EQ(one.Find("a convolution"), 3);
  EXPECT_EQ(two.Find("a convolution"), 3);
  ChoiceFile next("choices");
  for (const auto& [key, choice] : {std::pair("a convolution", 3), std::pair("another", 1), std::pair("a third", 2)}) {
    EXPECT_EQ(next.Find(key), choice) << key;
  }
}

TEST_F(Choices, ThatCannotBeUsedAreReplaced) {
  ChoiceFile one("choices"), two("choices");
  one.Remember("a convolution", 3);
  EXPECT_EQ(two.Remember("a convolution", 5, 4), 3);
  EXPECT_EQ(two.Remember("a convolution", 5, 3), 5);
  EXPECT_EQ(ChoiceFile("choices").Find("a convolution"), 5);
}

}  // namespace
}  // namespace crema::cuda
