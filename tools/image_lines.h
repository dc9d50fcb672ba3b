// What commands print of images, one after the other.
#ifndef CREMA_TOOLS_IMAGE_LINES_H_
#define CREMA_TOOLS_IMAGE_LINES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/progress_line.h"
#include "inference/image_items.h"
#include "tools/command_line.h"

namespace crema::tools {

// Images that are left out: the first 20 with each problem are named, as all may have the same one.
class SkippedImages {
 public:
  // The warning; empty for those that are not named.
  std::string Add(const std::string& name, const std::string& problem);
  // Warnings that count these, one for each problem.
  std::vector<std::string> Rest() const;
  uint64_t count() const { return count_; }

 private:
  std::map<std::string, uint64_t> by_problem_;
  uint64_t count_ = 0;
};

class ImageLines {
 public:
  // `what` is printed, in messages; empty: nothing is, so that progress is always shown. `line` and `items` must
  // outlive this. With `skip_broken` images that cannot be read are reported and left out.
  ImageLines(const CommandLine& line, const ImageItems& items, bool skip_broken, std::string what);

  // Writes to stdout; throws EnvironmentError where that fails.
  void Print(const std::string& text);
  // The lines of an image, with its progress where stdout is no terminal. `problem`: why it cannot be read, or empty;
  // throws UserError then, unless such images are skipped.
  void Print(uint64_t image, const std::string& problem, const std::string& text);
  // Reports the images that were left out without a name; throws UserError where none of the images could be read.
  void Finish();

 private:
  void Warn(const std::string& text);

  const CommandLine& line_;
  const ImageItems& items_;
  const std::string what_;
  const bool skips_;
  SkippedImages skipped_;
  std::optional<ProgressLine> progress_;
};

}  // namespace crema::tools

#endif  // CREMA_TOOLS_IMAGE_LINES_H_
