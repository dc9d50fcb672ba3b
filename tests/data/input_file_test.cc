// What is no file is told at once, and pipes are read where that is of use.
#include "base/input_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "crema/error.h"
#include "crema/files.h"
#include "data/databases/mean_file.h"
#include "data/files/hdf5_files.h"
#include "data/files/idx_file.h"
#include "data/files/image_list.h"
#include "data/files/label_map.h"
#include "data/files/text_file.h"
#include "data/files/window_file.h"
#include "errors.h"
#include "image/codec.h"
#include "temporary_folder.h"

namespace crema {
namespace {

TEST(InputFile, DevicesAreRefusedBeforeTheyAreRead) {
  const std::string zero = "/dev/zero";
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { ReadNetFile(zero); }),
            "/dev/zero: error: is a device; expected a prototxt file");
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { ReadWeights(zero); }),
            "/dev/zero: error: is a device; expected a .caffemodel file");
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { ReadWindowFile(zero, "", 0.5f, 0.5f); }),
            "error: \"/dev/zero\" is a device; expected a window file");
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { TextFile file(zero); }),
            "error: \"/dev/zero\" is a device; expected a file of text");
  for (const std::string& message : {ThrownBy<std::runtime_error>([&] { ReadImageList(zero, ""); }),
                                     ThrownBy<std::runtime_error>([&] { ReadLabels(zero); }),
                                     ThrownBy<std::runtime_error>([&] { ReadFileBytes(zero); }),
                                     ThrownBy<std::runtime_error>([&] { ReadMean(zero); })}) {
    EXPECT_NE(message.find("/dev/zero"), std::string::npos) << message;
    EXPECT_NE(message.find("is a device"), std::string::npos) << message;
  }
}

// As of <(command).
TEST(InputFile, PipesWithoutANameGiveNetsButNoWeights) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const std::string path = "/proc/self/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(OtherThanFile(path), "");
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { ReadWeights(path); }),
            path + ": error: is a pipe; expected a .caffemodel file");
  const std::string_view net = "name: \"piped\"";
  ASSERT_EQ(write(ends[1], net.data(), net.size()), static_cast<ssize_t>(net.size()));
  close(ends[1]);
  EXPECT_EQ(ReadNetFile(path).net.name(), "piped");
  close(ends[0]);
}

TEST(InputFile, PipesWithoutANameGiveListsOfAnnotatedImages) {
  for (const auto read : {ReadAnnotatedImageList, ReadYoloImageList}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const std::string_view list = "a.png a.xml\nb.png b.xml\n";
    ASSERT_EQ(write(ends[1], list.data(), list.size()), static_cast<ssize_t>(list.size()));
    close(ends[1]);
    EXPECT_EQ(read("/proc/self/fd/" + std::to_string(ends[0]), "").images.entries.size(), 2u);
    close(ends[0]);
  }
}

TEST(InputFile, PipesWithoutANameGiveNoJsonForAList) {
  for (const auto read : {ReadAnnotatedImageList, ReadYoloImageList}) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const std::string_view json = "{\n  \"images\": [1, 2]\n}\n";
    ASSERT_EQ(write(ends[1], json.data(), json.size()), static_cast<ssize_t>(json.size()));
    close(ends[1]);
    const std::string said =
        ThrownBy<std::runtime_error>([&] { read("/proc/self/fd/" + std::to_string(ends[0]), ""); });
    EXPECT_NE(said.find("is JSON, as COCO's annotations are"), std::string::npos) << said;
    close(ends[0]);
  }
}

TEST(InputFile, PipesWithoutANameGiveNamesOfClasses) {
  const std::function<size_t(const std::string&)> reads[] = {
      [](const std::string& path) { return ReadLabelMap(path, false, true).names.size(); },
      [](const std::string& path) { return ReadClassNames(path, kWithBackground).size() - 1; },
      [](const std::string& path) { return ReadLabels(path).size(); }};
  for (const auto& read : reads) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    const std::string_view list = "cat\r\nred dog\n";
    ASSERT_EQ(write(ends[1], list.data(), list.size()), static_cast<ssize_t>(list.size()));
    close(ends[1]);
    EXPECT_EQ(read("/proc/self/fd/" + std::to_string(ends[0])), 2u);
    close(ends[0]);
  }
}

TEST(InputFile, NamedPipesAreNotWaitedFor) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe", link = folder / "link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  std::filesystem::create_symlink(pipe, link);
  const std::function<void()> reads[] = {[&] { ReadNetFile(pipe); },
                                         [&] { ReadSolverFile(link); },
                                         [&] { ReadWeights(pipe); },
                                         [&] { ReadImageList(pipe, ""); },
                                         [&] { ReadLabels(link); },
                                         [&] { ReadHdf5List(pipe); },
                                         [&] { ReadWindowFile(pipe, "", 0.5f, 0.5f); },
                                         [&] { ReadMean(pipe); },
                                         [&] { IdxReader(pipe, 3, "images"); },
                                         [&] { TextFile file(pipe); },
                                         [&] { ReadFileBytes(pipe); }};
  for (const auto& read : reads) {
    const std::string message = ThrownBy<std::runtime_error>(read);
    EXPECT_NE(message.find("is a named pipe"), std::string::npos) << message;
    EXPECT_NE(message.find(folder.path()), std::string::npos) << message;
  }
}

// Nothing is at the address at which a process's memory begins.
TEST(InputFile, WhatKeptOneFromBeingReadIsSaid) {
  EXPECT_EQ(ThrownBy<EnvironmentError>([] { ReadMean("/proc/self/mem"); }),
            "/proc/self/mem: cannot be read: Input/output error");
  EXPECT_EQ(ThrownBy<EnvironmentError>([] { ReadFileText("/proc/self/mem"); }),
            "/proc/self/mem: cannot be read: Input/output error");
}

TEST(InputFile, FoldersAreNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { CheckRegularFile(folder.path(), ".onnx"); }),
            folder.path() + ": error: is a folder; expected a .onnx file");
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { ExpectFile(folder.path(), "a list"); }),
            "error: \"" + folder.path() + "\" is a folder; expected a list");
}

TEST(InputFile, AbsentOnesAreNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { ExpectFile(folder / "absent", "a list"); }),
            "error: \"" + folder / "absent" + "\" does not exist; expected a list");
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { ExpectFile("absent", "a list"); }),
            "error: \"absent\" does not exist; expected a list; relative paths start at the working directory " + here);
  EXPECT_EQ(ThrownBy<std::runtime_error>([&] { CheckReadableFile("absent", ".onnx"); }),
            "absent: error: there is no such file; relative paths start at the working directory " + here);
}

}  // namespace
}  // namespace crema
