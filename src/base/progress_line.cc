#include "base/progress_line.h"

#include <algorithm>
#include <utility>

#include "base/byte_size.h"
#include "base/duration.h"
#include "base/number_text.h"

namespace crema {

ProgressLine::ProgressLine(std::string unit) : ProgressLine(std::move(unit), StderrTerminal()) {}

ProgressLine::ProgressLine(std::string unit, const Terminal& terminal)
    : unit_(std::move(unit)), start_(terminal.seconds()), line_(terminal, start_) {}

void ProgressLine::Add(int64_t records, int64_t bytes) {
  records_ += records;
  bytes_ += bytes;
  if (line_.IsDue()) line_.Draw(Text());
}

void ProgressLine::Say(const std::string& text) {
  line_.Erase();
  line_.terminal().write(text + "\n");
}

std::string ProgressLine::Speed() const {
  const double seconds = Elapsed();
  const double rate = static_cast<double>(records_) / std::max(seconds, 1e-3);
  return FormatNumber(rate, rate < 10 ? "%.2f " : "%.0f ") + unit_ + "/s";
}

std::string ProgressLine::Text() const {
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
