#include "data/progress_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/byte_size.h"
#include "base/duration.h"
#include "base/number_text.h"
#include "base/stopwatch.h"

namespace crema {

namespace {

constexpr double kRedraw = 0.1, kNewLine = 10;  // seconds

ProgressLine::Output Stderr() {
  ProgressLine::Output output;
  output.write = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  output.seconds = SteadySeconds;
  const char* kind = std::getenv("TERM");
  output.terminal = isatty(STDERR_FILENO) && kind && std::strcmp(kind, "dumb") != 0;
  winsize size{};
  if (output.terminal && ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) output.columns = size.ws_col;
  return output;
}

}  // namespace

ProgressLine::ProgressLine(std::string unit) : ProgressLine(std::move(unit), Stderr()) {}

ProgressLine::ProgressLine(std::string unit, Output output)
    : unit_(std::move(unit)), output_(std::move(output)), start_(output_.seconds()), last_drawn_(start_) {}

ProgressLine::~ProgressLine() { Erase(); }

void ProgressLine::Add(int64_t records, int64_t bytes) {
  records_ += records;
  bytes_ += bytes;
  const double now = output_.seconds();
  if (now - last_drawn_ < (output_.terminal ? kRedraw : kNewLine)) return;
  last_drawn_ = now;
  if (!output_.terminal) {
    output_.write(Line() + "\n");
    return;
  }
  drawn_ = true;
  // The cursor waits at the line's start, so that whatever else is printed overwrites it. A full line would make some
  // terminals wrap.
  output_.write("\r\x1b[K" + Line().substr(0, static_cast<size_t>(std::max(1, output_.columns - 1))) + "\r");
}

void ProgressLine::Say(const std::string& text) {
  Erase();
  output_.write(text + "\n");
}

void ProgressLine::Erase() {
  if (drawn_) output_.write("\r\x1b[K");
  drawn_ = false;
}

std::string ProgressLine::Speed() const {
  const double seconds = Elapsed();
  const double rate = static_cast<double>(records_) / std::max(seconds, 1e-3);
  return FormatNumber(rate, rate < 10 ? "%.2f " : "%.0f ") + unit_ + "/s";
}

std::string ProgressLine::Line() const {
  std::string text = std::to_string(records_);
  if (total_ > 0) {
    const int percent = static_cast<int>(100.0 * static_cast<double>(records_) / static_cast<double>(total_));
    text += "/" + std::to_string(total_) + " " + unit_ + " " + std::to_string(percent) + "%";
  } else {
    text += " " + unit_;
  }
  if (bytes_ > 0) text += "  " + FormatBytes(static_cast<size_t>(bytes_));
  text += "  " + Speed();
  if (total_ > 0 && records_ > 0) {
    text +=
        "  " +
        FormatDuration(Elapsed() * static_cast<double>(std::max<int64_t>(0, total_ - records_)) / double(records_)) +
        " left";
  }
  return text;
}

std::string ProgressLine::Summary() const {
  const double seconds = Elapsed();
  return std::to_string(records_) + " " + unit_ + ", " + FormatBytes(static_cast<size_t>(bytes_)) + " in " +
         (seconds < 60 ? FormatNumber(seconds, "%.1fs") : FormatDuration(seconds)) + ": " + Speed();
}

}  // namespace crema
