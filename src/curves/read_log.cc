// Reads the log of a training: Caffe's, that of its forks, or crema's own.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdio>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "crema/error.h"
#include "curves/training_run.h"

namespace crema {

namespace {

// glog's prefix: "I1121 01:26:06.132561 10849 solver.cpp:218] ", later versions with the year. Seconds since 1970, or,
// without one, since a first of January; `leap`: of a year with a February 29, which a prefix of that day sets.
std::optional<double> TimeOf(std::string_view line, bool* leap) {
  if (line.empty() || std::string_view("IWEF").find(line[0]) == std::string_view::npos) return std::nullopt;
  const size_t space = line.find(' ');
  if (space != 5 && space != 9) return std::nullopt;
  int year = 0, month = 0, day = 0, hour = 0, minute = 0;
  double second = 0;
  const std::string text(line.substr(space - 4, 24));
  if (space == 9 && std::sscanf(std::string(line.substr(1, 4)).c_str(), "%4d", &year) != 1) return std::nullopt;
  if (std::sscanf(text.c_str(), "%2d%2d %d:%d:%lf", &month, &day, &hour, &minute, &second) != 5) return std::nullopt;
  if (month < 1 || month > 12 || day < 1 || day > 31) return std::nullopt;
  using std::chrono::sys_days;
  if (space == 5) {
    *leap |= month == 2 && day == 29;
    year = *leap ? 2000 : 2001;
  }
  const std::chrono::year first(space == 5 ? year : 1970);
  const auto days = sys_days(std::chrono::year(year) / month / day) - sys_days(first / 1 / 1);
  return ((days.count() * 24.0 + hour) * 60 + minute) * 60 + second;
}

// What stands behind `before` in `text`, as a number.
std::optional<double> NumberBehind(std::string_view text, std::string_view before) {
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  const char* const begin = text.data() + at + before.size();
  double value = 0;
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
  // "-1.#IND" is no number, as programs for Windows write it.
  if (error != std::errc() || end == begin || (end != text.data() + text.size() && *end == '#')) return std::nullopt;
  return value;
}

// "    Test net output #1: loss = 0.25 (* 1 = 0.25 loss)"
std::optional<OutputValue> OutputOf(std::string_view message) {
  const size_t name = message.find(": "), equals = message.find(" = ", name);
  if (name == std::string_view::npos || equals == std::string_view::npos) return std::nullopt;
  const std::optional<double> value = NumberBehind(message.substr(equals), " = ");
  if (!value) return std::nullopt;
  const std::optional<double> weight = NumberBehind(message, "(* ");
  return OutputValue{std::string(message.substr(name + 2, equals - name - 2)), static_cast<float>(*value),
                     static_cast<float>(weight.value_or(0)), weight.has_value()};
}

class LogReader {
 public:
  explicit LogReader(int* earlier) : earlier_(earlier) {}

  void Read(std::string_view line) {
    const std::optional<double> time = TimeOf(line, &leap_);
    const size_t prefix = time ? line.find("] ") : std::string_view::npos;
    const std::string_view message = prefix == std::string_view::npos ? line : line.substr(prefix + 2);
    const size_t word = message.find_first_not_of(' ');
    if (word == std::string_view::npos) return;
    const std::string_view text = message.substr(word);
    const bool of_test = text.starts_with("Test net output #"), of_train = text.starts_with("Train net output #");
    if (!of_test && !of_train) AddOutputs();
    if (time) Clock(*time);
    if (of_test || of_train) {
      kind_ = of_test ? CurveKind::kTest : CurveKind::kTraining;
      if (const auto output = OutputOf(text)) outputs_.push_back(*output);
    } else if (const auto at = NumberBehind(text, "Iteration "); at && text.starts_with("Iteration ")) {
      if (!(*at >= 0 && *at <= INT_MAX)) return;
      Iteration(static_cast<int>(*at), text);
    } else if (const auto loss = NumberBehind(text, "Test loss: "); loss && text.starts_with("Test loss: ")) {
      run_.AddTestLoss(iteration_, seconds_, net_, *loss);
    } else if (text.starts_with("Starting Optimization")) {
      begins_ = true;
      start_ = time;
    } else if (text.starts_with("Solving ")) {
      // Caffe's name of the net stands behind the beginning of the optimization.
      name_ = text.substr(8);
    } else if (text.starts_with("Resuming from ") || text.starts_with("Restored iteration ") ||
               text.starts_with("Restoring previous solver status")) {
      resumes_ = true;
    } else if (text.starts_with("Optimization Done")) {
      run_.End(iteration_);
    }
  }

  TrainingRun Finish() {
    AddOutputs();
    return run_.Finish();
  }

 private:
  void Clock(double time) {
    if (!began_) began_ = time;
    // A year has ended; else the clock was set back.
    if (time < *began_ - 180 * 86400.0) *began_ -= (std::exchange(leap_, false) ? 366 : 365) * 86400.0;
    time_ = time;
    seconds_ = std::max(seconds_, time - *began_);
  }

  void Iteration(int iteration, std::string_view text) {
    if (begins_ || (!run_.empty() && iteration < iteration_)) Begin(iteration);
    iteration_ = iteration;
    if (const auto rate = NumberBehind(text, ", lr = ")) {
      run_.AddRate(iteration, seconds_, *rate);
    } else if (const auto loss = NumberBehind(text, ", loss = ")) {
      run_.AddLoss(iteration, seconds_, *loss);
    } else if (const auto net = NumberBehind(text, "Testing net (#")) {
      net_ = static_cast<int>(std::clamp(*net, 0.0, 1000.0));
    }
  }

  void Begin(int iteration) {
    if (resumes_ && !run_.empty()) {
      run_.ResumeAt(iteration);
    } else {
      *earlier_ += run_.empty() ? 0 : 1;
      run_.Start(name_, 0);
    }
    begins_ = resumes_ = false;
    began_ = start_ ? start_ : began_ ? std::optional(time_) : std::nullopt;
    start_.reset();
    seconds_ = 0;
    if (began_) Clock(time_);
  }

  void AddOutputs() {
    if (!outputs_.empty()) {
      run_.AddOutputs(kind_, iteration_, seconds_, kind_ == CurveKind::kTest ? net_ : 0, outputs_);
    }
    outputs_.clear();
  }

  int* earlier_;
  RunBuilder run_;
  std::string name_;
  bool begins_ = true, resumes_ = false;
  std::optional<double> start_, began_;  // of what begins next, and of what is read
  bool leap_ = false;                    // the year has a February 29
  double time_ = 0, seconds_ = 0;        // of the last line; since began_
  int iteration_ = 0, net_ = 0;
  CurveKind kind_ = CurveKind::kTraining;
  std::vector<OutputValue> outputs_;  // of the lines just before
};

}  // namespace

TrainingRun ReadLog(const std::string& text, const std::string&, int* earlier) {
  LogReader reader(earlier);
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    reader.Read(line);
  }
  return reader.Finish();
}

}  // namespace crema
