// What is told about common mistakes in a prototxt: where a field belongs, and what a word or a character should be.
#include <gtest/gtest.h>

#include "crema/files.h"
#include "errors.h"
#include "schema/net_text.h"

namespace crema {
namespace {

using testing_schema::Errors;

std::string ErrorsOfSolver(const std::string& text) {
  return ThrownBy<UserError>([&] { ParseSolver(text, "s"); });
}

TEST(TextAdvice, CharactersThatLookLikeOthers) {
  EXPECT_EQ(Errors("\xc2\xa0layer { }"),
            "n:1:1: error: unexpected no-break space (U+00A0), which looks like a space; write a plain one");
  EXPECT_EQ(Errors("layer {\xa0}"),
            "n:1:8: error: unexpected no-break space (of Latin-1), which looks like a space; write a plain one");
  EXPECT_EQ(Errors("layer {\xe3\x80\x80}"),
            "n:1:8: error: unexpected ideographic space (U+3000), which looks like a space; write a plain one");
  EXPECT_EQ(Errors("layer {\xe2\x80\x8b}"),
            "n:1:8: error: unexpected zero-width space (U+200B), which does not show; remove it");
  EXPECT_EQ(Errors("layer { }\n\xef\xbb\xbflayer { }"),
            "n:2:1: error: unexpected byte order mark (U+FEFF), which does not show and stands only at the start of a "
            "file; remove it");
  const std::string quotes = Errors("name: \xe2\x80\x9cnet");
  EXPECT_EQ(quotes.find("n:1:7: error: unexpected \"\xe2\x80\x9c\"; outside quotes and comments only plain ASCII is "
                        "allowed; write \""),
            0u)
      << quotes;
}

}  // namespace
}  // namespace crema
