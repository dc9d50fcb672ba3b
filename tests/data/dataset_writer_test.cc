#include "data/databases/dataset_writer.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "data/convert_testing.h"

namespace crema {
namespace {

using testing::Convert;
using testing::ExpectThrows;
using testing::FolderList;
using testing::SilentProgress;
using testing::WriteFile;

TEST(DatasetWriter, TellsOfNamesThatStayFromBefore) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 2);
  DatasetTarget target{.database = folder / "pets_lmdb"};
  Convert(FolderList(folder / "set"), {}, target);
  WriteFile(folder / "list.txt", "cat/0.jpg 1\ndog/0.png 0\n");
  target.replace = true;
  SilentProgress progress;
  ConvertImages(ReadImageList(folder / "list.txt", folder / "set"), {}, target, &progress.line);
  EXPECT_NE(progress.text.find("pets_labels.txt: warning: stays from before"), std::string::npos) << progress.text;
}

TEST(DatasetWriter, MentionsWhatKilledOnesLeft) {
  const TemporaryFolder folder;
  for (const std::string left : {"db_labels.txt.tmp.17", "db_train_lmdb.tmp.18", "db_labels.txt.tmp.old"}) {
    WriteFile(folder / left, "");
  }
  DatasetTarget target{folder / "db"};
  target.parts = {{"train", 1}, {"val", 1}};
  ::testing::internal::CaptureStderr();
  const DatasetWriter writer(target, {"cat", "dog"});
  const std::string told = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("db_labels.txt.tmp.17 is of a conversion that still runs or was killed"), std::string::npos)
      << told;
  EXPECT_NE(told.find("db_train_lmdb.tmp.18"), std::string::npos) << told;
  EXPECT_EQ(told.find("tmp.old"), std::string::npos) << told;
}

// Whenever it is killed, no database lies beside the names of another's classes.
TEST(DatasetWriter, WhereClassesChangeTheDatabaseGoesFirst) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 2);
  DatasetTarget target{.database = folder / "pets_lmdb", .replace = true};
  Convert(FolderList(folder / "set"), {}, target);
  std::filesystem::rename(folder / "set/cat", folder / "set/ant");
  const int watch = inotify_init1(IN_NONBLOCK);
  ASSERT_GE(watch, 0);
  const auto events = [watch] {
    std::string names;
    alignas(inotify_event) char buffer[1 << 14];
    const ssize_t size = read(watch, buffer, sizeof buffer);
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      const std::string name = event->name;
      if (name == "pets_lmdb" || name == "pets_labels.txt") {
        names += ((event->mask & IN_MOVED_TO) != 0 ? " +" : " -") + name;
      }
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return names;
  };
  inotify_add_watch(watch, folder.path().c_str(), IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE);
  Convert(FolderList(folder / "set"), {}, target);
  EXPECT_EQ(events(), " -pets_lmdb +pets_labels.txt +pets_lmdb");
  Convert(FolderList(folder / "set"), {}, target);  // with the same classes
  EXPECT_EQ(events().find(" +pets_labels.txt"), 0u);
  close(watch);
}

TEST(DatasetWriter, SaysWhichPartsExistAndReplacesAll) {
  TemporaryFolder folder;
  testing::WritePictures(folder / "set", 4);
  const ImageList list = FolderList(folder / "set");
  DatasetTarget target{.database = folder / "pets_lmdb", .parts = ParseSplit("train:0.5,val:0.5")};
  Convert(list, {}, target);
  EXPECT_EQ(testing::Listing(folder.path()), "pets_labels.txt pets_train_lmdb pets_val_lmdb set");
  ExpectThrows<UserError>([&] { Convert(list, {}, target); }, {"pets_train_lmdb", "exists already", "--force"});
  std::filesystem::remove_all(folder / "pets_val_lmdb");
  ExpectThrows<UserError>([&] { Convert(list, {}, target); },
                          {"pets_train_lmdb\" exists already", "pets_val_lmdb\" does not", "--force"});
  target.replace = true;
  Convert(list, {}, target);
  Convert(list, {}, target);
  EXPECT_EQ(testing::Listing(folder.path()), "pets_labels.txt pets_train_lmdb pets_val_lmdb set");
  target.replace = false;
  target.database = folder / "new";
  WriteFile(folder / "new_labels.txt", "cat\ncow\n");
  ExpectThrows<UserError>([&] { Convert(list, {}, target); }, {"new_labels.txt", "other classes"});
  WriteFile(folder / "new_labels.txt", "cat\ndog\n");
  Convert(list, {}, target);
}

}  // namespace
}  // namespace crema
