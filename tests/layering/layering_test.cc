#include "layering/layering.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iostream>
#include <regex>

#include "source_folder.h"
#include "temporary_folder.h"

namespace crema::layering {
namespace {

namespace fs = std::filesystem;

// A made-up tree with the real one's table, so that each rule is seen to fail.
class MadeUpTree : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(root_ / "src");
    fs::copy_file(fs::path(SourceFolder()) / "src" / "CMakeLists.txt", root_ / "src" / "CMakeLists.txt");
    Write("src/base/check.h", "#include <string>\n");
    Write("src/ops/matrices/gemm.h", "#include \"base/check.h\"\n");
    Write("src/layers/pooling.h", "#include \"crema/layer.h\"\n#include \"ops/matrices/gemm.h\"\n");
    Write("include/crema/layer.h", "#include \"crema/net.pb.h\"\n");
  }

  void Write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  // The only error of a tree that also holds `file`.
  std::string ErrorOf(const std::string& file, const std::string& text) {
    Write(file, text);
    const Findings findings = CheckTree(root_);
    EXPECT_EQ(findings.errors.size(), 1u) << testing::PrintToString(findings.errors);
    return findings.errors.empty() ? "" : findings.errors[0];
  }

  TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

TEST(Layering, TheTreeKeepsItsEdges) {
  const Findings findings = CheckTree(SourceFolder());
  for (const std::string& warning : findings.warnings) std::cout << "layering: warning: " << warning << "\n";
  for (const std::string& error : findings.errors) ADD_FAILURE() << error;
  EXPECT_GT(findings.files, 20);
  EXPECT_GT(findings.includes, 100);
}

TEST(Layering, ReadsTheTableAndFollowsIt) {
  const Edges edges = ReadEdges(fs::path(SourceFolder()) / "src" / "CMakeLists.txt");
  ASSERT_TRUE(edges.count("ops") && edges.count("layers") && edges.count("data"));
  EXPECT_TRUE(edges.at("ops").count("base"));
  EXPECT_TRUE(edges.at("layers").count("schema"));
  EXPECT_FALSE(edges.at("ops").count("proto"));
  EXPECT_FALSE(edges.at("ops").count("layers"));
  EXPECT_FALSE(edges.at("data").count("layers"));
  EXPECT_FALSE(edges.at("base").count("tensor"));
}

// With what those use in turn, as ReadEdges has it; the schema's own messages go without saying there.
Edges EdgesOfThePage() {
  static const std::regex row(R"(\| `src/(\w+)` \|.*\| ([\w, -]+) \|)"), word(R"(\w+)");
  std::ifstream page(fs::path(SourceFolder()) / "docs" / "architecture.md");
  Edges edges;
  std::smatch match;
  for (std::string line; std::getline(page, line);) {
    if (!std::regex_match(line, match, row)) continue;
    std::set<std::string>& allowed = edges[match[1]] = {match[1]};
    const std::string used = match[2];
    for (std::sregex_iterator at(used.begin(), used.end(), word), end; at != end; ++at) {
      allowed.insert(at->str());
      if (const auto known = edges.find(at->str()); known != edges.end()) {
        allowed.insert(known->second.begin(), known->second.end());
      }
    }
  }
  return edges;
}

TEST(Layering, ThePageOfTheArchitectureSaysTheSameEdges) {
  Edges built = ReadEdges(fs::path(SourceFolder()) / "src" / "CMakeLists.txt");
  for (auto& [folder, allowed] : built) allowed.erase("proto");
  const Edges page = EdgesOfThePage();
  for (const auto& [folder, allowed] : built) {
    ASSERT_TRUE(page.count(folder)) << folder;
    EXPECT_EQ(page.at(folder), allowed) << folder;
  }
  EXPECT_EQ(page.size(), built.size());
}

TEST_F(MadeUpTree, GoodOnePasses) {
  Write("src/data/lmdb_reader.cc", "#include <lmdb.h>\n#include \"crema/data.pb.h\"\n");
  Write("src/cuda/a.cc", "#include <cuda_runtime.h>\n");
  Write("src/hdf5/a.cc", "#include <hdf5.h>\n#include \"base/check.h\"\n");
  Write("src/cuda/a.cu", "#include <cublas_v2.h>\n");
  Write("tools/flags.h", "#include <string>\n");
  Write("tools/train.cc",
        "#include \"flags.h\"\n#include \"layers/pooling.h\"\n#include <google/protobuf/text_format.h>\n");
  const Findings findings = CheckTree(root_);
  EXPECT_TRUE(findings.errors.empty()) << testing::PrintToString(findings.errors);
  EXPECT_TRUE(findings.warnings.empty());
  EXPECT_EQ(findings.files, 10);
  EXPECT_EQ(findings.includes, 15);
}

TEST_F(MadeUpTree, UpwardEdgeFailsWithItsPlace) {
  const std::string error = ErrorOf("src/ops/bad.cc", "#include <vector>\n\n  # include \"layers/pooling.h\"  // no\n");
  EXPECT_TRUE(error.starts_with("src/ops/bad.cc:3: includes layers/pooling.h")) << error;
}

TEST_F(MadeUpTree, UpwardEdgeThroughAPublicHeaderFails) {
  EXPECT_TRUE(ErrorOf("src/data/bad.cc", "#include \"crema/layer.h\"\n").starts_with("src/data/bad.cc:1:"));
}

TEST_F(MadeUpTree, ProtobufInOpsFails) { ErrorOf("src/ops/bad.cc", "#include <google/protobuf/message.h>\n"); }

TEST_F(MadeUpTree, GeneratedHeaderInOpsFails) { ErrorOf("src/ops/bad.cc", "#include \"crema/layers/vision.pb.h\"\n"); }

TEST_F(MadeUpTree, MessagesOfAFolderAreThatFolders) {
  Write("src/onnx/model.proto", "");
  Write("src/onnx/a.cc", "#include \"onnx/model.pb.h\"\n");
  const std::string error = ErrorOf("src/ops/bad.cc", "#include \"onnx/model.pb.h\"\n");
  EXPECT_NE(error.find("not onnx"), std::string::npos) << error;
}

TEST_F(MadeUpTree, LmdbOutsideDataFails) { ErrorOf("tools/bad.cc", "#include <lmdb.h>\n"); }

TEST_F(MadeUpTree, ZeroMqOutsideDistributedFails) { ErrorOf("src/solver/bad.cc", "#include <zmq.hpp>\n"); }

TEST_F(MadeUpTree, CudaOutsideItsPlacesFails) { ErrorOf("src/ops/bad.cc", "#include <cuda_runtime.h>\n"); }

TEST_F(MadeUpTree, Hdf5OutsideItsPlaceFails) {
  const std::string error = ErrorOf("src/data/bad.cc", "#include <hdf5.h>\n");
  EXPECT_NE(error.find("only src/hdf5"), std::string::npos) << error;
}

TEST_F(MadeUpTree, LevelDbOutsideItsPlaceFails) {
  Write("src/leveldb/a.cc", "#include <leveldb/db.h>\n#include \"base/check.h\"\n");
  const std::string error = ErrorOf("src/data/bad.cc", "#include <leveldb/db.h>\n");
  EXPECT_NE(error.find("only src/leveldb"), std::string::npos) << error;
}

TEST_F(MadeUpTree, MpiOutsideItsPlaceFails) {
  const std::string error = ErrorOf("src/solver/bad.cc", "#include <mpi.h>\n");
  EXPECT_NE(error.find("only src/mpi"), std::string::npos) << error;
}

TEST_F(MadeUpTree, OneDnnOutsideOpsFails) { ErrorOf("src/layers/bad.cc", "#include <oneapi/dnnl/dnnl.hpp>\n"); }

TEST_F(MadeUpTree, RelativeIncludeFails) { ErrorOf("src/ops/bad.cc", "#include \"gemm.h\"\n"); }

TEST_F(MadeUpTree, PublicHeaderThatIncludesSourcesFails) {
  // Installed, it would not compile.
  ErrorOf("include/crema/net.h", "#include \"base/check.h\"\n");
}

TEST_F(MadeUpTree, PublicHeaderWithoutAnOwnerFails) { ErrorOf("include/crema/surprise.h", "#include <string>\n"); }

TEST_F(MadeUpTree, MissingPublicHeaderFails) { ErrorOf("src/solver/bad.cc", "#include \"crema/typo.h\"\n"); }

TEST_F(MadeUpTree, FolderWithoutAComponentFails) { ErrorOf("src/misc/bad.cc", "#include <string>\n"); }

TEST_F(MadeUpTree, LongSourceIsAWarning) {
  Write("src/ops/long.cc", std::string(401, '\n'));
  const Findings findings = CheckTree(root_);
  EXPECT_TRUE(findings.errors.empty());
  ASSERT_EQ(findings.warnings.size(), 1u);
  EXPECT_TRUE(findings.warnings[0].starts_with("src/ops/long.cc: 401 lines"));
}

}  // namespace
}  // namespace crema::layering
