// docs/adding_a_layer.md shows a real layer: its code and cases are those in the tree.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "source_folder.h"

namespace crema::testing {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream in(SourceFolder() + "/" + path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Guide, ShowsTheLayerAsItIs) {
  const std::string guide = ReadFile("docs/adding_a_layer.md");
  for (const char* path : {"src/layers/swish.cc", "tests/layers/Swish.prototxt"}) {
    const std::string text = ReadFile(path);
    ASSERT_FALSE(text.empty()) << path;
    EXPECT_NE(guide.find(text), std::string::npos) << "docs/adding_a_layer.md does not show " << path << " as it is";
  }
}

}  // namespace
}  // namespace crema::testing
