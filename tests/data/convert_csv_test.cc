#include "data/convert/convert_csv.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "data/convert_testing.h"

namespace crema {
namespace {

using testing::DatumOf;
using testing::ExpectThrows;
using testing::SilentProgress;
using testing::WriteFile;

class ConvertCsvTest : public ::testing::Test {
 protected:
  int64_t Convert(const std::string& text, CsvConversion how, DatasetTarget target = {}) {
    WriteFile(folder_ / "t.csv", text);
    how.form.file = folder_ / "t.csv";
    target.database = folder_ / "db";
    target.replace = true;
    SilentProgress progress;
    const int64_t rows = ConvertCsv(how, target, &progress.line);
    said_ = progress.text;
    return rows;
  }
  void ExpectSaid(const std::string& text) { EXPECT_NE(said_.find(text), std::string::npos) << said_; }
  void Expect(const std::string& text, const CsvConversion& how, const std::vector<std::string>& parts) {
    std::filesystem::remove_all(folder_ / "db");
    ExpectThrows<UserError>([&] { Convert(text, how); }, parts);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "db")) << text;
  }
  Datum Row(uint64_t i) { return DatumOf(*OpenRecordSource(folder_ / "db"), i); }

  TemporaryFolder folder_;
  std::string said_;
};

TEST_F(ConvertCsvTest, WholeNumbersBecomeBytes) {
  EXPECT_EQ(Convert("0, 255 ,3\r\n\n+7,8,0", {}), 2);
  EXPECT_EQ(Row(0).data(), std::string("\0\xff", 2));
  EXPECT_EQ(Row(0).label(), 3);
  EXPECT_EQ(Row(1).data(), "\7\10");
  EXPECT_EQ(Row(1).channels(), 2);
  EXPECT_EQ(Row(1).height(), 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "db_labels.txt"));
  CsvConversion how;
  how.floats = true;
  how.shape = {1, 1, 2};
  Convert("0,255,3\n", how);
  EXPECT_EQ(Row(0).float_data(1), 255);
  EXPECT_EQ(Row(0).channels(), 1);
  EXPECT_EQ(Row(0).width(), 2);
}

TEST_F(ConvertCsvTest, OneOtherValueMakesAllFloats) {
  for (const char* value : {"1.5", "-1", "256", "1e-3"}) {
    Convert("1,2,0\n1," + std::string(value) + ",0\n", {});
    EXPECT_EQ(Row(0).float_data_size(), 2) << value;
    EXPECT_EQ(Row(1).float_data(1), std::stof(value));
    EXPECT_TRUE(Row(0).data().empty());
  }
}

TEST_F(ConvertCsvTest, HeadersAndNames) {
  CsvConversion how;
  how.form.label_column = "kind";
  Convert("\xef\xbb\xbfkind,a,\"the \"\"b\"\"\"\n\"tit, great\",1,2\nowl,3,4\n\"owl\",5,6\n", how);
  EXPECT_EQ(testing::ReadFile(folder_ / "db_labels.txt"), "owl\ntit, great\n");
  EXPECT_EQ(Row(0).label(), 1);
  EXPECT_EQ(Row(2).label(), 0);
  EXPECT_EQ(Row(2).data(), "\5\6");
  how.form.label_column = "0";
  EXPECT_EQ(Convert("2,10\n3,11\n", how), 2);
  EXPECT_EQ(Row(1).label(), 3);
  how.form.header = CsvForm::Header::kYes;
  EXPECT_EQ(Convert("2,10\n3,11\n", how), 1);
  std::filesystem::remove(folder_ / "db_labels.txt");
  EXPECT_EQ(Convert("1,cat\n2,dog\n", {}), 2);  // a name in the label's column makes no header
  std::filesystem::remove(folder_ / "db_labels.txt");
  EXPECT_EQ(Convert("0,1,2,label\n5,6,7,0\n8,9,10,10\n1,2,3,2\n", {}), 3) << "unless all others are numbers";
  EXPECT_EQ(Row(1).label(), 10);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "db_labels.txt"));
}

TEST_F(ConvertCsvTest, BlanksWithinQuotesAreNoPartOfAValue) {
  Convert("1,\" 2\"\n\"3 \",2\n\"\t4\", \"2 \" \n", {});
  for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(Row(i).label(), 2) << i;
  EXPECT_EQ(Row(2).data(), "\4");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "db_labels.txt"));
  Convert("1,\"a b \"\n2,a b\n", {});
  EXPECT_EQ(testing::ReadFile(folder_ / "db_labels.txt"), "a b\n");
}

TEST_F(ConvertCsvTest, SeveralLabels) {
  CsvConversion how;
  how.form.label_columns = {"price", "0"};
  const std::string table = "n,area,price,rooms\n0.5,100,-3e2,4\n1,255,2,0\n";
  EXPECT_EQ(Convert(table, how), 2);
  EXPECT_FALSE(Row(0).has_label());
  EXPECT_EQ(Row(0).data(), "\x64\4");  // labels do not make floats of the features
  const auto labels = [&](uint64_t i) {
    const Datum datum = Row(i);
    return std::vector<float>(datum.labels().begin(), datum.labels().end());
  };
  EXPECT_EQ(labels(0), (std::vector<float>{-300, 0.5}));
  EXPECT_EQ(labels(1), (std::vector<float>{2, 1}));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "db_labels.txt"));
  how.form.label_columns = {"1"};
  EXPECT_EQ(Convert("1,2.5\n3,4\n", how), 2);
  EXPECT_EQ(labels(0), (std::vector<float>{2.5}));
  Expect("5,x\n3,4\n1,y\n", how, {"t.csv:3:3", "\"y\"", "finite number"});  // its first row is a header
  how.form.label_columns = {"0", "2"};
  Expect("1,2\n3,4\n", how, {"--label_columns=2", "from 0 to 1"});
  how.form.label_columns = {"0", "0"};
  Expect("1,2\n3,4\n", how, {"column 0 twice"});
  how.form.label_columns = {"0", "1"};
  Expect("1,2\n3,4\n", how, {"leave one at least"});
}

// With it all numbers would be names, whose order is another.
TEST_F(ConvertCsvTest, AStrayWordAmongNumbersIsRefused) {
  std::string table;
  for (int i = 0; i < 13; ++i) table += "5," + std::to_string(i) + "\n";
  Expect(table + "5,?\n", {},
         {"t.csv:14:3", "the label \"?\" of column 1 is a name, but 13 of 14 rows have numbers", "--labels=FILE"});
  Expect("5,cat\n5,dog\n5,7\n", {}, {"t.csv:3:3", "the label \"7\"", "is a number, but 2 of 3 rows have names"});
  CsvConversion how;
  how.form.classes = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "?"};
  EXPECT_EQ(Convert(table + "5,?\n", how), 14);
  EXPECT_EQ(Row(2).label(), 2);
  EXPECT_EQ(Row(13).label(), 13);
}

TEST_F(ConvertCsvTest, ClassesAreNumberedAsAnotherTables) {
  CsvConversion how;
  how.form.classes = {"cat", "dog", "owl"};
  how.form.classes_file = "train_labels.txt";
  EXPECT_EQ(Convert("1,owl\n2,dog\n", how), 2);
  EXPECT_EQ(Row(0).label(), 2);
  EXPECT_EQ(Row(1).label(), 1);
  EXPECT_EQ(testing::ReadFile(folder_ / "db_labels.txt"), "cat\ndog\nowl\n");
  ExpectSaid("warning: there is no record of \"cat\"");
  Expect("1,owl\n2,dgo\n3,emu\n4,dgo\n", how,
         {"t.csv:2:3", "the label \"dgo\" of column 1 is none of the 3 names in \"train_labels.txt\"",
          "did you mean \"dog\"?", "t.csv:3:3", "\"emu\""});
}

TEST_F(ConvertCsvTest, RowsMayHaveNoLabels) {
  CsvConversion how;
  how.form.labelled = false;
  EXPECT_EQ(Convert("area,year\n70,200\n80,201\n", how), 2);
  EXPECT_EQ(Row(1).data(), "\x50\xc9");
  EXPECT_EQ(Row(1).label(), -1);
  EXPECT_EQ(Row(1).labels_size(), 0);
  ExpectSaid("2x1x1 bytes a record, no labels, the first row is the header");
  EXPECT_EQ(Convert("7\n8\n9\n", how), 3) << "one feature";
  Expect("area,none\n1,2\n", how, {"--label_column=none", "a column has this name"});
}

TEST_F(ConvertCsvTest, ColumnsAreLeftOut) {
  CsvConversion how;
  how.form.skip_columns = {"id", "note"};
  EXPECT_EQ(Convert("id,a,kind,note\nx1,1,owl,x\nx2,2,tit,\n", how), 2);
  EXPECT_EQ(Row(1).data(), "\2");
  EXPECT_EQ(Row(1).label(), 1);
  ExpectSaid("labels in \"kind\"");  // the last one that is left
  how.form.skip_columns = {"0"};
  std::filesystem::remove(folder_ / "db_labels.txt");
  EXPECT_EQ(Convert("x1,1,0\nx2,2,1\n", how), 2) << "a name in it makes no header";
  EXPECT_EQ(Row(0).data(), "\1");
  how.form.skip_columns = {"2"};
  std::filesystem::remove(folder_ / "db_labels.txt");
  EXPECT_EQ(Convert("1,owl,x1\n2,tit,x2\n", how), 2) << "nor a class in the last one that is left";
  EXPECT_EQ(Row(1).label(), 1);
  how.form.skip_columns = {"2", "0"};
  how.form.label_column = "2";
  Expect("1,2,3\n", how, {"--skip_columns names column 2, which holds labels"});
  how.form.label_column = "1";
  Expect("1,2,3\n", how, {"--skip_columns names all columns"});
  how.form.skip_columns = {"7"};
  Expect("1,2,3\n", how, {"--skip_columns=7: there is no such column"});
}

TEST_F(ConvertCsvTest, SeriesAreSplitInTheirOrder) {
  CsvConversion how;
  how.in_order = true;
  how.form.file = folder_ / "t.csv";
  WriteFile(folder_ / "t.csv", "0,0\n1,1\n2,0\n3,1\n4,0\n");
  SilentProgress progress;
  ConvertCsv(how, {.database = folder_ / "s", .parts = ParseSplit("train:0.6,val:0.4")}, &progress.line);
  const auto val = OpenRecordSource(folder_ / "s_val_lmdb");
  ASSERT_EQ(val->count(), 2u);
  EXPECT_EQ(DatumOf(*val, 0).data(), "\3");
  EXPECT_EQ(DatumOf(*val, 1).data(), "\4");
}

TEST_F(ConvertCsvTest, OneBadColumnHidesNoOther) {
  std::string table = "city,area,age,price\n";
  for (int i = 0; i < 50; ++i) table += std::string("Basel,") + (i % 2 == 0 ? "" : "7") + ",3,1\n";
  Expect(table + "Bern,7,old,1\n", {},
         {"t.csv:2:1: error: \"city\" holds no finite number in 51 of 51 rows, \"Basel\" in this one",
          "--skip_columns=city", "t.csv:2:7: error: \"area\" is empty in 25 of 51 rows", "--skip_columns=area",
          "t.csv:52:8: error: \"age\" holds \"old\"; expected a finite number"});
  std::string ragged = "1,2,0\n";
  for (int i = 0; i < 30; ++i) ragged += "1,2\n";
  Expect(ragged, {}, {"t.csv:21: error", "t.csv: note: and 10 more mistakes"});
  Expect("1;2;0\n3;4;1\n", {}, {"one column", "separated by \";\"? Write commas"});
  Expect("1\t2\t0\n", {}, {"one column", "separated by tabs"});
  Expect("1,5;2,5;0\n2,5;3,5;1\n", {}, {"separated by \";\""});
}

TEST_F(ConvertCsvTest, TheOrderOfClassesAndTheirCountsAreTold) {
  Convert("1,owl\n2,owl\n3,tit\n4,tit\n5,tit\n", {});
  ExpectSaid("class      rows\nowl           2\ntit           3\n");
  ExpectSaid("note: the records lie in the order of their classes");
  Convert("1,owl\n2,tit\n3,owl\n4,tit\n5,Tit\n", {});
  EXPECT_EQ(said_.find("note: "), std::string::npos) << said_;
  ExpectSaid("warning: the classes \"Tit\" and \"tit\" differ in case");
}

TEST_F(ConvertCsvTest, ReadsGzAndSplitsByClass) {
  gzFile file = gzopen((folder_ / "big.csv.gz").c_str(), "wb");
  for (int i = 0; i < 20000; ++i) gzprintf(file, "%d,%d.5,%d\n", i, -i, i % 4);
  gzclose(file);
  SilentProgress progress;
  CsvConversion how;
  how.form.file = folder_ / "big.csv.gz";
  ConvertCsv(how, {.database = folder_ / "big", .parts = ParseSplit("train:0.75,val:0.25")}, &progress.line);
  const auto val = OpenRecordSource(folder_ / "big_val_lmdb");
  ASSERT_EQ(val->count(), 5000u);
  int labels[4] = {};
  for (uint64_t i = 0; i < 5000; ++i) {
    const Datum datum = DatumOf(*val, i);
    ++labels[datum.label()];
    EXPECT_EQ(static_cast<int>(datum.float_data(0)) % 4, datum.label());
  }
  for (const int count : labels) EXPECT_EQ(count, 1250);
  const std::string whole = testing::ReadFile(folder_ / "big.csv.gz");
  WriteFile(folder_ / "cut.csv.gz", whole.substr(0, whole.size() / 2));
  how.form.file = folder_ / "cut.csv.gz";
  ExpectThrows<UserError>([&] { ConvertCsv(how, {.database = folder_ / "cut"}, &progress.line); }, {"cut.csv.gz"});
}

TEST_F(ConvertCsvTest, MistakesNameLineAndColumn) {
  CsvConversion by_name, shaped, twice;
  by_name.form.label_column = "spezies";
  twice.form.label_column = "a";
  shaped.shape = {3, 2, 2};
  Expect("", {}, {"holds no rows"});
  Expect("a,b\n", {}, {"but no rows"});
  Expect("1\n2\n", {}, {"one column"});
  Expect("1,2,0\n1,x,0\n", {}, {"t.csv:2:3", "\"x\""});
  Expect("1,,0\n3,4,1\n", {}, {"t.csv:1:3", "column 1 is empty"});  // no header
  Expect("1,1e400,0\n3,4,1\n", {}, {"t.csv:1:3", "\"1e400\""});
  Expect("1,nan,0\n3,4,1\n", {}, {"t.csv:1:3", "column 1 holds \"nan\""});
  Expect("a,a,species\n1,2,0\n", twice, {"--label_column=a: several columns", "from 0 to 2"});
  Expect("a,b,c\n1,,0\n", {}, {"t.csv:2:3", "\"b\" is empty"});
  Expect("1,2,0\n1,2\n", {}, {"t.csv:2", "2 columns", "first has 3"});
  Expect("1,nan,0\n2,inf,0\n", {}, {"t.csv:"});
  Expect("1,2,0\n1,\"2,0\n", {}, {"t.csv:2:3", "not closed"});
  Expect("1,2,0\n1,\"2\"3,0\n", {}, {"t.csv:2:3", "comma"});
  Expect("1,2,0\n1,2,\n", {}, {"t.csv:2:5", "label is empty"});
  Expect("1,2,0\n1,2,-1\n", {}, {"t.csv:2:5", "\"-1\"", "no class"});
  Expect("1,2,0\n1,2,0.5\n1,2,-7\n1,2,0.5\n", {}, {"t.csv:2:5", "\"0.5\"", "no class"});
  Expect("1,2,nan\n1,2,0\n1,2,10\n", {}, {"t.csv:1:5", "\"nan\"", "no class"});
  Expect("1,2,0\n1,2,inf\n", {}, {"t.csv:2:5", "\"inf\"", "no class"});
  Expect("1,2,1.0\n1,2,0\n1,2,1\n", {}, {"t.csv:1:5", "\"1.0\"", "no class"});
  Expect("1,2,+1\n1,2,0\n", {}, {"t.csv:1:5", "\"+1\"", "no class"});
  Expect("1,2,a\r1,2,b\r", {}, {"t.csv:1:5", "carriage return", "line feeds"});
  Expect(std::string("1,2,a\n1,2,b\0c\n", 14), {}, {"t.csv:2:5", "zero"});
  Expect("1,2,a\n1,2,\"b\rc\"\n", {}, {"t.csv:2:5", "end of a line"});
  Expect("a,species\n1,0\n", by_name, {"spezies", "did you mean \"species\"?"});
  Expect("1,2,0\n", shaped, {"2 features", "3x2x2"});
}

}  // namespace
}  // namespace crema
