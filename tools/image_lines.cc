#include "tools/image_lines.h"

#include <unistd.h>

#include <iostream>
#include <utility>

#include "base/number_text.h"
#include "crema/error.h"

namespace crema::tools {

namespace {

constexpr uint64_t kMostNamed = 20;

}  // namespace

std::string SkippedImages::Add(const std::string& name, const std::string& problem) {
  ++count_;
  std::string kind = problem;  // of images whose names it says, too
  if (const size_t at = kind.find(name); at != std::string::npos) kind.replace(at, name.size(), "...");
  return ++by_problem_[kind] <= kMostNamed ? name + ": warning: " + problem + "; skipped" : "";
}

std::vector<std::string> SkippedImages::Rest() const {
  std::vector<std::string> rest;
  for (const auto& [problem, images] : by_problem_) {
    if (images <= kMostNamed) continue;
    rest.push_back("warning: skipped " + FormatCount(images - kMostNamed) + " more: " + problem);
  }
  return rest;
}

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
    const std::string warning = skipped_.Add(name, problem);
    if (!warning.empty()) Warn(warning);
  }
  Print(text);
  if (progress_) progress_->Add(1, 0);
}

void ImageLines::Warn(const std::string& text) { progress_ ? progress_->Say(text) : void(std::cerr << text << "\n"); }

void ImageLines::Finish() {
  progress_.reset();
  for (const std::string& warning : skipped_.Rest()) Warn(warning);
  std::cout.flush();
  Print("");
  if (skipped_.count() == items_.count()) throw UserError(Location{line_.program}, "none of the images can be read");
}

}  // namespace crema::tools
