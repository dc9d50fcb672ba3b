#include "data/convert/convert_text.h"

#include <gtest/gtest.h>

#include "data/convert_testing.h"

namespace crema {
namespace {

using testing::DatumOf;
using testing::ExpectThrows;
using testing::ReadFile;
using testing::SilentProgress;
using testing::WriteFile;

class ConvertTextTest : public ::testing::Test {
 protected:
  TextConverted Convert(const std::string& text, TextConversion how, const std::string& split = "") {
    WriteFile(folder_ / "t.txt", text);
    how.file = folder_ / "t.txt";
    how.vocabulary = folder_ / "v.txt";
    const DatasetTarget target{.database = folder_ / "db", .parts = ParseSplit(split), .replace = true};
    SilentProgress progress;
    const TextConverted done = ConvertText(how, target, &progress.line);
    said_ = progress.text;
    return done;
  }

  // Row `row` of the records of a database: [record][stream].
  std::vector<std::vector<int>> Rows(const std::string& database, int row) {
    const auto source = OpenRecordSource(folder_ / database);
    std::vector<std::vector<int>> rows;
    for (uint64_t t = 0; t < source->count(); ++t) {
      const Datum datum = DatumOf(*source, t);
      EXPECT_EQ(datum.channels(), 3);
      EXPECT_EQ(datum.width(), 1);
      std::vector<int> values;
      for (int n = 0; n < datum.height(); ++n) {
        const int at = row * datum.height() + n;
        values.push_back(datum.data().empty() ? static_cast<int>(datum.float_data(at))
                                              : static_cast<uint8_t>(datum.data()[static_cast<size_t>(at)]));
      }
      rows.push_back(values);
    }
    return rows;
  }

  TemporaryFolder folder_;
  std::string said_;  // by the last conversion
};

TEST_F(ConvertTextTest, CutsCharactersIntoStreams) {
  TextConversion how;
  how.streams = 2;
  const TextConverted done = Convert("abcd efg\n", how);  // two streams of four: "abcd", " efg", each and its next
  EXPECT_EQ(done.units, 9);
  EXPECT_EQ(done.vocabulary, 9);
  EXPECT_EQ(ReadFile(folder_ / "v.txt"), "\\n\n\\s\na\nb\nc\nd\ne\nf\ng\n");
  using Table = std::vector<std::vector<int>>;
  EXPECT_EQ(Rows("db", 0), (Table{{0, 0}, {1, 1}, {1, 1}, {1, 1}}));
  EXPECT_EQ(Rows("db", 1), (Table{{2, 1}, {3, 6}, {4, 7}, {5, 8}}));
  EXPECT_EQ(Rows("db", 2), (Table{{3, 6}, {4, 7}, {5, 8}, {1, 0}}));
}

TEST_F(ConvertTextTest, PartsAreStretchesOfTheText) {
  TextConversion how;
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>('0' + i % 10);
  Convert(text, how, "train:0.7,val:0.3");
  const auto train = Rows("db_train_lmdb", 1), val = Rows("db_val_lmdb", 1);
  ASSERT_EQ(train.size(), 69u);
  ASSERT_EQ(val.size(), 29u);
  for (size_t t = 0; t < train.size(); ++t) EXPECT_EQ(train[t][0], static_cast<int>(t % 10));
  EXPECT_EQ(Rows("db_val_lmdb", 0)[0][0], 0);
}

TEST_F(ConvertTextTest, KeepsTheMostFrequentWords) {
  TextConversion how;
  how.unit = TextUnit::kWord;
  how.most_frequent = 4;
  const TextConverted done = Convert("the cat the dog\nthe  cat sat", how);
  EXPECT_EQ(ReadFile(folder_ / "v.txt"), "the\ncat\n<eos>\n<unk>\n");
  EXPECT_EQ(done.units, 8);
  EXPECT_EQ(done.unknown, 2);
  std::vector<int> words;
  for (const auto& row : Rows("db", 1)) words.push_back(row[0]);
  EXPECT_EQ(words, (std::vector<int>{0, 1, 0, 3, 2, 0, 1}));
  // A vocabulary that exists is read.
  EXPECT_EQ(Convert("dog cat cat", how).unknown, 1);
  EXPECT_EQ(Rows("db", 2), (std::vector<std::vector<int>>{{1}, {1}}));
}

TEST_F(ConvertTextTest, WarnsWhereMostUnitsAreUnknown) {
  WriteFile(folder_ / "v.txt", "a\n<unk>\nb\n");
  Convert("abcd", {});
  EXPECT_EQ(said_.find("warning"), std::string::npos) << said_;
  Convert("abcde", {});
  EXPECT_NE(said_.find("t.txt: warning: 3 of its 5 characters are not in the vocabulary"), std::string::npos) << said_;
  TextConversion words;
  words.unit = TextUnit::kWord;
  Convert("a cat b dog sat", words);
  EXPECT_NE(said_.find("3 of its 5 words"), std::string::npos) << said_;
  std::filesystem::remove(folder_ / "v.txt");
  words.most_frequent = 2;
  Convert("a cat b dog sat", words);
  EXPECT_EQ(said_.find("warning"), std::string::npos) << "--most_frequent asks for it: " << said_;
}

TEST_F(ConvertTextTest, LargeVocabulariesMakeFloats) {
  TextConversion how;
  how.unit = TextUnit::kWord;
  std::string text;
  for (int i = 0; i < 300; ++i) text += "w" + std::to_string(1000 + i) + " ";
  Convert(text, how);
  EXPECT_EQ(Rows("db", 1)[298][0], 298);
  EXPECT_TRUE(DatumOf(*OpenRecordSource(folder_ / "db"), 0).data().empty());
}

TEST_F(ConvertTextTest, CharactersAreThoseOfUtf8) {
  EXPECT_EQ(Convert("\xc3\xa4\xe2\x82\xac\xf0\x9f\x90\xb1\xc3\xa4", {}).units, 4);
  EXPECT_EQ(ReadFile(folder_ / "v.txt"), "\xc3\xa4\n\xe2\x82\xac\n\xf0\x9f\x90\xb1\n");
}

TEST_F(ConvertTextTest, AVocabularyComesWithItsDatabases) {
  Convert("abc", {});
  std::filesystem::remove(folder_ / "v.txt");
  WriteFile(folder_ / "t.txt", "def");
  // Before the database that is to be replaced is looked at last, something else lies in it.
  int calls = 0;
  ProgressLine progress("steps", {[](const std::string&) {}, [] { return 80; },
                                  [&] {
                                    if (calls++ > 0) WriteFile(folder_ / "db/mine", "");
                                    return 0.0;
                                  },
                                  false});
  ExpectThrows<UserError>(
      [&] {
        ConvertText({.file = folder_ / "t.txt", .vocabulary = folder_ / "v.txt"},
                    {.database = folder_ / "db", .replace = true}, &progress);
      },
      {"db", "not just an LMDB"});
  EXPECT_EQ(testing::Listing(folder_.path()), "db t.txt");
  // Nor is one kept where it stands in the way of its database.
  std::filesystem::remove(folder_ / "db/mine");
  ExpectThrows<EnvironmentError>(
      [&] {
        SilentProgress silent;
        ConvertText({.file = folder_ / "t.txt", .vocabulary = folder_ / "absent/v.txt"},
                    {.database = folder_ / "db", .replace = true}, &silent.line);
      },
      {"absent/v.txt"});
  EXPECT_TRUE(std::filesystem::exists(folder_ / "db/data.mdb"));
}

TEST_F(ConvertTextTest, MistakesAreUserErrorsAndWriteNothing) {
  const auto expect = [&](const std::string& text, const TextConversion& how, const std::vector<std::string>& parts) {
    ExpectThrows<UserError>([&] { Convert(text, how); }, parts);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "db"));
  };
  TextConversion many;
  many.streams = 5;
  expect("", {}, {"is empty"});
  expect("abcde", many, {"too short", "5 characters", "5 streams"});
  expect("ab\nc\xff", {}, {"t.txt:2:2", "UTF-8"});
  expect("ab\nc\xed\xa0\x80", {}, {"t.txt:2:2", "UTF-8"});  // a half of a pair of UTF-16
  EXPECT_FALSE(std::filesystem::exists(folder_ / "v.txt"));
  WriteFile(folder_ / "v.txt", "a\nb\n\\n\n");
  expect("ab\nbc", {}, {"t.txt:2:2", "\"c\"", "v.txt"});
  WriteFile(folder_ / "v.txt", "a\nb\na\n");
  expect("ab", {}, {"v.txt:3", "twice"});
  WriteFile(folder_ / "v.txt", "a\n\\x\n");
  expect("ab", {}, {"v.txt:2", "backslash"});
  TextConversion words;
  words.unit = TextUnit::kWord;
  WriteFile(folder_ / "v.txt", "a\n\\s\n");
  expect("a b", words, {"v.txt:2: error: \"\\s\"", "--unit=char"});
  WriteFile(folder_ / "v.txt", "a\n<unk>\nthe\n");
  expect("a the", {}, {"v.txt:3: error: \"the\" is not one character", "--unit=word"});
}

}  // namespace
}  // namespace crema
