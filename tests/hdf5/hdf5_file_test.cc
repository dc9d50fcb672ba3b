// Reading HDF5 files: OpenHdf5 and what libcrema_hdf5 does.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <thread>

#include "base/hdf5.h"
#include "data/data_testing.h"
#include "hdf5/hdf5_writer.h"

namespace crema {
namespace {

using testing::ExpectThrows;
using testing::Hdf5Dataset;
using testing::Ramp;
using testing::WriteHdf5;

class Hdf5FileTest : public testing::Hdf5Test {
 protected:
  std::string Write(const std::vector<Hdf5Dataset>& datasets, const std::vector<std::string>& groups = {}) const {
    WriteHdf5(folder_ / "x.h5", datasets, groups);
    return folder_ / "x.h5";
  }

  static std::vector<float> Values(const Hdf5File& file, const std::string& dataset, size_t count) {
    std::vector<float> values(count, -99);
    file.Read(dataset, values.data());
    return values;
  }
};

TEST_F(Hdf5FileTest, NumbersOfEveryTypeBecomeFloats) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto file = OpenHdf5(Write({{"float", {2, 2}, {1.5, -2, 1e30, 0}},
                                    {"double", {4}, {0.1, -1e-3, 1e300, -infinity}, Hdf5Dataset::kDouble},
                                    {"int8", {3}, {-128, 0, 127}, Hdf5Dataset::kInt8},
                                    {"int64", {2}, {-1e15, 16777217}, Hdf5Dataset::kInt64},
                                    {"uint8", {2, 1}, {0, 255}, Hdf5Dataset::kUint8},
                                    {"uint16", {}, {65535}, Hdf5Dataset::kUint16},
                                    {"bool", {3}, {1, 0, 1}, Hdf5Dataset::kBool},
                                    {"zipped", {100, 3}, Ramp(300), Hdf5Dataset::kDouble, 7}}));
  EXPECT_EQ(file->path(), folder_ / "x.h5");
  EXPECT_EQ(file->Extents("float"), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(file->Extents("uint16"), std::vector<int64_t>());
  EXPECT_EQ(Values(*file, "float", 4), (std::vector<float>{1.5f, -2, 1e30f, 0}));
  const float most = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Values(*file, "double", 4), (std::vector<float>{0.1f, -1e-3f, most, -most}));
  EXPECT_EQ(Values(*file, "int8", 3), (std::vector<float>{-128, 0, 127}));
  EXPECT_EQ(Values(*file, "int64", 2), (std::vector<float>{-1e15f, 16777216}));
  EXPECT_EQ(Values(*file, "uint8", 2), (std::vector<float>{0, 255}));
  EXPECT_EQ(Values(*file, "uint16", 1), (std::vector<float>{65535}));
  EXPECT_EQ(Values(*file, "bool", 3), (std::vector<float>{1, 0, 1}));
  const std::vector<double> ramp = Ramp(300);
  EXPECT_EQ(Values(*file, "zipped", 300), std::vector<float>(ramp.begin(), ramp.end()));
}

TEST_F(Hdf5FileTest, RowsAreReadAlone) {
  const auto file = OpenHdf5(Write({{"a", {5, 2, 3}, Ramp(30)}, {"b", {5}, Ramp(5, 100), Hdf5Dataset::kInt8, 2}}));
  std::vector<float> values(12, -1);
  file->ReadRows("a", 1, 3, values.data());
  for (int i = 0; i < 12; ++i) EXPECT_EQ(values[i], static_cast<float>(6 + i));
  file->ReadRows("b", 3, 5, values.data());
  EXPECT_EQ(values[0], 103);
  EXPECT_EQ(values[1], 104);
  EXPECT_EQ(values[2], 8);
  file->ReadRows("b", 5, 5, nullptr);
  ExpectThrows<UserError>([&] { file->ReadRows("a", 4, 6, values.data()); }, {"x.h5", "\"a\"", "rows 4 to 6"});
}

TEST_F(Hdf5FileTest, NamesAreListedInOrder) {
  const auto file =
      OpenHdf5(Write({{"b", {1}, {1}}, {"a", {1}, {1}}, {"deep/er/c", {1}, {1}}, {"deep/d", {1}, {3}}}, {"empty"}));
  const Hdf5File::Names top = file->List("/");
  EXPECT_EQ(top.datasets, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(top.groups, (std::vector<std::string>{"deep", "empty"}));
  const Hdf5File::Names deep = file->List("deep");
  EXPECT_EQ(deep.datasets, std::vector<std::string>{"d"});
  EXPECT_EQ(deep.groups, std::vector<std::string>{"er"});
  EXPECT_EQ(Values(*file, "deep/d", 1), std::vector<float>{3});
  EXPECT_TRUE(file->HasGroup("deep/er"));
  EXPECT_FALSE(file->HasGroup("deep/d"));
  EXPECT_FALSE(file->HasGroup("else"));
}

TEST_F(Hdf5FileTest, WhatIsMissingIsNamedWithWhatIsThere) {
  const auto file = OpenHdf5(Write({{"data", {1}, {1}},
                                    {"label", {1}, {1}},
                                    {"group/one", {1}, {1}},
                                    {"text", {1}, {0}, Hdf5Dataset::kText},
                                    {"record", {1}, {0}, Hdf5Dataset::kRecord}},
                                   {"empty"}));
  const auto expect = [&](const std::string& name, const std::vector<std::string>& parts) {
    SCOPED_TRACE(name);
    ExpectThrows<UserError>([&] { file->Extents(name); }, parts);
    float value = 0;
    ExpectThrows<UserError>([&] { file->Read(name, &value); }, parts);
  };
  expect("lable", {folder_ / "x.h5" + ": ", "has no dataset \"lable\"", "it has \"data\", \"label\"",
                   "did you mean \"label\"?"});
  expect("group/two", {"no dataset \"group/two\"", "its group \"group\" has \"group/one\""});
  expect("empty/two", {"no dataset \"empty/two\"", "has none"});
  expect("group", {"\"group\" is a group"});
  expect("text", {"dataset \"text\" holds text", "expected numbers"});
  expect("record", {"dataset \"record\" holds compound values"});
  ExpectThrows<UserError>([&] { file->List("nowhere"); }, {"x.h5", "\"nowhere\""});
}

TEST_F(Hdf5FileTest, WhatWasNeverWrittenIsNotRead) {
  const auto file = OpenHdf5(Write({{"none", {100}, {}},
                                    {"chunks", {100}, {}, Hdf5Dataset::kDouble, 10},
                                    {"whole", {100}, Ramp(100), Hdf5Dataset::kDouble, 10},
                                    {"empty", {0, 3}, {}}}));
  ExpectThrows<UserError>([&] { file->Extents("none"); }, {"x.h5", "dataset \"none\" was never written"});
  ExpectThrows<UserError>([&] { file->Extents("chunks"); }, {"dataset \"chunks\" was never written"});
  EXPECT_EQ(file->Extents("whole"), (std::vector<int64_t>{100}));
  EXPECT_EQ(file->Extents("empty"), (std::vector<int64_t>{0, 3}));
}

// The library would crash, or read for minutes.
TEST_F(Hdf5FileTest, NumbersThatCannotBeAreDamage) {
  const std::string path = Write({{"data", {3}, Ramp(3), Hdf5Dataset::kInt64}});
  const std::string whole = testing::ReadFile(path);
  // Size in bytes, offset and precision in bits of the integers.
  const std::string header("\x08\0\0\0\0\0\x40\0", 8);
  const size_t at = whole.find(header);
  ASSERT_NE(at, std::string::npos);
  const auto expect_damage = [&](size_t byte, char value) {
    std::string bent = whole;
    bent[at + byte] = value;
    testing::WriteFile(path, bent);
    std::string message;
    ExpectThrows<UserError>(
        [&] {
          try {
            OpenHdf5(path)->Extents("data");
          } catch (const UserError& error) {
            message = error.what();
            throw;
          }
        },
        {path});
    // HDF5 1.14 finds it itself and does not open such a dataset.
    EXPECT_TRUE(message.find("\"data\" holds numbers that cannot be") != std::string::npos ||
                message.find("\"data\" is a link that leads nowhere, or is damaged") != std::string::npos)
        << message;
  };
  expect_damage(6, 0);     // no precision
  expect_damage(6, 0x41);  // more than there is room for
  expect_damage(4, 1);     // the last bit lies outside
  expect_damage(3, 0x7f);  // 2 GB each
}

TEST_F(Hdf5FileTest, FilesThatAreNotWholeAreNamed) {
  const std::string path = Write({{"data", {500}, Ramp(500), Hdf5Dataset::kDouble, 100}});
  const std::string whole = testing::ReadFile(path);
  ExpectThrows<UserError>([&] { OpenHdf5(folder_ / "absent.h5"); }, {"absent.h5: ", "there is no such file"});
  ExpectThrows<UserError>([&] { OpenHdf5(folder_.path()); }, {folder_.path(), "is a folder"});
  ASSERT_EQ(mkfifo((folder_ / "pipe.h5").c_str(), 0600), 0);
  ExpectThrows<UserError>([&] { OpenHdf5(folder_ / "pipe.h5"); }, {"pipe.h5: ", "is a named pipe"});
  testing::WriteFile(path, "");
  ExpectThrows<UserError>([&] { OpenHdf5(path); }, {"is not an HDF5 file"});
  testing::WriteFile(path, "name: \"LeNet\" and some more text behind it, so that it is longer than a signature");
  ExpectThrows<UserError>([&] { OpenHdf5(path); }, {"is not an HDF5 file"});
  // Whatever it is cut to: an error that names the file, or all of its values.
  int refused = 0;
  const std::vector<double> ramp = Ramp(500);
  for (size_t bytes = 8; bytes < whole.size(); bytes += 37) {
    testing::WriteFile(path, whole.substr(0, bytes));
    try {
      EXPECT_EQ(Values(*OpenHdf5(path), "data", 500), std::vector<float>(ramp.begin(), ramp.end()));
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("x.h5"), std::string::npos) << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 5);
  testing::WriteFile(path, whole.substr(0, whole.size() - 100));
  ExpectThrows<UserError>([&] { OpenHdf5(path); }, {path, "cut short or damaged", "truncated", "in full?"});
  // A damaged chunk of compressed values.
  std::string bent = whole;
  const size_t chunk = bent.find("\x78\x9c");
  if (chunk == std::string::npos) GTEST_SKIP() << "no zlib stream where one was expected: not tried";
  bent[chunk + 10] = static_cast<char>(bent[chunk + 10] ^ 0x55);
  bent[chunk + 11] = static_cast<char>(bent[chunk + 11] ^ 0x55);
  testing::WriteFile(path, bent);
  std::vector<float> values(500);
  ExpectThrows<UserError>([&] { OpenHdf5(path)->Read("data", values.data()); }, {"\"data\" cannot be read", path});
}

TEST_F(Hdf5FileTest, FilesThatOthersWriteAreNotReadMeanwhile) {
  const std::string path = Write({{"a", {1}, {1}}});
  const int descriptor = open(path.c_str(), O_RDWR);
  ASSERT_EQ(flock(descriptor, LOCK_EX | LOCK_NB), 0);
  ExpectThrows<EnvironmentError>([&] { OpenHdf5(path); }, {path, "another program has it open for writing"});
  close(descriptor);
  EXPECT_EQ(Values(*OpenHdf5(path), "a", 1), std::vector<float>{1});
}

TEST_F(Hdf5FileTest, SeveralThreadsReadAtOnce) {
  const std::string path = Write({{"a", {200, 10}, Ramp(2000), Hdf5Dataset::kDouble, 20}});
  const auto shared = OpenHdf5(path);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t row = t; row < 200; row += 4) {
        std::vector<float> values(10);
        (row % 3 == 0 ? OpenHdf5(path) : nullptr);
        shared->ReadRows("a", row, row + 1, values.data());
        EXPECT_EQ(values[9], static_cast<float>(row * 10 + 9));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Hdf5FileTest, NothingIsPrinted) {
  const std::string path = Write({{"a", {1}, {1}}});
  ::testing::internal::CaptureStderr();
  EXPECT_THROW(OpenHdf5(path)->Extents("b"), UserError);
  testing::WriteFile(path, testing::ReadFile(path).substr(0, 60));
  EXPECT_THROW(OpenHdf5(path), UserError);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

// In processes of their own: this one has loaded the library.
TEST(Hdf5Library, WhatIsMissingIsSaid) {
  TemporaryFolder folder;
  testing::WriteFile(folder / "x.h5", "\x89HDF\r\n\x1a\n");
  testing::WriteFile(folder / "text.so", "no library");
  const auto expect = [&](const std::string& library, const std::vector<std::string>& parts) {
    SCOPED_TRACE(library);
    EXPECT_EXIT(
        {
          setenv("CREMA_HDF5_LIBRARY", library.c_str(), 1);
          ExpectThrows<EnvironmentError>([&] { OpenHdf5(folder / "x.h5"); }, parts);
          // And again: a failure is not remembered.
          ExpectThrows<EnvironmentError>([&] { OpenHdf5(folder / "x.h5"); }, parts);
          std::exit(::testing::Test::HasFailure() ? 1 : 0);
        },
        ::testing::ExitedWithCode(0), "");
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  expect(folder / "absent.so", {folder / "x.h5", "built without HDF5", folder / "absent.so", "libhdf5-dev"});
  expect(folder / "text.so", {folder / "x.h5", "does not load", folder / "text.so"});
  expect("libz.so.1", {folder / "x.h5", "another version of crema"});
}

}  // namespace
}  // namespace crema
