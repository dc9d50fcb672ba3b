// What commands print of images, one after the other.
#ifndef CREMA_TOOLS_IMAGE_LINES_H_
#define CREMA_TOOLS_IMAGE_LINES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "data/progress_line.h"
#include "inference/image_items.h"
#include "tools/command_line.h"

namespace crema::tools {

class ImageLines {
 public:
  // `what` is printed, in messages; empty: nothing is, so that progress is always shown. `line` and `items` must
  // outlive this. With `skip_broken` images that cannot be read are reported and counted.
  ImageLines(const CommandLine& line, const ImageItems& items, bool skip_broken, std::string what);

  // Writes to stdout; throws EnvironmentError where that fails.
  void Print(const std::string& text);
  // The lines of an image, with its progress where stdout is no terminal. `problem`: why it cannot be read, or empty;
  // throws UserError then, unless such images are skipped.
  void Print(uint64_t image, const std::string& problem, const std::string& text);
  // Throws UserError where none of the images could be read.
  void Finish();

 private:
  const CommandLine& line_;
  const ImageItems& items_;
  const std::string what_;
  const bool skips_;
  uint64_t broken_ = 0;
  std::optional<ProgressLine> progress_;
};

}  // namespace crema::tools

#endif  // CREMA_TOOLS_IMAGE_LINES_H_
