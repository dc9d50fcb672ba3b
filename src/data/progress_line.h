// How far a program that goes through records has come.
#ifndef CREMA_DATA_PROGRESS_LINE_H_
#define CREMA_DATA_PROGRESS_LINE_H_

#include <cstdint>
#include <functional>
#include <string>

namespace crema {

// Shows on a terminal one line that is written anew at most ten times a second, elsewhere a line every ten seconds.
// Used by one thread.
class ProgressLine {
 public:
  struct Output {
    std::function<void(const std::string& text)> write;
    std::function<double()> seconds;  // a clock
    bool terminal = false;
    int columns = 80;
  };

  // On stderr. `unit`: "images".
  explicit ProgressLine(std::string unit);
  ProgressLine(std::string unit, Output output);
  // Erases the line.
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // How many records there will be; 0, the default: unknown.
  void SetTotal(int64_t records) { total_ = records; }
  void Add(int64_t records, int64_t bytes);
  // Prints a line of its own.
  void Say(const std::string& text);

  // "1399 images, 236.2 MiB in 4.1s: 341 images/s".
  std::string Summary() const;

 private:
  double Elapsed() const { return output_.seconds() - start_; }
  std::string Speed() const;
  std::string Line() const;
  void Erase();

  std::string unit_;
  Output output_;
  int64_t total_ = 0, records_ = 0, bytes_ = 0;
  double start_, last_drawn_;
  bool drawn_ = false;
};

}  // namespace crema

#endif  // CREMA_DATA_PROGRESS_LINE_H_
