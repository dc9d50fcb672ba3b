#include "darknet/cfg_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "crema/error.h"
#include "errors.h"
#include "temporary_folder.h"

namespace crema::darknet {
namespace {

std::string ParseError(const std::string& text) {
  return ThrownBy<UserError>([&] { ParseCfg(text, "a.cfg"); });
}

// Each section in a line: its kind, and key=value of each entry with its line.
std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (const CfgSection& section : ParseCfg(text, "a.cfg")) {
    lines.push_back(section.kind + "@" + std::to_string(section.line));
    for (const CfgEntry& entry : section.entries) {
      lines.back() += " " + entry.key + "=" + entry.value + "@" + std::to_string(entry.line);
    }
  }
  return lines;
}

TEST(CfgFile, ReadsSectionsAndKeys) {
  const std::vector<std::string> wanted = {"net@2 width=416@3 hue=.1@5", "yolo@8 mask=0,1,2@9 anchors=10,13,16,30@10"};
  const std::string text =
      "# a net\n[net]\nwidth=416\n;height=1\n hue = .1 \n\n########\n[yolo]\nmask = 0, 1,2  # the first\n"
      "anchors = 10,13,\t 16,30  ";
  EXPECT_EQ(Lines(text), wanted);
  std::string windows = "\xEF\xBB\xBF";
  for (const char c : text) windows += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_EQ(Lines(windows), wanted);
}

TEST(CfgFile, KeepsAKeyThatIsGivenTwice) {
  EXPECT_EQ(Lines("[net]\na=1\na=2"), (std::vector<std::string>{"net@1 a=1@2 a=2@3"}));
}

TEST(CfgFile, NamesEveryLineThatIsWrong) {
  const std::string error = ParseError("width=1\n[net]\nwidth\n=3\nheight=\n[yolo\n[a]b]\n[]\nclasses=80 [x]\n");
  for (const char* part :
       {"a.cfg:1: error: \"width=1\" stands before any section; a .cfg of Darknet begins with [net]",
        "a.cfg:3: error: \"width\" is neither a [section] nor key=value nor a comment",
        "a.cfg:4: error: \"=3\" is neither", "a.cfg:5: error: \"height\" has no value; give it one, or remove the line",
        "a.cfg:6: error: \"[yolo\" is no heading of a section", "a.cfg:7: error: \"[a]b]\" is no heading",
        "a.cfg:8: error: \"[]\" is no heading"}) {
    EXPECT_NE(error.find(part), std::string::npos) << part << "\n" << error;
  }
  EXPECT_EQ(error.find("a.cfg:9"), std::string::npos) << error;
}

TEST(CfgFile, IsNoCfg) {
  EXPECT_NE(ParseError("").find("a.cfg: error: has no sections; a .cfg of Darknet begins with [net]"),
            std::string::npos);
  EXPECT_NE(ParseError("# nothing\n").find("has no sections"), std::string::npos);
  EXPECT_NE(ParseError(std::string("[net]\n\0", 7)).find("is a binary file (byte 6 is zero), not a .cfg of Darknet"),
            std::string::npos);
  // A line that is far too long is shown in part.
  EXPECT_LT(ParseError(std::string(100000, 'x')).size(), 300u);
  std::string many;
  for (int i = 0; i < 10001; ++i) many += "[net]\n";
  EXPECT_NE(ParseError(many).find("a.cfg:10001: error: has more than 10000 sections"), std::string::npos);
}

TEST(CfgFile, IsReadFromTheDisk) {
  const TemporaryFolder folder;
  std::ofstream(folder / "a.cfg") << "[net]\nwidth=3\n";
  EXPECT_EQ(ReadCfgFile(folder / "a.cfg").size(), 1u);
  EXPECT_THROW(ReadCfgFile(folder / "absent.cfg"), UserError);
  EXPECT_THROW(ReadCfgFile(folder.path()), UserError);
}

}  // namespace
}  // namespace crema::darknet
