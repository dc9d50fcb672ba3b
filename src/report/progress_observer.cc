#include "report/progress_observer.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/number_text.h"
#include "base/stopwatch.h"

namespace crema {

namespace {

constexpr double kRedraw = 0.1;      // seconds
constexpr double kSmoothing = 0.05;  // weight of the newest iteration
constexpr int kBar = 20;             // columns

}  // namespace

std::unique_ptr<ProgressObserver> ProgressObserver::OnStderr() {
  const char* kind = std::getenv("TERM");
  if (!isatty(STDERR_FILENO) || !kind || std::strcmp(kind, "dumb") == 0) return nullptr;
  Terminal terminal;
  terminal.write = [](const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stderr);
    std::fflush(stderr);
  };
  terminal.columns = [] {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  };
  terminal.seconds = SteadySeconds;
  return std::make_unique<ProgressObserver>(std::move(terminal));
}

void ProgressObserver::OnStart(const TrainingStart& start) {
  Erase();
  iteration_ = start.iteration;
  max_iter_ = start.max_iter;
}

void ProgressObserver::OnIteration(const IterationEnd& end) {
  iteration_ = end.iteration + 1;
  if (!measured_) {
    seconds_each_ = end.seconds;
    loss_ = end.loss;
    measured_ = true;
  } else {
    seconds_each_ += kSmoothing * (end.seconds - seconds_each_);
    loss_ += kSmoothing * (end.loss - loss_);
  }
  const double now = terminal_.seconds();
  if (ever_drawn_ && now - last_drawn_ < kRedraw) return;
  last_drawn_ = now;
  ever_drawn_ = drawn_ = true;
  // The cursor waits at the line's start, so that whatever else is printed overwrites it.
  terminal_.write("\r\x1b[K" + Line(terminal_.columns()) + "\r");
}

void ProgressObserver::Erase() {
  if (drawn_) terminal_.write("\r\x1b[K");
  drawn_ = false;
}

std::string ProgressObserver::Line(int columns) const {
  const double share = max_iter_ > 0 ? std::min(1.0, static_cast<double>(iteration_) / max_iter_) : 1;
  const int filled = static_cast<int>(share * kBar);
  const std::string bar = "[" + std::string(filled, '=') + std::string(kBar - filled, ' ') + "] ";
  std::string text =
      std::to_string(iteration_) + "/" + std::to_string(max_iter_) + " " + FormatNumber(share * 100, "%.0f%%");
  if (seconds_each_ > 0) {
    text += FormatNumber(1 / seconds_each_, seconds_each_ < 0.1 ? "  %.0f it/s" : "  %.2f it/s");
  }
  text += FormatNumber(loss_, "  loss %.4g");
  if (seconds_each_ > 0) text += "  " + FormatDuration(seconds_each_ * std::max(0, max_iter_ - iteration_)) + " left";
  const size_t width = columns > 1 ? columns - 1 : 0;  // a full line would make some terminals wrap
  if (bar.size() + text.size() <= width) text = bar + text;
  return text.substr(0, width);
}

}  // namespace crema
