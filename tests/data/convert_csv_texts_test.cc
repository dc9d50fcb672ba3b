// Tables of texts, whose words become numbers.
#include <gtest/gtest.h>

#include "data/convert/convert_csv.h"
#include "data/convert_testing.h"

namespace crema {
namespace {

using testing::DatumOf;
using testing::ExpectThrows;
using testing::ReadFile;
using testing::SilentProgress;
using testing::WriteFile;

class ConvertTextsTest : public ::testing::Test {
 protected:
  ConvertTextsTest() {
    how_.form.file = folder_ / "t.csv";
    how_.form.text_column = "text";
    how_.form.label_column = "label";
    how_.text = {.vocabulary = folder_ / "words.txt", .steps = 4};
  }

  void Convert(const std::string& table) {
    WriteFile(how_.form.file, table);
    SilentProgress progress;
    ConvertCsv(how_, {.database = folder_ / "db", .replace = true}, &progress.line);
    said_ = progress.text;
  }
  void Expect(const std::string& table, const std::vector<std::string>& parts) {
    ExpectThrows<UserError>([&] { Convert(table); }, parts);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "db"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "words.txt"));
  }
  std::vector<int> Row(uint64_t i) {
    const Datum datum = DatumOf(*OpenRecordSource(folder_ / "db"), i);
    EXPECT_EQ(datum.channels(), static_cast<int>(how_.text.steps));
    if (datum.data().empty()) return {datum.float_data().begin(), datum.float_data().end()};
    const std::string& data = datum.data();
    return {data.begin(), data.end()};
  }
  void ExpectSaid(const std::string& text) { EXPECT_NE(said_.find(text), std::string::npos) << said_; }

  TemporaryFolder folder_;
  CsvConversion how_;
  std::string said_;
};

using Numbers = std::vector<int>;

TEST_F(ConvertTextsTest, WordsAreNumberedByHowOftenTheyOccur) {
  Convert("id,text,label\n7,\"So good, so so\",good\n8,\"bad,\nso bad\",bad\n9,good,good\n");
  EXPECT_EQ(ReadFile(folder_ / "words.txt"), "<pad>\n<unk>\nso\n,\nbad\ngood\n");
  EXPECT_EQ(Row(0), (Numbers{5, 3, 2, 2}));  // the first of five is left out
  EXPECT_EQ(Row(1), (Numbers{4, 3, 2, 4}));
  EXPECT_EQ(Row(2), (Numbers{0, 0, 0, 5}));
  EXPECT_EQ(DatumOf(*OpenRecordSource(folder_ / "db"), 1).label(), 0);
  EXPECT_EQ(ReadFile(folder_ / "db_labels.txt"), "bad\ngood\n");
  ExpectSaid("words.txt: 6 numbers (input_dim); 0 of 10 words are none of them");
  ExpectSaid("1 of 3 texts have more than 4 words, of which the last ones are read; the longest has 5");
  ExpectSaid("4x1x1 bytes a record");
}

TEST_F(ConvertTextsTest, RareWordsAreUnknown) {
  how_.text.most_frequent = 3;
  how_.floats = true;
  Convert("text,label\nso bad so,1\n,0\n");
  EXPECT_EQ(ReadFile(folder_ / "words.txt"), "<pad>\n<unk>\nso\n");
  EXPECT_EQ(Row(0), (Numbers{0, 2, 1, 2}));
  EXPECT_EQ(Row(1), (Numbers{0, 0, 0, 0}));
  ExpectSaid("1 of 3 words are none of them and become <unk>");
  ExpectSaid("warning: 1 of 2 texts have no words");
}

TEST_F(ConvertTextsTest, MoreThanBytesHoldAreFloats) {
  std::string table = "text,label\n";
  for (int i = 0; i < 300; ++i) table += "w" + std::to_string(1000 + i) + ",0\n";
  Convert(table);
  EXPECT_EQ(Row(299), (Numbers{0, 0, 0, 301}));
}

TEST_F(ConvertTextsTest, NewTextsAreNumberedAlike) {
  Convert("text,label\nso good,1\nso bad,0\n");
  how_.form.labelled = false;
  how_.form.label_column.clear();
  Convert("text\nbad new thing\n");
  EXPECT_EQ(ReadFile(folder_ / "words.txt"), "<pad>\n<unk>\nso\nbad\ngood\n");
  EXPECT_EQ(Row(0), (Numbers{0, 3, 1, 1}));
  EXPECT_EQ(DatumOf(*OpenRecordSource(folder_ / "db"), 0).label(), -1);
  ExpectSaid("warning: more than half of the words are not in the vocabulary");
}

TEST_F(ConvertTextsTest, ColumnsMayBeNumbers) {
  how_.form.text_column = "1";
  how_.form.label_column = "0";
  Expect("1,so good\n0,bad\n", {"t.csv:1:1", "--header=yes or --header=no"});
  how_.form.header = CsvForm::Header::kNo;
  Convert("1,so good\n0,bad\n");
  EXPECT_EQ(Row(1), (Numbers{0, 0, 0, 2}));
}

TEST_F(ConvertTextsTest, MistakesAreToldWithTheirPlace) {
  Expect("text,label\nfine,0\n\xff\xfe,1\n", {"t.csv:3:1", "the text is no UTF-8"});
  how_.form.label_column = "text";
  Expect("text,label\nfine,0\n", {"--text_column names \"text\", which holds the labels"});
  how_.form.label_column = "label";
  how_.form.skip_columns = {"text"};
  Expect("text,label\nfine,0\n", {"which --skip_columns leaves out"});
  how_.form.skip_columns.clear();
  how_.form.text_column = "texts";
  Expect("text,label\nfine,0\n", {"--text_column=texts: there is no such column", "did you mean \"text\"?"});
}

TEST_F(ConvertTextsTest, VocabulariesOfOtherKindsAreRefused) {
  WriteFile(folder_ / "words.txt", "<unk>\nso\n");
  ExpectThrows<UserError>([&] { Convert("text,label\nso,1\n"); }, {"words.txt:1", "does not begin with <pad>"});
}

}  // namespace
}  // namespace crema
