#include "mpi/mpirun.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "files.h"
#include "source_folder.h"

namespace crema::testing_tools {

namespace fs = std::filesystem;

std::string WhyNoRanks() {
  const char* library = std::getenv("CREMA_MPI_LIBRARY");
  if (!library && !fs::exists(fs::path(ProgramFolder()) / "../lib/libcrema_mpi.so")) {
    return "this crema was built without MPI (libopenmpi-dev)";
  }
  const Finished version = RunProgram({"/usr/bin/env", "mpirun", "--version"});
  if (version.exit_code != 0) return "there is no mpirun (openmpi-bin)";
  if (version.out.find("Open MPI") == std::string::npos) return "mpirun is not Open MPI's, whose flags the tests use";
  return "";
}

int MajorOfMpirun() {
  const std::string version = RunProgram({"/usr/bin/env", "mpirun", "--version"}).out;
  const std::string name = "(Open MPI) ";
  const size_t at = version.find(name);
  return at == std::string::npos ? 0 : std::atoi(version.c_str() + at + name.size());
}

std::vector<pid_t> ChildrenOf(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const std::string text = ReadFile(entry.path() / "stat");
    const size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream words(text.substr(end + 1));
    std::string state;
    pid_t of = 0;
    words >> state >> of;
    if (of == parent && state != "Z") children.push_back(std::stoi(name));
  }
  std::sort(children.begin(), children.end());
  return children;
}

void Mpirun::SetUp() {
  static const std::string why = WhyNoRanks();
  if (!why.empty()) GTEST_SKIP() << why;
}

void Mpirun::Write(const ScratchFolder& folder, TinyTraining training) {
  WriteTinyTraining(folder, training);
  std::string net = ReadText(folder / "net.prototxt");
  const std::string dropout = "layer { name: \"drop1\"";
  const size_t at = net.find(dropout);
  ASSERT_NE(at, std::string::npos);
  net.erase(at, net.find('\n', at) - at);
  folder.Write("net.prototxt", net);
}

std::vector<std::string> Mpirun::Command(const std::vector<Ranks>& ranks, const std::vector<std::string>& more,
                                         const std::vector<std::string>& mpirun) {
  std::vector<std::string> words = {"/usr/bin/env",    "mpirun",    "--allow-run-as-root",
                                    "--oversubscribe", "--bind-to", "none"};
  words.insert(words.end(), mpirun.begin(), mpirun.end());
  int count = 0;
  for (const Ranks& alike : ranks) count += alike.count;
  words.insert(words.end(), {"-n", std::to_string(count)});
  std::string script;
  int end = 0;
  for (const Ranks& alike : ranks) {
    end += alike.count;
    std::vector<std::string> program = {std::string(CREMA_BIN_DIR) + "/train", "--engine=MPI", "--threads=1"};
    const bool own_solver = std::any_of(alike.flags.begin(), alike.flags.end(),
                                        [](const std::string& flag) { return flag.starts_with("--solver="); });
    if (!own_solver) program.push_back("--solver=solver.prototxt");
    program.insert(program.end(), alike.flags.begin(), alike.flags.end());
    program.insert(program.end(), more.begin(), more.end());
    if (ranks.size() == 1) {
      words.insert(words.end(), program.begin(), program.end());
      return words;
    }
    script += "if [ $OMPI_COMM_WORLD_RANK -lt " + std::to_string(end) + " ]; then ";
    if (!alike.variable.empty()) script += "export " + alike.variable + " && ";
    if (!alike.folder.empty()) script += "cd '" + alike.folder + "' && ";
    script += "exec";
    for (const std::string& word : program) script += " '" + word + "'";
    script += "; fi\n";
  }
  words.insert(words.end(), {"/bin/sh", "-c", script});
  return words;
}

std::unique_ptr<Running> Mpirun::Start(const std::vector<Ranks>& ranks, const std::vector<std::string>& more,
                                       const std::vector<std::string>& mpirun) const {
  // Where two begin at once and share one, either may find that the other has made the folder of Open MPI's sessions,
  // and end.
  return std::make_unique<Running>(Command(ranks, more, mpirun),
                                   Setting{.folder = folder_.path(), .temporary = folder_.path()});
}

Finished Mpirun::Run(const std::vector<Ranks>& ranks, const std::vector<std::string>& more) const {
  return Start(ranks, more)->Wait();
}

Finished Mpirun::RunAlone(const std::vector<std::string>& flags) const {
  std::vector<std::string> words = {"train", "--solver=solver.prototxt", "--threads=1"};
  words.insert(words.end(), flags.begin(), flags.end());
  return RunProgram(words, {.folder = folder_.path()});
}

std::string Mpirun::Model(int iteration) const {
  const std::string model = testing_tools::Model(folder_, iteration);
  EXPECT_FALSE(model.empty()) << "no model of iteration " << iteration;
  return model;
}

bool Mpirun::HasState(int iteration) const {
  return fs::exists(folder_ / ("tiny_iter_" + std::to_string(iteration) + ".solverstate"));
}

int Mpirun::NewestState() const { return testing_tools::NewestState(folder_); }

void Mpirun::RemoveSnapshots() const {
  for (const auto& entry : fs::directory_iterator(folder_.path())) {
    if (entry.path().filename().string().starts_with("tiny_iter_")) fs::remove(entry.path());
  }
}

}  // namespace crema::testing_tools
