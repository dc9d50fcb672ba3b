#include "base/progress_line.h"

#include <gtest/gtest.h>

namespace crema {
namespace {

TEST(ProgressLine, IsRewrittenOnTerminalsOnly) {
  double now = 0;
  std::string text;
  const auto write = [&](const std::string& more) { text += more; };
  const auto clock = [&] { return now; };
  int columns = 80;
  const auto width = [&] { return columns; };
  {
    ProgressLine line("images", {write, width, clock, true});
    line.SetTotal(400);
    now = 2;
    line.Add(100, 1 << 20);
    EXPECT_EQ(text, "\r\x1b[K100/400 images 25%  1.0 MiB  50 images/s  6s left\r");
    line.Add(1, 0);  // too soon
    text.clear();
    // The window was made smaller.
    columns = 19;
    now = 3;
    line.Add(99, 0);
    EXPECT_EQ(text, "\r\x1b[K200/400 images 50%\r");
    text.clear();
    line.Say("a note");
    EXPECT_EQ(text, "\r\x1b[Ka note\n");
  }
  text.clear();
  now = 0;
  ProgressLine line("images", {write, width, clock, false});
  now = 9;
  line.Add(100, 1 << 20);
  EXPECT_EQ(text, "");
  now = 20;
  line.Add(100, 0);
  EXPECT_EQ(text, "200 images  1.0 MiB  10 images/s\n");
  EXPECT_EQ(line.Summary(), "200 images, 1.0 MiB in 20.0s: 10 images/s");
}

}  // namespace
}  // namespace crema
