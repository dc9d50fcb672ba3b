#include "image/draw.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

namespace crema {
namespace {

Image Black(int height, int width, int channels = 3) {
  Image image;
  image.Resize(height, width, channels);
  return image;
}

// The image's rows, of pixels that are black ".", of the kind's colour "o", or of another one "x".
std::string Picture(const Image& image, int kind) {
  const auto color = ColorOfKind(kind);
  std::string picture;
  for (int y = 0; y < image.height; ++y) {
    for (int x = 0; x < image.width; ++x) {
      const uint8_t* const pixel = image.row(y) + 3 * x;
      const bool is_black = pixel[0] == 0 && pixel[1] == 0 && pixel[2] == 0;
      picture += is_black ? "." : std::equal(color.begin(), color.end(), pixel) ? "o" : "x";
    }
    picture += "\n";
  }
  return picture;
}

std::string Drawn(const DrawnBox& box, int height, int width) {
  Image image = Black(height, width);
  DrawBoxes({&box, 1}, &image);
  return Picture(image, box.kind);
}

TEST(DrawBoxes, EnclosesTheirPixels) {
  EXPECT_EQ(Drawn({.xmin = 1, .ymin = 1.4f, .xmax = 4.6f, .ymax = 4, .text = ""}, 5, 7),
            ".......\n"
            ".oooo..\n"
            ".o..o..\n"
            ".oooo..\n"
            ".......\n");
}

TEST(DrawBoxes, CutsOffWhatLiesBesideTheImage) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Drawn({.xmin = -3, .ymin = 1, .xmax = 2, .ymax = 1e30f, .text = ""}, 3, 4), "....\noo..\noo..\n");
  EXPECT_EQ(Drawn({.xmin = nan, .ymin = -infinity, .xmax = infinity, .ymax = nan, .text = ""}, 3, 4),
            "oooo\n....\n....\n");
  EXPECT_EQ(Drawn({.xmin = 9, .ymin = 9, .xmax = 12, .ymax = 12, .text = "far"}, 2, 2).size(), 6U);
}

TEST(DrawBoxes, WritesTheTextAboveTheBox) {
  // Dark blue, on which letters are white.
  int dark = 0;
  while (ColorOfKind(dark)[0] < 200 || ColorOfKind(dark)[1] > 100 || ColorOfKind(dark)[2] > 100) ++dark;
  EXPECT_EQ(Drawn({.xmin = 2, .ymin = 9, .xmax = 9, .ymax = 11, .kind = dark, .text = "T"}, 11, 10),
            "..ooooooo.\n"
            "..oxxxxxo.\n"
            "..oooxooo.\n"
            "..oooxooo.\n"
            "..oooxooo.\n"
            "..oooxooo.\n"
            "..oooxooo.\n"
            "..oooxooo.\n"
            "..ooooooo.\n"
            "..ooooooo.\n"
            "..ooooooo.\n");
  // No room above, nor on the right.
  const std::string within = Drawn({.xmin = 5, .ymin = 4, .xmax = 9, .ymax = 14, .kind = dark, .text = "T"}, 14, 10);
  EXPECT_EQ(within.substr(0, 11 * 4), "..........\n..........\n..........\n..........\n");
  EXPECT_EQ(within.substr(11 * 5, 11), "...oxxxxxo\n");
}

TEST(DrawBoxes, WritesOneSignForEachCharacter) {
  const auto text = [](const std::string& text) {
    return Drawn({.xmin = 0, .ymin = 20, .xmax = 3, .ymax = 30, .text = text}, 30, 60);
  };
  EXPECT_EQ(text("Bär"), text("B?r"));
  EXPECT_EQ(text("\xff\n"), text("??"));
  EXPECT_NE(text("Bar"), text("bar"));
}

TEST(DrawBoxes, MakesGreyImagesColoured) {
  Image image = Black(4, 4, 1);
  image.row(3)[3] = 7;
  const DrawnBox box = {.xmin = 0, .ymin = 0, .xmax = 3, .ymax = 3, .text = ""};
  DrawBoxes({&box, 1}, &image);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(Picture(image, 0), "ooo.\no.o.\nooo.\n...x\n");
}

TEST(DrawBoxes, LinesGrowWithTheImage) {
  Image image = Black(1000, 1200);
  const DrawnBox box = {.xmin = 100, .ymin = 100, .xmax = 200, .ymax = 200, .text = ""};
  DrawBoxes({&box, 1}, &image);
  const auto at = [&](int x) { return image.row(150)[3 * x + 2] != 0 || image.row(150)[3 * x] != 0; };
  EXPECT_TRUE(at(100) && at(102));
  EXPECT_FALSE(at(99) || at(103));
}

TEST(ColorOfKind, DiffersBetweenKinds) {
  std::set<std::array<uint8_t, 3>> colors;
  for (int kind = -1; kind < 100; ++kind) colors.insert(ColorOfKind(kind));
  EXPECT_GT(colors.size(), 95U);
}

TEST(RowsOfLetter, DifferBetweenLetters) {
  std::set<std::vector<uint8_t>> letters;
  for (char letter = ' '; letter <= '~'; ++letter) {
    const auto rows = RowsOfLetter(letter);
    for (const uint8_t row : rows) EXPECT_LT(row, 32) << letter;
    letters.emplace(rows.begin(), rows.end());
  }
  EXPECT_EQ(letters.size(), 95U);
}

}  // namespace
}  // namespace crema
