#include "report/progress_observer.h"

#include <algorithm>

#include "base/number_text.h"

namespace crema {

namespace {

constexpr double kSmoothing = 0.05;  // weight of the newest iteration
constexpr int kBar = 20;             // columns

}  // namespace

std::unique_ptr<ProgressObserver> ProgressObserver::OnStderr() {
  Terminal terminal = StderrTerminal();
  return terminal.moves_cursor ? std::make_unique<ProgressObserver>(std::move(terminal)) : nullptr;
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
  if (line_.IsDue()) line_.Draw(Text(line_.width()));
}

std::string ProgressObserver::Text(size_t width) const {
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
  return bar.size() + text.size() <= width ? bar + text : text;
}

}  // namespace crema
