// Mistakes on the command line and in files, and the help texts, with the real programs.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "source_folder.h"
#include "tools/patterns.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

constexpr char kNet[] = R"(name: "Small"
layer {
  name: "data"
  type: "Input"
  top: "data"
  input_param { shape { dim: 2 dim: 1 dim: 8 dim: 8 } }
}
layer {
  name: "pool1"
  type: "Pooling"
  bottom: "data"
  top: "pool1"
  pooling_param { pool: MAX kernel_size: 2 stride: 2 }
}
layer {
  name: "ip1"
  type: "InnerProduct"
  bottom: "pool1"
  top: "ip1"
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } }
}
)";

constexpr char kSolver[] =
    "net: \"net.prototxt\"\nbase_lr: 0.1\nlr_policy: \"fixed\"\nmax_iter: 1\n"
    "snapshot_prefix: \"small\"\nsolver_mode: CPU\n";

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    lines.push_back(text.substr(begin, end - begin));
  }
  return lines;
}

class Mistakes : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("net.prototxt", kNet);
    folder_.Write("solver.prototxt", kSolver);
  }
  // Runs and expects exit code 2 with `count` errors on stderr, nothing on stdout, and no log.
  std::string Err(const std::vector<std::string>& arguments, int count = 1) {
    const Finished run = RunProgram(arguments, {.folder = folder_.path()});
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_EQ(Count(run.err, "error: "), count) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err.find("Solving"), std::string::npos) << run.err;
    return run.err;
  }
  void ExpectSays(const std::string& err, const std::string& text) {
    EXPECT_NE(err.find(text), std::string::npos) << text << "\n" << err;
  }

  ScratchFolder folder_;
};

TEST_F(Mistakes, UnknownFlagsGetASuggestion) {
  const std::string err = Err({"train", "--solvr=solver.prototxt", "--solver=solver.prototxt"});
  EXPECT_EQ(Lines(err)[0], "train: error: there is no flag --solvr; did you mean \"--solver\"?");
  EXPECT_EQ(Lines(err)[1], "See train --help.");
}

// Scripts made for Caffe pass what their variables hold, its defaults among them.
TEST_F(Mistakes, EmptyDefaultsOfCaffeAreNotGiven) {
  const Finished run = RunProgram(
      {"crema", "time", "--model=net.prototxt", "--iterations=1", "--stage=a", "--stage=", "--gpu=", "--gpu", ""},
      {.folder = folder_.path()});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err.find("stage"), std::string::npos) << run.err;
  // It has an effect on --quality no longer, and the last of several counts.
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{"--encode_type="}, std::vector<std::string>{"--encode_type=png", "--encode_type="}}) {
    std::vector<std::string> words = {"convert_imageset", "--quality=50", ".", "db"};
    words.insert(words.end(), flags.begin(), flags.end());
    ExpectSays(Err(words), "--quality has no effect without --encoded or --encode_type");
  }
}

TEST_F(Mistakes, NamesOfCaffeGetTheWay) {
  for (const auto& [name, said] : std::vector<std::pair<std::string, std::string>>{
           {"upgrade_net_proto_text", "there is no command \"upgrade_net_proto_text\"; files of every age of Caffe"},
           {"extract_features", "`crema extract` writes features"},
           {"detect.py", "there is no command \"detect.py\"; windows of R-CNN are not there"},
           {"ssd_detect.cpp", "`crema detect` finds objects"},
           {"infer.py", "`crema extract --output=masks/`"},
           {"classify.py", "there is no command \"classify.py\"; `crema predict` tells"},
           {"plot_training_log.py", "`crema curves` draws"},
           {"test_detection", "`crema test` scores"},
           {"convert_imageset", "it is a program of its own"},
           {"draw_net", "--dump=dot"}}) {
    ExpectSays(Err({"crema", name, "--weights=x"}), said);
  }
  // Programs that are said to be there are.
  for (const char* name : {"convert_imageset", "compute_image_mean", "convert_mnist_data", "convert_cifar_data",
                           "convert_mnist_siamese_data", "convert_annoset", "convert_csv", "convert_kitti",
                           "convert_text", "compute_anchors", "db_tool"}) {
    ExpectSays(Err({"crema", name}), "it is a program of its own");
    EXPECT_EQ(RunProgram({name, "--help"}, {.folder = folder_.path()}).exit_code, 0) << name;
  }
  EXPECT_EQ(Err({"crema", "classifyx"}).find("predict` tells"), std::string::npos);
}

TEST_F(Mistakes, EveryOneIsReported) {
  const std::string err = Err({"crema", "test", "--solver=a", "--iterations=ten", "stray", "--weights"}, 5);
  ExpectSays(err, "crema test: error: there is no flag --solver; it takes --model, --weights");
  ExpectSays(err, "crema test: error: --iterations=ten: expected a whole number");
  ExpectSays(err, "crema test: error: unexpected \"stray\"");
  ExpectSays(err, "crema test: error: --weights needs a value: --weights=FILE");
  ExpectSays(err, "crema test: error: --model=FILE is missing");
}

TEST_F(Mistakes, FieldsOfTheSolverAreSetThere) {
  ExpectSays(Err({"train", "--solver=solver.prototxt", "--base_lr=0.1"}),
             "there is no flag --base_lr; set base_lr in the solver file\n");
  ExpectSays(Err({"crema", "time", "--model=net.prototxt", "--base_lr=0.1"}), "it takes --model");
}

TEST_F(Mistakes, FlagsOfOtherCommandsAndLibrariesAreUnknown) {
  Err({"train", "--solver=solver.prototxt", "--iterations=3"});
  Err({"train", "--solver=solver.prototxt", "--v=3"});
  Err({"crema", "device_query", "--flagfile=x"});
}

TEST_F(Mistakes, NumbersHaveRanges) {
  ExpectSays(Err({"crema", "time", "--model=net.prototxt", "--iterations=0"}), "must be at least 1");
  ExpectSays(Err({"crema", "time", "--model=net.prototxt", "--iterations", "-3"}), "must be at least 1");
  ExpectSays(Err({"crema", "time", "--model=net.prototxt", "--iterations=5x"}), "expected a whole number");
  ExpectSays(Err({"crema", "time", "--model=net.prototxt", "--iterations=99999999999"}), "fits 32 bits");
  ExpectSays(Err({"crema", "time", "--model=net.prototxt", "--iterations="}),
             "--iterations needs a value: --iterations=N");
  ExpectSays(Err({"crema", "finetune", "--model=lenet", "--data=d", "--output=o", "--seed=99999999999999999999"}),
             "fits 64 bits");
  ExpectSays(Err({"crema", "time", "--model=absent.prototxt", "--iterations=08"}), "absent.prototxt: ");
  ExpectSays(Err({"crema", "compile", "--model=net.prototxt", "--explain=maybe"}), "expected true or false");
}

TEST_F(Mistakes, FlagsWithoutEffect) {
  ExpectSays(Err({"crema", "time", "--model=net.prototxt", "--profile_iterations=5"}),
             "--profile_iterations has no effect without --profile");
  ExpectSays(Err({"convert_imageset", "--quality=50", "photos", "db"}),
             "--quality has no effect without --encoded or --encode_type");
  ExpectSays(Err({"db_tool", "info", "absent", "--index=3"}), "--index is not for db_tool info");
  ExpectSays(Err({"convert_annoset", "--min_dim=50", "--max_dim=20", ".", "list.txt", "db"}),
             "--min_dim=50 exceeds --max_dim=20");
}

TEST_F(Mistakes, MissingValuesAndRequiredFlags) {
  ExpectSays(Err({"train"}), "train: error: --solver=FILE is missing");
  ExpectSays(Err({"train", "--solver="}), "--solver needs a value");
  ExpectSays(Err({"train", "--solver", "--weights=x"}), "--solver needs a value");
  for (const char* flag : {"weights", "snapshot", "metrics"}) {
    ExpectSays(Err({"train", "--solver=solver.prototxt", std::string("--") + flag + "="}),
               std::string("--") + flag + " needs a value");
  }
  ExpectSays(Err({"crema", "detect", "--model=net.prototxt", "--weights=x", "--threshold=60", "a.png"}),
             "--threshold=60: expected a number up to 1");
  ExpectSays(Err({"train", "solver=solver.prototxt", "--solver=solver.prototxt"}),
             "did you mean --solver=solver.prototxt?");
}

TEST_F(Mistakes, CommandsAreSuggestedToo) {
  ExpectSays(Err({"crema", "trian"}), "crema: error: there is no command \"trian\"; did you mean \"train\"?");
  ExpectSays(Err({"crema", "xyzzy"}), "it is one of train, test, time");
  ExpectSays(Err({"crema", "--solver=x", "train"}), "the command comes first");
  EXPECT_EQ(RunProgram({"crema"}).exit_code, 2);
}

TEST_F(Mistakes, GpusThatAreNoneAreRefused) {
  ExpectSays(Err({"crema", "time", "--model=net.prototxt", "--gpu=0,1"}), "computes on one GPU; give its number");
  ExpectSays(Err({"crema", "test", "--model=net.prototxt", "--weights=x", "--gpu=all"}), "computes on one GPU");
  ExpectSays(Err({"train", "--solver=solver.prototxt", "--gpu=first"}), "the number of a GPU was expected");
  ExpectSays(Err({"train", "--solver=solver.prototxt", "--gpu=0,1,0"}), "GPU 0 is given twice");
  ExpectSays(Err({"train", "--solver=solver.prototxt", "--gpu=0,"}), "there is nothing beside a comma");
  const auto unknown = RunProgram({"train", "--solver=solver.prototxt", "--gpu=0,99"}, {.folder = folder_.path()});
  EXPECT_EQ(unknown.exit_code, 1) << unknown.err;
  ExpectSays(unknown.err, "GPU");
  const auto absent = RunProgram({"crema", "time", "--model=net.prototxt", "-gpu", "99"});
  EXPECT_EQ(absent.exit_code, 1) << absent.err;
  ExpectSays(absent.err, "GPU");
}

TEST_F(Mistakes, FilesOfTheWrongKindAreNamed) {
  ExpectSays(Err({"train", "--solver=net.prototxt"}), "--solver=net.prototxt is a net, expected a solver file");
  ExpectSays(Err({"crema", "compile", "--model=solver.prototxt"}),
             "is a solver file, expected a net; its net is --model=net.prototxt");
  ExpectSays(Err({"train", "--solver=solver.prototxt", "--snapshot=x.caffemodel"}), "expected a .solverstate");
  ExpectSays(Err({"train", "--solver=solver.prototxt", "--weights=x.solverstate"}), "expected a .caffemodel");
  ExpectSays(Err({"train", "--solver=solver.prototxt", "--weights=a", "--snapshot=b"}), "exclude each other");
  Err({"crema", "probe", "--model=net.prototxt", "--weights=net.prototxt"});
}

TEST_F(Mistakes, ListsAreReadAlikeEverywhere) {
  using Words = std::vector<std::string>;
  for (Words words : {Words{"train", "--solver=solver.prototxt"}, Words{"crema", "time", "--model=net.prototxt"},
                      Words{"crema", "probe", "--model=net.prototxt"}}) {
    words.push_back("--weights= a.caffemodel ,b.caffemodel");
    ExpectSays("\n" + Err(words), "\na.caffemodel: error: there is no such file");
    words.back() = "--weights=a.caffemodel,,b.caffemodel";
    ExpectSays(Err(words), "--weights=a.caffemodel,,b.caffemodel: there is nothing beside a comma");
  }
}

TEST_F(Mistakes, AbsentFilesAreNamed) {
  const Finished run = RunProgram({"train", "--solver=nothing.prototxt"}, {.folder = folder_.path()});
  EXPECT_TRUE(run.exit_code == 1 || run.exit_code == 2) << run.exit_code;
  EXPECT_TRUE(run.Says("nothing.prototxt")) << run.err;
  EXPECT_TRUE(run.Says("error: ")) << run.err;
}

TEST_F(Mistakes, TyposInAFileSayLineAndColumn) {
  folder_.Write("typo.prototxt", Replaced(kNet, "kernel_size", "kernel_sise"));
  const std::string err = Err({"crema", "compile", "--model=typo.prototxt"});
  ExpectSays(err, "typo.prototxt:13:");
  ExpectSays(err, "kernel_size");
  folder_.Write("solver.prototxt", std::string(kSolver) + "max_itre: 5\n");
  const std::string solver_err = Err({"train", "--solver=solver.prototxt"});
  ExpectSays(solver_err, "solver.prototxt:7:");
  ExpectSays(solver_err, "max_iter");
}

TEST_F(Mistakes, ALayerThatDoesNotFitSaysWhere) {
  folder_.Write("wide.prototxt", Replaced(kNet, "kernel_size: 2", "kernel_size: 12"));
  const std::string err = Err({"crema", "compile", "--model=wide.prototxt"});
  EXPECT_TRUE(Matches(err, R"(wide\.prototxt:\d+:\d+: error: layer "pool1" \(Pooling\))")) << err;
}

TEST_F(Mistakes, NetsThatNobodyFillsAreRefused) {
  const std::vector<std::vector<std::string>> commands = {
      {"train", "--solver=solver.prototxt"}, {"crema", "test", "--model=net.prototxt", "--weights=none.caffemodel"}};
  for (const std::vector<std::string>& command : commands) {
    const std::string err = Err(command);
    ExpectSays(err, "net.prototxt:4:");
    ExpectSays(err, "gets \"data\" from an Input layer, which a program that embeds crema fills");
    ExpectSays(err, "or read from a Data, ImageData or HDF5Data layer");
  }
}

TEST_F(Mistakes, ShapesAreChecked) {
  for (const char* shape : {"data", "=1,2", "data=", "data=1,x", "data=1,,2", "data=0,1", "data=1,-2",
                            "data=99999999999", "data=65536,65536"}) {
    ExpectSays(Err({"crema", "compile", "--model=net.prototxt", std::string("--shape=") + shape}), "--shape=");
  }
  ExpectSays(Err({"crema", "compile", "--model=net.prototxt", "--shape=dota=1,2"}), "did you mean \"data\"?");
  ExpectSays(Err({"crema", "compile", "--model=net.prototxt", "--shape=x=1,2"}), "; they make data");
  ExpectSays(Err({"crema", "compile", "--model=net.prototxt", "--shape=data=1,2", "--shape=data=1,3"}), "twice");
}

TEST_F(Mistakes, ChoicesAreChecked) {
  ExpectSays(Err({"crema", "compile", "--model=net.prototxt", "--dump=grapf"}), "did you mean \"graph\"?");
  ExpectSays(Err({"crema", "compile", "--model=net.prototxt", "--dump=json", "--explain"}),
             "--explain belongs to --dump=plan");
  ExpectSays(Err({"crema", "compile", "--model=net.prototxt", "--phase=test"}), "expected TRAIN or TEST");
  ExpectSays(Err({"crema", "compile", "--model=net.prototxt", "--stage=a,,b"}), "--stage=a,,b");
  ExpectSays(Err({"train", "--solver=solver.prototxt", "--sigint_effect=halt"}), "sigint_effect");
  ExpectSays(Err({"crema", "compile"}), "--model=FILE is missing");
}

TEST(Help, IsThereForEveryCommandInEveryForm) {
  for (const char* command :
       {"train", "test", "time", "compile", "probe", "device_query", "keygen", "cluster", "zoo", "predict", "extract",
        "detect", "generate", "finetune", "evaluate", "curves", "export", "import", "bn_statistics"}) {
    const Finished run = RunProgram({"crema", command, "--help"});
    EXPECT_EQ(run.exit_code, 0);
    const std::string flags = run.out.substr(std::min(run.out.size(), run.out.find("\nflags:\n")));
    EXPECT_FALSE(Matches(flags, R"( \n|\]\s+\[|\(default)")) << "one default, in brackets, and no blanks: " << flags;
    EXPECT_TRUE(run.out.starts_with(std::string("crema ") + command + ": ")) << run.out;
    EXPECT_NE(run.out.find("usage: crema " + std::string(command)), std::string::npos) << run.out;
    EXPECT_EQ(RunProgram({"crema", "help", command}).out, run.out);
    EXPECT_EQ(RunProgram({"crema", command, "-help"}).out, run.out);
    for (const std::string& line : Lines(run.out)) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_NE(RunProgram({"crema", "--help"}).out.find(std::string("\n  ") + command + " "), std::string::npos);
  }
  EXPECT_TRUE(RunProgram({"train", "--help"}).out.starts_with("train: "));
  EXPECT_EQ(RunProgram({"crema", "--help"}).exit_code, 0);
}

TEST(Help, ShowsVersions) {
  EXPECT_TRUE(Matches(RunProgram({"crema", "--version"}).out, R"(^crema \d+\.\d+\.\d+\n$)"));
  EXPECT_EQ(RunProgram({"train", "--version"}).out, RunProgram({"crema", "--version"}).out);
}

TEST(Help, EveryFlagStandsInThePageOfCommands) {
  const std::string page = ReadText(SourceFolder() + "/docs/commands.md");
  if (page.empty()) GTEST_SKIP() << "there is no docs/commands.md here";
  const auto section = [&page](const std::string& command) {
    const size_t begin = page.find("\n## " + command + "\n");
    EXPECT_NE(begin, std::string::npos) << command;
    return page.substr(begin, page.find("\n## ", begin + 1) - begin);
  };
  int found = 0;
  for (const std::string command :
       {"train", "test", "time", "compile", "probe", "keygen", "cluster", "zoo", "predict", "extract", "detect",
        "generate", "finetune", "evaluate", "curves", "export", "import", "bn_statistics"}) {
    std::string text = section(command);
    // They have those of predict, too.
    if (command == "extract" || command == "detect" || command == "evaluate") text += section("predict");
    for (const std::string& flag : FindAll(RunProgram({"crema", command, "--help"}).out, R"(\n  (--[a-z_]+))", 1)) {
      EXPECT_TRUE(Matches(text, flag + R"((?![a-z_]))")) << command << " " << flag;
      ++found;
    }
  }
  EXPECT_GT(found, 100);
}

// Every command line of a help text that the repository's own files are enough for must work.
TEST(Help, ExamplesWork) {
  const Setting root{.folder = SourceFolder()};
  if (!fs::exists(root.folder / "model_zoo/lenet/deploy.prototxt")) GTEST_SKIP() << "there is no model_zoo/lenet here";
  int tried = 0;
  for (const char* command : {"time", "compile", "probe"}) {
    const std::string help = Replaced(RunProgram({"crema", command, "--help"}).out, R"( \\\n *)", " ");
    for (const std::string& line : Lines(help)) {
      if (!line.starts_with("    crema ") || line.find("--weights") != std::string::npos) continue;
      std::string plain = line.substr(0, line.find(" | "));
      if (std::string(command) == "time" && plain.find("--shape") == std::string::npos) continue;  // reads the database
      const Finished run = RunProgram(FindAll(plain, R"(\S+)", 0), root);
      EXPECT_EQ(run.exit_code, 0) << plain << "\n" << run.err;
      EXPECT_FALSE(run.out.empty());
      ++tried;
    }
  }
  EXPECT_GE(tried, 4);
}

TEST(Commands, AnswerWithoutAFile) {
  const Finished query = RunProgram({"crema", "device_query"});
  EXPECT_EQ(query.exit_code, 0);
  EXPECT_NE(query.out.find("Logical cores"), std::string::npos) << query.out;
  EXPECT_NE(query.out.find("GPU"), std::string::npos) << query.out;
  EXPECT_EQ(query.out.find(" \n"), std::string::npos) << "blanks at the end of a line: " << query.out;
  const Finished layers = RunProgram({"crema", "compile", "--list_layers"});
  EXPECT_EQ(layers.exit_code, 0);
  EXPECT_TRUE(Matches(layers.out, R"((^|\n)Pooling +pooling_param\n)")) << layers.out;
}

TEST_F(Mistakes, NoneWhereFlagsAreWrittenInAnyForm) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"crema", "compile", "-model", "net.prototxt", "-phase=TEST", "-noexplain"},
           {"crema", "compile", "--model", "net.prototxt", "--explain"},
           {"crema", "compile", "--model=net.prototxt", "--explain=true", "--dump=plan"},
           {"crema", "compile", "--model=net.prototxt", "--shape=data=5,1,8,8", "--dump=json"}}) {
    const Finished run = RunProgram(arguments, {.folder = folder_.path()});
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_NE(run.out.find("Small"), std::string::npos) << run.out;
    if (arguments.back() == "--dump=json") {
      EXPECT_NE(run.out.find("[5,3]"), std::string::npos) << run.out;
    }
  }
}

}  // namespace
}  // namespace crema::testing_tools
