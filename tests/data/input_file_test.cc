// What is no file is told at once, and pipes are read where that is of use.
#include "base/input_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "crema/error.h"
#include "crema/files.h"
#include "data/image_list.h"
#include "data/mean_file.h"
#include "data/text_file.h"
#include "data/window_file.h"
#include "image/codec.h"
#include "temporary_folder.h"

namespace crema {
namespace {

std::string ErrorOf(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

TEST(InputFile, DevicesAreRefusedBeforeTheyAreRead) {
  const std::string zero = "/dev/zero";
  EXPECT_EQ(ErrorOf([&] { ReadNetFile(zero); }), "/dev/zero: error: is a device; expected a prototxt file");
  EXPECT_EQ(ErrorOf([&] { ReadWeights(zero); }), "/dev/zero: error: is a device; expected a .caffemodel file");
  EXPECT_EQ(ErrorOf([&] { ReadWindowFile(zero, "", 0.5f, 0.5f); }),
            "error: \"/dev/zero\" is a device; expected a window file");
  EXPECT_EQ(ErrorOf([&] { TextFile file(zero); }), "error: \"/dev/zero\" is a device; expected a file of text");
  for (const std::string& message : {ErrorOf([&] { ReadImageList(zero, ""); }), ErrorOf([&] { ReadLabels(zero); }),
                                     ErrorOf([&] { ReadFileBytes(zero); }), ErrorOf([&] { ReadMean(zero); })}) {
    EXPECT_NE(message.find("\"/dev/zero\""), std::string::npos) << message;
    EXPECT_NE(message.find("is a device"), std::string::npos) << message;
  }
}

TEST(InputFile, PipesGiveNetsButNoWeights) {
  const TemporaryFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ErrorOf([&] { ReadWeights(pipe); }), pipe + ": error: is a pipe; expected a .caffemodel file");
  std::thread writer([&] { std::ofstream(pipe) << "name: \"piped\""; });
  EXPECT_EQ(ReadNetFile(pipe).net.name(), "piped");
  writer.join();
}

TEST(InputFile, FoldersAreNamed) {
  const TemporaryFolder folder;
  EXPECT_EQ(ErrorOf([&] { CheckRegularFile(folder.path(), ".onnx"); }),
            folder.path() + ": error: is a folder; expected a .onnx file");
  EXPECT_EQ(ErrorOf([&] { RefuseFolderOrDevice(folder / "absent", "a list"); }), "no error");
}

}  // namespace
}  // namespace crema
