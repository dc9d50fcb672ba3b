#include "layering/layering.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include "files.h"

namespace crema::layering {

namespace {

namespace fs = std::filesystem;

constexpr int kLongSource = 400;  // lines

// The lowest component that may include each public header: the one that implements it, but for net.h, whose options
// the compiler reads already.
const std::map<std::string, std::string> kPublicHeaders = {
    {"crema/context.h", "base"},        {"crema/device.h", "device"},
    {"crema/error.h", "base"},          {"crema/tensor.h", "tensor"},
    {"crema/files.h", "schema"},        {"crema/layer.h", "graph"},
    {"crema/net.h", "compiler"},        {"crema/solver.h", "solver"},
    {"crema/observer.h", "solver"},     {"crema/parameter_layout.h", "tensor"},
    {"crema/batch_schedule.h", "base"}, {"crema/data_supply.h", "base"},
    {"crema/fusion.h", "graph"},
};

// Outside headers that only some files may include.
struct OutsideRule {
  std::regex header, allowed_files;
  const char* remedy;
};

const std::vector<OutsideRule>& OutsideRules() {
  static const std::vector<OutsideRule> rules = {
      {std::regex("lmdb\\.h"), std::regex("src/data/.*"), "only src/data reads and writes LMDB"},
      {std::regex("zmq.*"), std::regex("src/distributed/.*"), "only src/distributed uses ZeroMQ"},
      {std::regex("(cuda.*|cublas.*|cudnn.*|curand.*|cub/.*|thrust/.*|cooperative_groups.*|nvtx.*|nccl\\.h)"),
       std::regex("(src|tests)/cuda/.*"), "CUDA stays in src/cuda and tests/cuda"},
      {std::regex("(hdf5|hdf5_hl|H5\\w+)\\.h"), std::regex("(src|tests)/hdf5/.*"), "only src/hdf5 calls HDF5"},
      {std::regex("leveldb/.*"), std::regex("(src|tests)/leveldb/.*"), "only src/leveldb calls LevelDB"},
      {std::regex("mpi\\.h"), std::regex("src/mpi/.*"), "only src/mpi calls MPI"},
      {std::regex("(oneapi/dnnl/.*|dnnl.*|cblas\\.h)"), std::regex("src/ops/.*"), "only src/ops calls oneDNN and BLAS"},
  };
  return rules;
}

struct Include {
  int line;
  bool angled;
  std::string header;
};

std::vector<Include> Includes(const std::string& text, int* lines) {
  static const std::regex pattern(R"(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)");
  std::vector<Include> includes;
  std::istringstream stream(text);
  std::string line;
  for (*lines = 0; std::getline(stream, line);) {
    ++*lines;
    std::smatch match;
    if (line.find("include") != std::string::npos && std::regex_match(line, match, pattern)) {
      includes.push_back({*lines, match[1] == "<", match[2]});
    }
  }
  return includes;
}

// "ops" for src/ops/matrices/gemm.cc; "" for programs, which may use everything.
std::string ComponentOf(const std::string& file) {
  if (const auto at = kPublicHeaders.find(file.substr(file.find('/') + 1));
      file.starts_with("include/") && at != kPublicHeaders.end()) {
    return at->second;
  }
  if (!file.starts_with("src/")) return "";
  const size_t end = file.find('/', 4);
  return end == std::string::npos ? "" : file.substr(4, end - 4);
}

bool IsGenerated(const std::string& header) { return header.ends_with(".pb.h") && header.starts_with("crema/"); }

class Checker {
 public:
  Checker(const fs::path& root, Edges edges) : root_(root), edges_(std::move(edges)) {}

  void CheckFile(const std::string& file, Findings* findings) const {
    int lines = 0;
    const auto includes = Includes(ReadFile(root_ / file), &lines);
    ++findings->files;
    if (lines > kLongSource) {
      findings->warnings.push_back(file + ": " + std::to_string(lines) + " lines; is it more than one concern?");
    }
    if (file.starts_with("include/") && !kPublicHeaders.count(file.substr(8))) {
      findings->errors.push_back(file + ":1: public header without an owner; add it to kPublicHeaders in " +
                                 "tests/layering/layering.cc");
    }
    const std::string component = ComponentOf(file);
    if (file.starts_with("src/") && !edges_.count(component)) {
      findings->errors.push_back(file + ":1: no crema_component() line in src/CMakeLists.txt covers this folder");
      return;
    }
    for (const Include& include : includes) {
      ++findings->includes;
      const std::string problem = Problem(file, component, include);
      if (!problem.empty()) {
        findings->errors.push_back(file + ":" + std::to_string(include.line) + ": includes " + include.header +
                                   ", but " + problem);
      }
    }
  }

 private:
  bool MayUse(const std::string& component, const std::string& used) const {
    return component.empty() || edges_.at(component).count(used) > 0;
  }

  std::string MayNot(const std::string& component, const std::string& used) const {
    std::string allowed;
    for (const std::string& name : edges_.at(component)) allowed += (allowed.empty() ? "" : ", ") + name;
    return component + " may only use " + allowed + ", not " + used + " (src/CMakeLists.txt)";
  }

  // Why a file of `component` may not include it; empty if it may.
  std::string Problem(const std::string& file, const std::string& component, const Include& include) const {
    const std::string& header = include.header;
    for (const OutsideRule& rule : OutsideRules()) {
      if (std::regex_match(header, rule.header) && !std::regex_match(file, rule.allowed_files)) return rule.remedy;
    }
    if (header.starts_with("google/protobuf/") || IsGenerated(header)) {
      return MayUse(component, "proto") ? "" : MayNot(component, "proto");
    }
    const auto public_header = kPublicHeaders.find(header);
    if (public_header != kPublicHeaders.end()) {
      return MayUse(component, public_header->second) ? "" : MayNot(component, public_header->second);
    }
    if (header.starts_with("crema/")) return "there is no such public header";
    if (include.angled) return "";

    if (file.starts_with("include/")) return "public headers include only public ones";
    const std::string used = header.substr(0, header.find('/'));
    // What protobuf makes of a component's own messages.
    const std::string own_schema = header.substr(0, header.find(".pb.h")) + ".proto";
    if (edges_.count(used) && header.ends_with(".pb.h") && fs::exists(root_ / "src" / own_schema)) {
      return MayUse(component, used) ? "" : MayNot(component, used);
    }
    if (edges_.count(used) && fs::exists(root_ / "src" / header)) {
      return MayUse(component, used) ? "" : MayNot(component, used);
    }
    // Programs may keep a header of their own beside them.
    const bool beside = fs::exists((root_ / file).parent_path() / header) || fs::exists(root_ / header);
    if (component.empty() && beside) return "";
    return "includes are written from src/ or include/, and there is no such file there";
  }

  fs::path root_;
  Edges edges_;
};

}  // namespace

Edges ReadEdges(const fs::path& cmake_file) {
  static const std::regex line(R"(\n\s*crema_(?:component|plugin)\(\s*(\w+)([^)]*)\))");
  const std::string text = "\n" + ReadFile(cmake_file);
  Edges edges;
  for (std::sregex_iterator at(text.begin(), text.end(), line), end; at != end; ++at) {
    const std::string name = (*at)[1];
    std::istringstream words((*at)[2]);
    std::set<std::string> allowed = {name};
    bool uses = false;
    for (std::string word; words >> word;) {
      if (word == "USES" || word == "LINKS") {
        uses = word == "USES";
      } else if (uses) {
        allowed.insert(word);
        if (const auto used = edges.find(word); used != edges.end()) {
          allowed.insert(used->second.begin(), used->second.end());
        }
      }
    }
    edges[name] = allowed;
  }
  return edges;
}

Findings CheckTree(const fs::path& root) {
  static const std::set<std::string> kExtensions = {".cc", ".h", ".cu", ".cuh", ".inc"};
  const Checker checker(root, ReadEdges(root / "src" / "CMakeLists.txt"));
  std::vector<std::string> files;
  for (const char* folder : {"src", "include", "tools", "data_tools"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (entry.is_regular_file() && kExtensions.count(entry.path().extension().string())) {
        files.push_back(fs::relative(entry.path(), root).string());
      }
    }
  }
  std::sort(files.begin(), files.end());
  Findings findings;
  for (const std::string& file : files) checker.CheckFile(file, &findings);
  return findings;
}

}  // namespace crema::layering
