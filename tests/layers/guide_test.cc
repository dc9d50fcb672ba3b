// docs/adding_a_layer.md shows a real layer: its code and cases are those in the tree. docs/layers.md names every type.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "crema/layer.h"
#include "files.h"
#include "source_folder.h"

namespace crema::testing {
namespace {

std::string ReadSource(const std::string& path) { return ReadFile(SourceFolder() + "/" + path); }

TEST(Guide, ShowsTheLayerAsItIs) {
  const std::string guide = ReadSource("docs/adding_a_layer.md");
  for (const char* path : {"src/layers/swish.cc", "tests/layers/Swish.prototxt"}) {
    const std::string text = ReadSource(path);
    ASSERT_FALSE(text.empty()) << path;
    EXPECT_NE(guide.find(text), std::string::npos) << "docs/adding_a_layer.md does not show " << path << " as it is";
  }
}

TEST(Guide, ListsEveryLayerType) {
  const std::string page = ReadSource("docs/layers.md");
  std::set<std::string> listed, registered;
  static const std::regex row("(?:^|\\n)\\| (`[^|]*`) \\|"), name("`(\\w+)`");
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) {
    const std::string names = (*at)[1];
    for (std::sregex_iterator in(names.begin(), names.end(), name); in != end; ++in) listed.insert((*in)[1]);
  }
  for (const LayerType* type : LayerTypes()) registered.insert(type->name);
  EXPECT_EQ(listed, registered);
}

}  // namespace
}  // namespace crema::testing
