// Lists and numbers: as messages tell them, and as texts hold them.
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/listed.h"
#include "base/number_range.h"
#include "base/number_text.h"
#include "base/trimmed.h"

namespace crema {
namespace {

TEST(Listed, TellsTwentyNamesAndHowManyMoreThereAre) {
  std::vector<std::string> names;
  EXPECT_EQ(Listed(names), "");
  for (int i = 0; i < 21; ++i) names.push_back(std::to_string(i));
  EXPECT_EQ(Listed(names), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19 and 1 more");
  names.pop_back();
  EXPECT_TRUE(Listed(names).ends_with("18, 19"));
  EXPECT_EQ(Listed(std::set<std::string>{"b", "a"}, {.quoted = true}), "\"a\", \"b\"");
  EXPECT_EQ(Listed(names, {.most = 2, .quoted = true}), "\"0\", \"1\" and 18 more");
  EXPECT_EQ(Listed(std::vector<std::string>{"a", "b", "c"}, {.last = " or "}), "a, b or c");
  EXPECT_EQ(Listed(std::vector<std::string>{"a", "b", "c"}, {.most = 2, .last = " or "}), "a, b and 1 more");
  EXPECT_EQ(Listed(std::vector<int>{1, -2, 3}, {.most = 2, .quoted = true}), "1, -2 and 1 more");
  EXPECT_TRUE(Listed(std::vector<std::string>(1000, "x"), {.most = kAllNames}).ends_with(", x, x"));
}

TEST(CommaParts, AreTrimmedAndMayBeEmpty) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(CommaParts("a.caffemodel, b c ,d"), (Words{"a.caffemodel", "b c", "d"}));
  EXPECT_EQ(CommaParts("a,,b,"), (Words{"a", "", "b", ""}));
  EXPECT_EQ(CommaParts(" "), Words{""});
  EXPECT_EQ(CommaParts(""), Words{""});
}

TEST(NumberRange, HoldsFiniteNumbersAndTellsWhatIsWrong) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  for (const NumberRange& range : {kFinite, kNotNegative, kPositive, kFraction}) {
    EXPECT_TRUE(range.Holds(1));
    for (const double value : {kInfinity, -kInfinity, kNaN}) EXPECT_FALSE(range.Holds(value));
  }
  EXPECT_TRUE(kNotNegative.Holds(0));
  EXPECT_FALSE(kPositive.Holds(0));
  constexpr NumberRange kBelow1 = {.low = 0, .high = 1, .below_high = true};
  EXPECT_FALSE(kBelow1.Holds(1));
  EXPECT_EQ(kFinite.Rule(kNaN), "finite");
  EXPECT_EQ(kNotNegative.Rule(kInfinity), "finite");
  EXPECT_EQ(kNotNegative.Rule(-kInfinity), "at least 0");
  EXPECT_EQ(kPositive.Rule(kNaN), "above 0");
  EXPECT_EQ(kFraction.Rule(kInfinity), "in [0, 1]");
  EXPECT_EQ(kBelow1.Rule(1), "at least 0 and below 1");
  EXPECT_EQ((NumberRange{.high = 16777216}).Rule(1e9), "at most 16777216");
}

TEST(Numbers, AreWholeWords) {
  float value = 0;
  for (const auto& [word, number] :
       {std::pair("1.5", 1.5f), {"+1.5", 1.5f}, {"-2", -2.0f}, {"1e3", 1000.0f}, {"1e-50", 0.0f}, {"-1e-400", 0.0f}}) {
    EXPECT_TRUE(ParseFinite(word, &value)) << word;
    EXPECT_EQ(value, number) << word;
  }
  for (const char* word :
       {"", "+", "+-1", "-+1", "1,5", "1.5 ", " 1.5", "1.5x", "nan", "inf", "-inf", "1e39", "1e400"}) {
    EXPECT_FALSE(ParseFinite(word, &value)) << word;
  }
  double wide = 0;
  EXPECT_TRUE(ParseFinite("+1e39", &wide));
  EXPECT_EQ(wide, 1e39);
  EXPECT_TRUE(ParseFinite("1e-400", &wide));
  EXPECT_EQ(wide, 0);
  EXPECT_FALSE(ParseFinite("1e400", &wide));

  int whole = 0;
  EXPECT_TRUE(ParseWhole("-2147483648", &whole));
  EXPECT_EQ(whole, std::numeric_limits<int>::min());
  for (const char* word : {"", "-", "2147483648", "1.0", "1 ", " 1", "0x10", "+1"}) {
    EXPECT_FALSE(ParseWhole(word, &whole)) << word;
  }
  unsigned natural = 0;
  EXPECT_TRUE(ParseWhole("4294967295", &natural));
  EXPECT_FALSE(ParseWhole("-1", &natural));
}

}  // namespace
}  // namespace crema
