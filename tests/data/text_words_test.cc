#include "data/files/text_words.h"

#include <gtest/gtest.h>

namespace crema {
namespace {

using Words = std::vector<std::string>;

TEST(WordsOf, AreSeparatedByBlanksAndMarks) {
  EXPECT_EQ(WordsOf("Don't panic!"), (Words{"don't", "panic", "!"}));
  EXPECT_EQ(WordsOf(" well-made,\tand\r\n'quoted' "), (Words{"well", "-", "made", ",", "and", "'", "quoted", "'"}));
  EXPECT_EQ(WordsOf("3.5 of 1,000. B2B"), (Words{"3.5", "of", "1,000", ".", "b2b"}));
  EXPECT_EQ(WordsOf("it\u2019s\u00a0a \u201ctest\u201d\u2026"),
            (Words{"it\u2019s", "a", "\u201c", "test", "\u201d", "\u2026"}));
  EXPECT_EQ(WordsOf("..."), (Words{".", ".", "."}));
  EXPECT_EQ(WordsOf(" \n"), Words{});
  EXPECT_EQ(WordsOf(""), Words{});
}

TEST(WordsOf, AreInLowerCaseOfAllScripts) {
  EXPECT_EQ(WordsOf("\u00dcBER \u0160KODA \u01a0N"), (Words{"\u00fcber", "\u0161koda", "\u01a1n"}));
  EXPECT_EQ(WordsOf("\u041f\u0440\u0418\u0412\u0435\u0422"), Words{"\u043f\u0440\u0438\u0432\u0435\u0442"});
  EXPECT_EQ(WordsOf("\u039a\u0391\u039b\u0397"), Words{"\u03ba\u03b1\u03bb\u03b7"});
}

TEST(WordsOf, AreTheSameHoweverAccentsWereTyped) {
  EXPECT_EQ(WordsOf("E\u0301te\u0301"), Words{"\u00e9t\u00e9"});
  EXPECT_EQ(WordsOf("\u0939\u093f\u0928\u094d\u0926\u0940"), Words{"\u0939\u093f\u0928\u094d\u0926\u0940"});
}

TEST(WordsOf, AreSingleCharactersWhereNoBlanksAreWritten) {
  EXPECT_EQ(WordsOf("\u6211\u559c\u6b22\u3002Ok"), (Words{"\u6211", "\u559c", "\u6b22", "\u3002", "ok"}));
  EXPECT_EQ(WordsOf("\ud55c\uad6d \ub9d0"), (Words{"\ud55c\uad6d", "\ub9d0"}));
  EXPECT_EQ(WordsOf("ok\U0001F600\u2764\uFE0F!"), (Words{"ok", "\U0001F600", "\u2764", "!"}));
}

}  // namespace
}  // namespace crema
