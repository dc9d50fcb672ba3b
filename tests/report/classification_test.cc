// Confusion matrices and what is computed from them, against values worked out by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "crema/error.h"
#include "report/classification_report.h"
#include "report/classification_writers.h"
#include "report/csv.h"
#include "report/json_reader.h"

namespace crema {
namespace {

using testing_json::Json;
using testing_json::ParseJson;

void AddOneHot(ClassificationReport* report, int label, int predicted, int times) {
  std::vector<float> scores(report->class_count(), 0.0f);
  scores[predicted] = 1;
  for (int i = 0; i < times; ++i) report->Add(label, scores);
}

//          taken for  cat dog bird
//   cat (10)            7   2   1
//   dog (5)             3   2   0
//   bird (0)            0   0   0
ClassificationReport Animals() {
  ClassificationReport report({"cat", "dog", "bird"}, 2);
  AddOneHot(&report, 0, 0, 7);
  AddOneHot(&report, 0, 1, 2);
  AddOneHot(&report, 0, 2, 1);
  AddOneHot(&report, 1, 0, 3);
  AddOneHot(&report, 1, 1, 2);
  return report;
}

TEST(ClassificationReport, CountsClassesAndMistakes) {
  const ClassificationReport report = Animals();
  EXPECT_EQ(report.items(), 15);
  EXPECT_EQ(report.correct(), 9);
  EXPECT_DOUBLE_EQ(report.accuracy(), 0.6);
  EXPECT_EQ(report.count(1, 0), 3);
  const ClassScores cat = report.scores(0), dog = report.scores(1), bird = report.scores(2);
  EXPECT_DOUBLE_EQ(*cat.precision, 0.7);
  EXPECT_DOUBLE_EQ(*cat.recall, 0.7);
  EXPECT_DOUBLE_EQ(*cat.f1, 0.7);
  EXPECT_DOUBLE_EQ(*dog.precision, 0.5);
  EXPECT_DOUBLE_EQ(*dog.recall, 0.4);
  EXPECT_DOUBLE_EQ(*dog.f1, 4.0 / 9);  // 2 * 2 / (4 + 5)
  EXPECT_EQ(dog.support, 5);
  EXPECT_EQ(dog.predicted, 4);
  EXPECT_DOUBLE_EQ(*bird.precision, 0);
  EXPECT_FALSE(bird.recall);
  EXPECT_FALSE(bird.f1);
  // Of the two classes that have items.
  const ClassScores means = report.means();
  EXPECT_DOUBLE_EQ(*means.precision, 0.6);
  EXPECT_DOUBLE_EQ(*means.recall, 0.55);
  EXPECT_DOUBLE_EQ(*means.f1, (0.7 + 4.0 / 9) / 2);
  EXPECT_EQ(means.support, 15);

  const std::vector<Confusion> confusions = report.confusions(2);
  ASSERT_EQ(confusions.size(), 2u);
  EXPECT_EQ(confusions[0].label, 1);
  EXPECT_EQ(confusions[0].predicted, 0);
  EXPECT_EQ(confusions[0].count, 3);
  EXPECT_EQ(confusions[1].label, 0);
  EXPECT_EQ(confusions[1].predicted, 1);
  EXPECT_EQ(report.confusions(10).size(), 3u);
}

TEST(ClassificationReport, RanksEqualScoresInTheOrderOfTheClasses) {
  ClassificationReport report({"a", "b", "c", "d"}, 2);
  EXPECT_TRUE(report.has_top_k());
  report.Add(2, std::vector<float>{0.5f, 0.1f, 0.4f, 0.0f});  // second
  report.Add(1, std::vector<float>{0.3f, 0.3f, 0.3f, 0.1f});  // second: behind a
  report.Add(2, std::vector<float>{0.3f, 0.3f, 0.3f, 0.1f});  // third
  report.Add(3, std::vector<float>{-4, -3, -2, -1});          // first
  EXPECT_DOUBLE_EQ(report.accuracy(), 0.25);
  EXPECT_DOUBLE_EQ(report.top_k_accuracy(), 0.75);
  EXPECT_EQ(report.count(1, 0), 1);
}

TEST(ClassificationReport, PrecisionOfWhatIsNeverPredictedCountsAsZero) {
  ClassificationReport report({"a", "b"});
  EXPECT_FALSE(report.has_top_k());
  AddOneHot(&report, 0, 0, 1);
  AddOneHot(&report, 1, 0, 1);
  EXPECT_FALSE(report.scores(1).precision);
  EXPECT_DOUBLE_EQ(*report.scores(1).f1, 0);
  EXPECT_DOUBLE_EQ(*report.means().precision, 0.25);
  EXPECT_FALSE(ClassificationReport({"a"}).means().recall);  // no items at all
}

TEST(ClassificationReport, RefusesWhatIsNoClassAndNoScore) {
  ClassificationReport report({"a", "b"});
  const std::vector<float> scores = {0, 1};
  EXPECT_THROW(report.Add(2, scores), UserError);
  EXPECT_THROW(report.Add(-1, scores), UserError);
  EXPECT_THROW(report.Add(0, std::vector<float>{0, std::nanf("")}), UserError);
  EXPECT_EQ(report.items(), 0);
}

TEST(HighestScores, AreStableAndPutNumbersFirst) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(HighestScores(std::vector<float>{1, 3, 2, 3}, 3), (std::vector<int>{1, 3, 2}));
  EXPECT_EQ(HighestScores(std::vector<float>{nan, -1, nan}, 9), (std::vector<int>{1, 0, 2}));
}

TEST(ClassificationText, ShowsTableMatrixAndMistakes) {
  EXPECT_EQ(ClassificationText(Animals()),
            "accuracy 60.00% (9 of 15)\n"
            "top-2 accuracy 100.00%\n"
            "\n"
            "class            precision  recall      F1  items\n"
            "-------------------------------------------------\n"
            "cat                 0.7000  0.7000  0.7000     10\n"
            "dog                 0.5000  0.4000  0.4444      5\n"
            "bird                0.0000       -       -      0\n"
            "-------------------------------------------------\n"
            "mean of classes     0.6000  0.5500  0.5722     15\n"
            "\n"
            "confusion matrix (rows: what the items are; columns: what they were taken for)\n"
            "   class  0  1  2\n"
            "-----------------\n"
            "0  cat    7  2  1\n"
            "1  dog    3  2  .\n"
            "2  bird   .  .  .\n"
            "\n"
            "most frequent mistakes\n"
            "class  taken for  items  of the class\n"
            "-------------------------------------\n"
            "dog    cat            3        60.00%\n"
            "cat    dog            2        20.00%\n"
            "cat    bird           1        10.00%\n");
}

TEST(ClassificationText, LeavesOutAMatrixThatIsTooWide) {
  EXPECT_EQ(ClassificationText(Animals(), 16).find("confusion matrix"), std::string::npos);
  EXPECT_NE(ClassificationText(Animals(), 17).find("confusion matrix"), std::string::npos);
  ClassificationReport many(NumberedClasses(100));
  AddOneHot(&many, 99, 0, 1);
  const std::string text = ClassificationText(many, 1000);
  EXPECT_EQ(text.find("confusion matrix"), std::string::npos);
  EXPECT_NE(text.find("most frequent mistakes"), std::string::npos);
}

TEST(ClassificationFiles, HoldTheMatrix) {
  ClassificationReport report({"a,b", "say \"x\""});
  AddOneHot(&report, 0, 1, 4);
  EXPECT_EQ(ConfusionCsv(report), "class,\"a,b\",\"say \"\"x\"\"\"\n\"a,b\",0,4\n\"say \"\"x\"\"\",0,0\n");
  JsonWriter writer;
  WriteClassificationJson(report, &writer);
  const Json json = ParseJson(writer.text());
  EXPECT_EQ(json["items"].number, 4);
  EXPECT_EQ(json["classes"].items[1]["name"].string, "say \"x\"");
  EXPECT_EQ(json["classes"].items[1]["recall"].kind, Json::Kind::kNull);
  EXPECT_EQ(json["confusion"].items[0].Integers(), (std::vector<long long>{0, 4}));
  EXPECT_EQ(json.Find("top_k_accuracy"), nullptr);
}

// Each tag is closed by its own.
void ExpectWellFormed(const std::string& xml) {
  std::vector<std::string> open;
  for (size_t at = 0; (at = xml.find('<', at)) != std::string::npos; ++at) {
    const size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.starts_with("?") || tag.ends_with("/")) continue;
    if (tag.starts_with("/")) {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(tag.substr(1), open.back());
      open.pop_back();
    } else {
      open.push_back(tag.substr(0, tag.find(' ')));
    }
  }
  EXPECT_TRUE(open.empty());
}

TEST(ConfusionSvg, EscapesNamesAndShowsCounts) {
  ClassificationReport report({"<a> & \"b\"", "bad\xFF\x01name"});
  AddOneHot(&report, 0, 1, 1234);
  const std::string svg = ConfusionSvg(report, "x < y");
  ExpectWellFormed(svg);
  EXPECT_NE(svg.find("x &lt; y"), std::string::npos);
  EXPECT_NE(svg.find("&lt;a&gt; &amp; &quot;b&quot;"), std::string::npos);
  EXPECT_NE(svg.find("bad\xEF\xBF\xBD\xEF\xBF\xBDname"), std::string::npos);
  EXPECT_NE(svg.find(">1234</text>"), std::string::npos);
  EXPECT_NE(svg.find("fill=\"#08306b\""), std::string::npos);  // all of the row
  ClassificationReport many(NumberedClasses(31));
  AddOneHot(&many, 3, 4, 77);
  const std::string large = ConfusionSvg(many, "many");
  ExpectWellFormed(large);
  EXPECT_EQ(large.find(">77</text>"), std::string::npos);
  EXPECT_NE(large.find("3 taken for 4: 77 of 77"), std::string::npos);
}

TEST(Utf8, CountsAndShortensByCharacters) {
  EXPECT_EQ(Utf8Characters("na\xC3\xAFve\xFF"), 6u);
  EXPECT_EQ(Utf8Shortened("na\xC3\xAFve", 5), "na\xC3\xAFve");
  EXPECT_EQ(Utf8Shortened("na\xC3\xAFve", 4), "na\xC3\xAF~");
}

}  // namespace
}  // namespace crema
