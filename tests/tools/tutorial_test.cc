// docs/tutorial.md: every command in it, as it stands.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "source_folder.h"
#include "tools/colour_net.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

// What stands between ```sh and ```.
std::string Commands(const std::string& page) {
  std::istringstream lines(page);
  std::string commands, line;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line.starts_with("```")) {
      inside = !inside && line == "```sh";
    } else if (inside) {
      commands += line + "\n";
    }
  }
  return commands;
}

TEST(Tutorial, RunsAsItStands) {
  const ScratchFolder folder;
  for (int i = 0; i < 30; ++i) {
    const auto dim = 4 * i;
    WriteJpeg(folder, "photos/cat/" + std::to_string(i) + ".jpg", Coloured(90 + i, 120, dim, 120, 220));
    WriteJpeg(folder, "photos/dog/" + std::to_string(i) + ".jpg", Coloured(120, 90 + i, 220, 120, dim));
  }
  const std::string commands = Commands(ReadText(SourceFolder() + "/docs/tutorial.md"));
  for (const char* command : {"convert_imageset ", "db_tool ", "compute_image_mean ", "crema zoo ", "crema finetune ",
                              "crema evaluate ", "crema predict "}) {
    EXPECT_NE(commands.find(command), std::string::npos) << command;
  }
  folder.Write("commands.sh", "set -eu\nset -o pipefail\nPATH=" CREMA_BIN_DIR ":$PATH\n" + commands);
  const Finished run = RunProgram({"/bin/bash", "commands.sh"}, {.folder = folder.path()});
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_NE(run.out.find("accuracy 100.00% (12 of 12)"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("photos/cat/0.jpg"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("\"label\": \"dog\""), std::string::npos) << run.out;
  EXPECT_TRUE(fs::exists(folder / "pets_net/report/confusion.svg"));
}

}  // namespace
}  // namespace crema::testing_tools
