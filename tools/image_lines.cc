#include "tools/image_lines.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "crema/error.h"

namespace crema::tools {

ImageLines::ImageLines(const CommandLine& line, const ImageItems& items, bool skip_broken, std::string what)
    : line_(line), items_(items), what_(std::move(what)), skips_(skip_broken) {
  // Lines on a terminal are progress enough.
  if (what_.empty() || !isatty(STDOUT_FILENO)) {
    progress_.emplace("images").SetTotal(static_cast<int64_t>(items.count()));
  }
}

void ImageLines::Print(const std::string& text) {
  std::cout << text;
  if (!std::cout) throw EnvironmentError(what_ + " cannot be written to stdout");
}

void ImageLines::Print(uint64_t image, const std::string& problem, const std::string& text) {
  if (!problem.empty()) {
    const std::string name = items_.Name(image);
    if (!skips_) throw UserError(Location{name}, problem);
    ++broken_;
    const std::string warning = name + ": warning: " + problem + "; skipped";
    progress_ ? progress_->Say(warning) : void(std::cerr << warning << "\n");
  }
  Print(text);
  if (progress_) progress_->Add(1, 0);
}

void ImageLines::Finish() {
  progress_.reset();
  std::cout.flush();
  Print("");
  if (broken_ == items_.count()) throw UserError(Location{line_.program}, "none of the images can be read");
}

}  // namespace crema::tools
