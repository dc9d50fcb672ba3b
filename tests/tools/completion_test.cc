// tools/completion.bash, as bash calls it.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "source_folder.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;
using Words = std::set<std::string>;

class Completion : public ::testing::Test {
 protected:
  void SetUp() override {
    if (RunProgram({"/bin/sh", "-c", "bash -c 'test ${BASH_VERSINFO[0]} -ge 4'"}).exit_code != 0) {
      GTEST_SKIP() << "there is no bash of version 4 or later";
    }
    if (!fs::exists(script_)) GTEST_SKIP() << "there is no tools/completion.bash here";
    folder_.Write("net.prototxt", "");
    folder_.Write("notes.txt", "");
    folder_.Write("nets/deep.prototxt", "");
  }

  // What is offered for the last of `words`, which Readline has split at = as it does.
  Words Offered(const std::string& program, const std::vector<std::string>& words) const {
    std::string array = "'" + std::string(CREMA_BIN_DIR) + "/" + program + "'";
    for (const std::string& word : words) array += " '" + word + "'";
    folder_.Write("ask", "source '" + script_ + "'\nCOMP_WORDS=(" + array +
                             ")\nCOMP_CWORD=" + std::to_string(words.size()) +
                             "\n_crema \"${COMP_WORDS[0]}\"\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    const Finished run = RunProgram({"/bin/sh", "-c", "exec bash --norc ask"}, {.folder = folder_.path()});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_EQ(run.err, "");
    Words offered;
    std::istringstream lines(run.out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.empty()) offered.insert(line);
    }
    return offered;
  }

  const std::string script_ = std::string(SourceFolder()) + "/tools/completion.bash";
  ScratchFolder folder_;
};

TEST_F(Completion, OfCommands) {
  EXPECT_EQ(Offered("crema", {"ex"}), (Words{"extract", "export"}));
  EXPECT_EQ(Offered("crema", {"help", "pre"}), (Words{"predict"}));
  const Words all = Offered("crema", {""});
  EXPECT_EQ(all.count("train") + all.count("import") + all.count("help") + all.count("--version"), 4u);
  EXPECT_EQ(Offered("crema", {"zoo", ""}), (Words{"list", "show", "copy", "get"}));
  EXPECT_EQ(Offered("crema", {"cluster", "s"}), (Words{"status", "stop"}));
  EXPECT_EQ(Offered("db_tool", {""}), (Words{"info", "verify", "peek", "export", "convert"}));
  EXPECT_EQ(Offered("crema", {"nonsense", ""}), Words());
}

TEST_F(Completion, OfFlags) {
  EXPECT_EQ(Offered("crema", {"predict", "--mean"}), (Words{"--mean_file=", "--mean_value="}));
  EXPECT_EQ(Offered("crema", {"predict", "--model", "=", "net.prototxt", "--rg"}), (Words{"--rgb"}));
  EXPECT_EQ(Offered("train", {"--so"}), (Words{"--solver="}));
  EXPECT_EQ(Offered("train", {"--timel"}), (Words{"--timeline="}));
  EXPECT_EQ(Offered("convert_csv", {"--he"}), (Words{"--header=", "--help"}));
  // Where nothing but flags is expected they are offered at once.
  EXPECT_EQ(Offered("train", {""}).count("--solver="), 1u);
}

TEST_F(Completion, OfChoices) {
  EXPECT_EQ(Offered("crema", {"predict", "--format", "=", ""}), (Words{"text", "json", "csv"}));
  EXPECT_EQ(Offered("crema", {"predict", "--format", "="}), (Words{"text", "json", "csv"}));
  EXPECT_EQ(Offered("crema", {"predict", "-format", "j"}), (Words{"json"}));
  EXPECT_EQ(Offered("crema", {"predict", "--views", "=", ""}), (Words{"1", "2", "5", "10"}));
  EXPECT_EQ(Offered("crema", {"predict", "--precision", "=", ""}), (Words{"f32", "tf32", "bf16", "fp16"}));
  EXPECT_EQ(Offered("crema", {"compile", "--phase", "=", "T"}), (Words{"TRAIN", "TEST"}));
  EXPECT_EQ(Offered("crema", {"compile", "--dump", "=", "s"}), (Words{"shapes"}));
  EXPECT_EQ(Offered("train", {"--sigint_effect", "=", "s"}), (Words{"stop", "snapshot"}));
  EXPECT_EQ(Offered("train", {"--engine", "=", ""}), (Words{"MPI", "ZMQ"}));
  EXPECT_EQ(Offered("convert_imageset", {"--encode_type", "=", ""}), (Words{"jpg", "png"}));
  // Numbers and names are not known.
  EXPECT_EQ(Offered("crema", {"predict", "--top", "=", ""}), Words());
  EXPECT_EQ(Offered("crema", {"predict", "--blob", "=", ""}), Words());
  EXPECT_EQ(Offered("crema", {"predict", "--resize", "=", ""}), Words());
}

TEST_F(Completion, OfFiles) {
  EXPECT_EQ(Offered("crema", {"predict", "--model", "=", "ne"}), (Words{"net.prototxt", "nets"}));
  EXPECT_EQ(Offered("crema", {"predict", "--model", "ne"}), (Words{"net.prototxt", "nets"}));
  EXPECT_EQ(Offered("crema", {"predict", "--model=ne"}), (Words{"--model=net.prototxt", "--model=nets"}));
  EXPECT_EQ(Offered("crema", {"predict", "--weights", "=", "nets/deep.prototxt,no"}),
            (Words{"nets/deep.prototxt,notes.txt"}));
  EXPECT_EQ(Offered("crema", {"evaluate", "--output", "=", "ne"}), (Words{"nets"}));
  EXPECT_EQ(Offered("train", {"--snapshot", "=", "a"}), (Words{"ask", "auto"}));
  EXPECT_EQ(Offered("crema", {"predict", "no"}), (Words{"notes.txt"}));
  EXPECT_EQ(Offered("db_tool", {"info", "ne"}), (Words{"net.prototxt", "nets"}));
}

TEST_F(Completion, OfModels) {
  if (!fs::exists(std::string(SourceFolder()) + "/model_zoo/lenet")) GTEST_SKIP() << "there is no model_zoo/lenet here";
  EXPECT_EQ(Offered("crema", {"zoo", "show", "len"}), (Words{"lenet"}));
  EXPECT_EQ(Offered("crema", {"finetune", "--model", "=", "resnet"}), (Words{"resnet20", "resnet50"}));
}

}  // namespace
}  // namespace crema::testing_tools
