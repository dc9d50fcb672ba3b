// crema zoo: the models of a folder, copied and fetched.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/sha256.h"
#include "tools/file_server.h"
#include "tools/program.h"

namespace crema::testing_tools {
namespace {

namespace fs = std::filesystem;

std::string Sum(const std::string& content) {
  Sha256 sum;
  sum.Add(content.data(), content.size());
  return sum.Finish();
}

// A zoo with the model "tiny", which trains on made-up data, and "far", whose weights are fetched.
class Zoo : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("CREMA_ZOO");
    unsetenv("CREMA_ZOO_MIRROR");
    for (size_t i = 0; i < content_.size(); ++i) content_[i] = static_cast<char>(i * 31 + i / 251);
    folder_.Write("zoo/tiny/README.md",
                  "---\nname: tiny\nsummary: a small net\nparameters: 6\nweights: tiny.caffemodel\nweights_sha256: " +
                      Sum("weights") + "\n---\n# Tiny\n\nSmall.\n");
    folder_.Write("zoo/tiny/tiny.caffemodel", "weights");
    folder_.Write("zoo/tiny/labels.txt", "a\nb\n");
    folder_.Write("zoo/tiny/notes.md", "not part of the model");
    folder_.Write("zoo/tiny/solver.prototxt",
                  "# net: \"commented\"\nnet: \"zoo/tiny/train_val.prototxt\"  # the net\nbase_lr: 0.1\n"
                  "lr_policy: \"fixed\"\nmax_iter: 2\nsnapshot_prefix: 'build/deep/tiny'\nsnapshot: 2\n");
    folder_.Write("zoo/tiny/train_val.prototxt",
                  "layer { name: \"d\" type: \"DummyData\" top: \"data\" top: \"label\"\n"
                  "  dummy_data_param { shape { dim: 2 dim: 2 } shape { dim: 2 } } }\n"
                  "layer { name: \"ip\" type: \"InnerProduct\" bottom: \"data\" top: \"ip\"\n"
                  "  inner_product_param { num_output: 2 } }\n"
                  "layer { name: \"loss\" type: \"SoftmaxWithLoss\" bottom: \"ip\" bottom: \"label\" top: \"loss\" }\n"
                  "layer { name: \"t\" type: \"Data\" top: \"x\" include { phase: TEST stage: \"never\" }\n"
                  "  data_param { source: \"some/db\" batch_size: 1 } }\n");
    WriteFar("file://" + (folder_ / "published/far.caffemodel").string());
    folder_.Write("published/far.caffemodel", content_);
  }

  void WriteFar(const std::string& url) {
    folder_.Write("zoo/far/README.md",
                  "---\nname: far\nsummary: weights elsewhere\nweights: far.caffemodel\nweights_url: " + url +
                      "\nweights_sha256: " + Sum(content_) + "\n---\n");
  }

  Finished Run(std::vector<std::string> words) const {
    words.insert(words.begin(), {"crema", "zoo", "--zoo=zoo"});
    return RunProgram(words, {.folder = folder_.path()});
  }

  const ScratchFolder folder_;
  std::string content_ = std::string(300000, ' ');
};

bool HasCurl() { return std::system("command -v curl >/dev/null 2>&1") == 0; }

TEST_F(Zoo, ListsAndShows) {
  const Finished list = Run({"list"});
  EXPECT_EQ(list.exit_code, 0) << list.err;
  EXPECT_NE(list.out.find("far                      by URL"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("here"), std::string::npos) << list.out;
  const Finished show = Run({"show", "tiny"});
  EXPECT_NE(show.out.find("parameters      6\n"), std::string::npos) << show.out;
  EXPECT_NE(show.out.find("Tiny\n\nSmall.\n"), std::string::npos) << show.out;
}

TEST_F(Zoo, SaysMistakes) {
  EXPECT_TRUE(Run({"show", "tinny"}).Says("there is no model \"tinny\" in zoo; did you mean \"tiny\"?"));
  EXPECT_TRUE(Run({"lsit"}).Says("did you mean \"list\"?"));
  EXPECT_TRUE(Run({"copy", "tiny"}).Says("expected crema zoo copy NAME DIR"));
  EXPECT_TRUE(Run({"list", "--force"}).Says("--force belongs to crema zoo copy"));
  folder_.Write("zoo/bad/README.md", "---\nname: good\nsummary: s\n---\n");
  const Finished list = Run({"list"});
  EXPECT_EQ(list.exit_code, 2);
  EXPECT_TRUE(list.Says("zoo/bad/README.md: error: name: is \"good\", but the folder's is \"bad\"")) << list.err;
  const Finished none = RunProgram({"crema", "zoo", "list", "--zoo=nowhere"}, {.folder = folder_.path()});
  EXPECT_EQ(none.exit_code, 2);
}

TEST_F(Zoo, IsFoundByEnvironmentAndBesideTheProgram) {
  const Finished own = RunProgram({"crema", "zoo", "list"}, {.folder = "/"});
  EXPECT_NE(own.out.find("resnet50"), std::string::npos) << own.err;
  setenv("CREMA_ZOO", (folder_ / "zoo").c_str(), 1);
  const Finished other = RunProgram({"crema", "zoo", "list"}, {.folder = "/"});
  unsetenv("CREMA_ZOO");
  EXPECT_EQ(other.out.find("resnet50"), std::string::npos) << other.out;
  EXPECT_NE(other.out.find("tiny"), std::string::npos) << other.out;
  // As it is installed: bin/crema and share/crema/model_zoo. A copy of the program still finds its library by its path.
  fs::create_directories(folder_ / "prefix/bin");
  fs::create_directories(folder_ / "prefix/share/crema");
  fs::copy_file(std::string(CREMA_BIN_DIR) + "/crema", folder_ / "prefix/bin/crema");
  fs::copy(folder_ / "zoo", folder_ / "prefix/share/crema/model_zoo", fs::copy_options::recursive);
  setenv("LD_LIBRARY_PATH", (std::string(CREMA_BIN_DIR) + "/../lib").c_str(), 1);
  const Finished installed = RunProgram({(folder_ / "prefix/bin/crema").string(), "zoo", "list"}, {.folder = "/"});
  unsetenv("LD_LIBRARY_PATH");
  EXPECT_NE(installed.out.find("prefix/share/crema/model_zoo"), std::string::npos) << installed.out << installed.err;
}

TEST_F(Zoo, CopyTrainsFromAnywhere) {
  const Finished copy = Run({"copy", "tiny", "my/tiny"});
  ASSERT_EQ(copy.exit_code, 0) << copy.err;
  EXPECT_NE(copy.out.find("solver.prototxt: net: \"train_val.prototxt\""), std::string::npos) << copy.out;
  EXPECT_NE(copy.out.find("train_val.prototxt:7: source: \"some/db\""), std::string::npos) << copy.out;
  EXPECT_EQ(ReadText(folder_ / "my/tiny/tiny.caffemodel"), "weights");
  EXPECT_EQ(ReadText(folder_ / "my/tiny/labels.txt"), "a\nb\n");
  EXPECT_FALSE(fs::exists(folder_ / "my/tiny/notes.md"));
  EXPECT_EQ(ReadText(folder_ / "my/tiny/solver.prototxt"),
            "# net: \"commented\"\nnet: \"train_val.prototxt\"  # the net\nbase_lr: 0.1\n"
            "lr_policy: \"fixed\"\nmax_iter: 2\n# Snapshots lie beside this file and have its name.\n"
            "snapshot_prefix: \"\"\nsnapshot: 2\n");
  const Finished train =
      RunProgram({"train", "--solver=" + (folder_ / "my/tiny/solver.prototxt").string()}, {.folder = "/"});
  EXPECT_EQ(train.exit_code, 0) << train.err;
  EXPECT_TRUE(fs::exists(folder_ / "my/tiny/solver_iter_2.caffemodel"));
  EXPECT_TRUE(train.Says("Snapshots: " + (folder_ / "my/tiny/solver_iter_*").string())) << train.err;
}

TEST_F(Zoo, CopiesWriteTheirOwnSnapshots) {
  fs::create_directories(folder_ / "snapshots");  // which a relative prefix of that name would take
  for (const char* name : {"a", "b"}) ASSERT_EQ(Run({"copy", "tiny", name}).exit_code, 0);
  for (const char* name : {"a", "b"}) {
    const Finished train =
        RunProgram({"train", std::string("--solver=") + name + "/solver.prototxt"}, {.folder = folder_.path()});
    ASSERT_EQ(train.exit_code, 0) << train.err;
    EXPECT_TRUE(fs::exists(folder_ / name / "solver_iter_2.caffemodel")) << name;
  }
  EXPECT_TRUE(fs::is_empty(folder_ / "snapshots"));
  // From within a copy the other one's net would be taken for its own.
  const Finished within = RunProgram({"train", "--solver=../b/solver.prototxt"}, {.folder = (folder_ / "a").string()});
  EXPECT_TRUE(
      within.Says("net \"train_val.prototxt\" is read from the working directory, and "
                  "\"../b/train_val.prototxt\" is another file"))
      << within.err;
  const Finished at_home = RunProgram({"train", "--solver=../a/solver.prototxt"}, {.folder = (folder_ / "a").string()});
  EXPECT_FALSE(at_home.Says("another file")) << at_home.err;
}

TEST_F(Zoo, CopyReplacesOnlyByForce) {
  folder_.Write("my/labels.txt", "mine");
  const Finished refused = Run({"copy", "tiny", "my"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(refused.Says("my/labels.txt: error: exists already")) << refused.err;
  EXPECT_FALSE(fs::exists(folder_ / "my/solver.prototxt"));
  EXPECT_EQ(ReadText(folder_ / "my/labels.txt"), "mine");
  fs::create_directory(folder_ / "linked");
  fs::create_symlink("nowhere", folder_ / "linked/labels.txt");
  EXPECT_EQ(Run({"copy", "tiny", "linked"}).exit_code, 2);
  EXPECT_EQ(Run({"copy", "tiny", "my", "--force"}).exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "my/labels.txt"), "a\nb\n");
  // Onto itself it would be cut short while it is read.
  EXPECT_EQ(Run({"copy", "tiny", "zoo/tiny", "--force"}).exit_code, 2);
  EXPECT_EQ(ReadText(folder_ / "zoo/tiny/labels.txt"), "a\nb\n");
}

TEST_F(Zoo, GetsFilesAndLeavesWhatIsRight) {
  const Finished got = Run({"get", "far"});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(ReadText(folder_ / "zoo/far/far.caffemodel"), content_);
  EXPECT_FALSE(fs::exists(folder_ / "zoo/far/far.caffemodel.part"));
  fs::remove_all(folder_ / "published");
  const Finished again = Run({"get", "far"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_TRUE(again.Says("is there already, and its sum is right"));
  // Weights that came along can be had elsewhere, too.
  EXPECT_EQ(Run({"get", "tiny", "--output=other"}).exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "other/tiny.caffemodel"), "weights");
}

TEST_F(Zoo, GetLooksIntoTheMirrorFirst) {
  fs::rename(folder_ / "published", folder_ / "mirror");
  const Finished none = Run({"get", "far"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_TRUE(none.Says("could not be fetched")) << none.err;
  setenv("CREMA_ZOO_MIRROR", ("file://" + (folder_ / "mirror").string()).c_str(), 1);
  const Finished got = Run({"get", "far", "--output=out"});
  unsetenv("CREMA_ZOO_MIRROR");
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(got.out, "out/far.caffemodel\n");
  EXPECT_EQ(ReadText(folder_ / "out/far.caffemodel"), content_);
  EXPECT_EQ(Run({"get", "far", "--output=more", "--mirror=here"}).exit_code, 2);
}

TEST_F(Zoo, GetRefusesAnotherFileAndSaysBothSums) {
  folder_.Write("published/far.caffemodel", "something else");
  const Finished got = Run({"get", "far"});
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_TRUE(got.Says(Sum("something else"))) << got.err;
  EXPECT_TRUE(got.Says(Sum(content_))) << got.err;
  EXPECT_FALSE(fs::exists(folder_ / "zoo/far/far.caffemodel"));
  EXPECT_FALSE(fs::exists(folder_ / "zoo/far/far.caffemodel.part"));
  folder_.Write("zoo/far/far.caffemodel", "mine");
  const Finished mine = Run({"get", "far"});
  EXPECT_EQ(mine.exit_code, 2);
  EXPECT_EQ(ReadText(folder_ / "zoo/far/far.caffemodel"), "mine");
}

TEST_F(Zoo, GetResumesFilesAndMendsABadBegin) {
  folder_.Write("zoo/far/far.caffemodel.part", content_.substr(0, 1000));
  ASSERT_EQ(Run({"get", "far"}).exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "zoo/far/far.caffemodel"), content_);
  fs::remove(folder_ / "zoo/far/far.caffemodel");
  folder_.Write("zoo/far/far.caffemodel.part", "of another file");
  ASSERT_EQ(Run({"get", "far"}).exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "zoo/far/far.caffemodel"), content_);
}

TEST_F(Zoo, GetGoesOnWhereTheServerStopped) {
  if (!HasCurl()) GTEST_SKIP() << "the program curl is not installed";
  FileServer server(content_, {.cut = 100000});
  WriteFar(server.url() + "/file");
  const Finished cut = Run({"get", "far"});
  EXPECT_EQ(cut.exit_code, 1);
  EXPECT_TRUE(cut.Says("curl could not fetch it")) << cut.err;
  EXPECT_EQ(fs::file_size(folder_ / "zoo/far/far.caffemodel.part"), 100000u);
  const Finished got = Run({"get", "far"});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(ReadText(folder_ / "zoo/far/far.caffemodel"), content_);
  ASSERT_EQ(server.requests().size(), 2u);
  EXPECT_EQ(server.requests()[1], "GET /file HTTP/1.1 100000-");
}

TEST_F(Zoo, GetGoesOnWhereItWasKilled) {
  if (!HasCurl()) GTEST_SKIP() << "the program curl is not installed";
  FileServer server(content_, {.cut = 200000, .hang = true});
  WriteFar(server.url() + "/file");
  const fs::path part = folder_ / "zoo/far/far.caffemodel.part";
  {
    Running running({"crema", "zoo", "get", "far", "--zoo=zoo"}, {.folder = folder_.path()});
    std::error_code error;
    while (!running.ended() && !(fs::exists(part, error) && fs::file_size(part, error) >= 100000)) usleep(10000);
    running.Signal(SIGKILL);
    EXPECT_EQ(running.Wait().signal, SIGKILL);
  }
  EXPECT_FALSE(fs::exists(folder_ / "zoo/far/far.caffemodel"));
  const Finished got = Run({"get", "far"});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(ReadText(folder_ / "zoo/far/far.caffemodel"), content_);
  EXPECT_NE(server.requests().back().find("HTTP/1.1 "), std::string::npos);
  EXPECT_FALSE(server.requests().back().ends_with("HTTP/1.1")) << "it began anew";
}

TEST_F(Zoo, GetBeginsAnewWhereTheServerCannotGoOn) {
  if (!HasCurl()) GTEST_SKIP() << "the program curl is not installed";
  FileServer whole(content_, {.ranges = false});
  WriteFar(whole.url() + "/file");
  folder_.Write("zoo/far/far.caffemodel.part", content_.substr(0, 5000));
  ASSERT_EQ(Run({"get", "far"}).exit_code, 0);
  EXPECT_EQ(ReadText(folder_ / "zoo/far/far.caffemodel"), content_);
  // What is there is longer than the file: a reply of 416.
  fs::remove(folder_ / "zoo/far/far.caffemodel");
  FileServer ranges(content_, {});
  WriteFar(ranges.url() + "/file");
  folder_.Write("zoo/far/far.caffemodel.part", content_ + "more");
  const Finished got = Run({"get", "far"});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(ReadText(folder_ / "zoo/far/far.caffemodel"), content_);
}

TEST_F(Zoo, GetKeepsWhatItHasWhereTheMirrorHasNothing) {
  if (!HasCurl()) GTEST_SKIP() << "the program curl is not installed";
  FileServer server(content_, {});
  WriteFar(server.url() + "/file");
  folder_.Write("zoo/far/far.caffemodel.part", content_.substr(0, 5000));
  const Finished got = Run({"get", "far", "--mirror=" + server.url() + "/elsewhere"});
  ASSERT_EQ(got.exit_code, 0) << got.err;
  EXPECT_EQ(server.requests().back(), "GET /file HTTP/1.1 5000-");
}

TEST_F(Zoo, GetWithoutCurlSaysSo) {
  WriteFar("https://127.0.0.1:1/file");
  const std::string path = std::getenv("PATH");
  setenv("PATH", folder_.path().c_str(), 1);
  const Finished got = Run({"get", "far"});
  setenv("PATH", path.c_str(), 1);
  EXPECT_EQ(got.exit_code, 1);
  EXPECT_TRUE(got.Says("the program curl, which fetches from the network, is not installed")) << got.err;
}

}  // namespace
}  // namespace crema::testing_tools
