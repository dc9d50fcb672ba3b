// The first lines of cards.
#include "zoo/card.h"

#include <gtest/gtest.h>

#include <string>

#include "crema/error.h"
#include "source_folder.h"
#include "zoo/card_text.h"
#include "zoo/zoo.h"

namespace crema {
namespace {

const std::string kSum(64, 'a');

// The messages of what is wrong with a card of these lines.
std::string Mistakes(const std::string& lines) {
  try {
    ParseCard("---\n" + lines + "---\n", "README.md");
    return "";
  } catch (const UserError& error) {
    std::string all;
    for (const Diagnostic& diagnostic : error.diagnostics()) all += diagnostic.ToString() + "\n";
    return all;
  }
}

TEST(Card, IsReadWithItsText) {
  const Card card =
      ParseCard("---\nname: net\n# a comment\nsummary: \"a: b\"\n\nweights: w.caffemodel\r\nweights_sha256: " +
                    std::string(64, 'A') + "\nweights_url: https://x/y?z=1\n---\n# Title\nmore\n---\n",
                "README.md");
  EXPECT_EQ(card.name, "net");
  EXPECT_EQ(card.summary, "a: b");
  EXPECT_EQ(card.weights, "w.caffemodel");
  EXPECT_EQ(card.weights_sha256, kSum);
  EXPECT_EQ(card.weights_url, "https://x/y?z=1");
  EXPECT_EQ(card.accuracy, "");
  EXPECT_EQ(card.text, "# Title\nmore\n---\n");
}

TEST(Card, SaysAllMistakesWithTheirLines) {
  EXPECT_EQ(Mistakes("name: n\nsummary: s\n"), "");
  const std::string found = Mistakes("nmae: n\nsummary: s\nsummary: t\nflops:\nno colon\n");
  EXPECT_NE(found.find("README.md:2: error: there is no field \"nmae\"; did you mean \"name\"?"), std::string::npos)
      << found;
  EXPECT_NE(found.find("README.md:4: error: \"summary\" is set twice"), std::string::npos) << found;
  EXPECT_NE(found.find("README.md:5: error: \"flops\" has no value"), std::string::npos) << found;
  EXPECT_NE(found.find("README.md:6: error: expected \"name: value\""), std::string::npos) << found;
  EXPECT_NE(found.find("\"name\" is missing"), std::string::npos) << found;
}

TEST(Card, ChecksWeights) {
  const std::string begin = "name: n\nsummary: s\n";
  EXPECT_NE(Mistakes(begin + "weights: w\n").find("belong together"), std::string::npos);
  EXPECT_NE(Mistakes(begin + "weights_url: https://x/y\n").find("without weights"), std::string::npos);
  EXPECT_NE(Mistakes(begin + "weights: ../w\nweights_sha256: " + kSum + "\n").find("is a path"), std::string::npos);
  EXPECT_NE(Mistakes(begin + "weights: w\nweights_sha256: abc\n").find("64 hexadecimal"), std::string::npos);
  EXPECT_NE(Mistakes(begin + "weights: w\nweights_sha256: " + kSum + "\nweights_url: ftp://x\n").find("expected https"),
            std::string::npos);
}

TEST(Card, WithoutFieldsIsAMistake) {
  EXPECT_THROW(ParseCard("# Title\n", "README.md"), UserError);
  EXPECT_THROW(ParseCard("---\nname: n\nsummary: s\n", "README.md"), UserError);
  EXPECT_THROW(ParseCard("", "README.md"), UserError);
}

TEST(Card, OfEachModelOfTheZooIsRight) {
  const std::vector<ZooModel> models = ListZoo(SourceFolder() + "/model_zoo");
  EXPECT_GE(models.size(), 9u);
  for (const ZooModel& model : models) {
    EXPECT_FALSE(model.card.parameters.empty()) << model.card.name;
    EXPECT_FALSE(model.card.input.empty()) << model.card.name;
    // Weights that come along are there.
    const bool comes_along = !model.card.weights.empty() && model.card.weights_url.empty();
    EXPECT_TRUE(model.has_weights || !comes_along) << model.folder;
  }
}

TEST(CardText, LeavesOutMarks) {
  ZooModel model;
  model.card = ParseCard(
      "---\nname: net\nsummary: s\n---\n# The title\n\n| | |\n|---|---|\n| source | see [here](http://x) |\n\n"
      "some words\nthat go on\n\n    a command\n",
      "README.md");
  model.folder = "zoo/net";
  EXPECT_EQ(CardText(model, 40),
            "name            net\n"
            "summary         s\n"
            "weights         none\n"
            "folder          zoo/net\n"
            "The title\n"
            "\n"
            "source          see here\n"
            "\n"
            "some words that go on\n"
            "\n"
            "    a command\n");
}

}  // namespace
}  // namespace crema
