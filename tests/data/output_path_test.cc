// What is read is not written over, --force or not.
#include "base/output_path.h"

#include <gtest/gtest.h>

#include "data/convert/convert_csv.h"
#include "data/convert/convert_images.h"
#include "data/convert/convert_mnist.h"
#include "data/convert_testing.h"
#include "data/databases/export_database.h"
#include "data/files/image_folder.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::SilentProgress;
using testing::WriteFile;

namespace fs = std::filesystem;

TEST(OutputPath, IsNoneOfTheInputsAndInNone) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "db/sub");
  WriteFile(folder / "list.txt", "");
  fs::create_directory_symlink(folder / "db", folder / "link");
  fs::create_symlink(folder / "list.txt", folder / "other.txt");
  const std::vector<std::string> inputs = {folder / "db", "", folder / "list.txt"};
  for (const char* output : {"db", "db/", "db/.", "link", "db/../list.txt", "list.txt", "other.txt"}) {
    ExpectThrows<UserError>([&] { RefuseOutputInInputs(folder / output, inputs); }, {output, "is what is read"});
  }
  for (const char* output : {"db/data.mdb", "link/data.mdb", "db/sub/a", "./db//a/b"}) {
    ExpectThrows<UserError>([&] { RefuseOutputInInputs(folder / output, inputs); },
                            {output, "lies in \"" + folder / "db" + "\", which is read"});
  }
  ExpectThrows<UserError>([&] { RefuseOutputInInputs(folder / "db/a", {folder / "link"}); }, {"lies in"});
  for (const char* output : {"db2", "d", "list.txt2", "absent/db", "db/../a", ""}) {
    RefuseOutputInInputs(folder / output, {folder / "db", folder / "list.txt"});
  }
  RefuseOutputInInputs("", inputs);
}

TEST(OutputPath, IsTriedBeforeTheWork) {
  const TemporaryFolder folder;
  WriteFile(folder / "there", "old");
  fs::create_symlink(folder / "nowhere", folder / "link");
  for (const char* taken : {"there", "link"}) {
    ExpectThrows<UserError>([&] { CheckOutputFile(folder / taken, false, {}); },
                            {std::string(taken) + ": error: exists already; choose another name, or pass --force"});
    CheckOutputFile(folder / taken, true, {});
  }
  ExpectThrows<UserError>([&] { CheckOutputFile(folder / "there", true, {folder / "there"}); }, {"is what is read"});
  ExpectThrows<EnvironmentError>([&] { CheckOutputFile(folder / "absent/new", false, {}); },
                                 {"cannot create", "does its folder exist?"});
  ExpectThrows<EnvironmentError>([&] { CheckOutputFile(folder.path(), true, {}); }, {"is a folder"});
  CheckOutputFile(folder / "new", false, {folder / "there"});
  EXPECT_EQ(testing::Listing(folder.path()), "link there");
  EXPECT_EQ(testing::ReadFile(folder / "there"), "old");
}

TEST(OutputPath, ConversionsKeepOutOfWhatTheyRead) {
  const TemporaryFolder folder;
  SilentProgress progress;
  testing::WritePictures(folder / "pets", 2);
  LeftOut left_out;
  const ImageList list = ListImageFolder(folder / "pets", &left_out);
  ExpectThrows<UserError>(
      [&] { ConvertImages(list, {}, {.database = folder / "pets/db", .inputs = {folder / "pets"}}, &progress.line); },
      {"pets/db", "lies in"});
  // A table whose name is that of the file with its own classes.
  WriteFile(folder / "birds_labels.txt", "kind,a\nowl,1\ntit,2\n");
  CsvConversion table;
  table.form.file = folder / "birds_labels.txt";
  table.form.label_column = "kind";
  ExpectThrows<UserError>(
      [&] {
        ConvertCsv(table, {.database = folder / "birds", .replace = true, .inputs = {folder / "birds_labels.txt"}},
                   &progress.line);
      },
      {"birds_labels.txt", "is what is read"});
  EXPECT_EQ(testing::ReadFile(folder / "birds_labels.txt"), "kind,a\nowl,1\ntit,2\n");
  EXPECT_EQ(testing::Listing(folder.path()), "birds_labels.txt pets");

  testing::WriteRecords(folder / "db", {"value"});
  DatabaseExport look;
  look.folder = folder / "db/look";
  ExpectThrows<UserError>([&] { ExportDatabase(*OpenRecordSource(folder / "db"), look, &progress.line); },
                          {"db/look", "lies in"});
  EXPECT_EQ(testing::Listing(folder / "db").find("look"), std::string::npos);
}

}  // namespace
}  // namespace crema
