// How far a program that goes through records has come.
#ifndef CREMA_BASE_PROGRESS_LINE_H_
#define CREMA_BASE_PROGRESS_LINE_H_

#include <cstdint>
#include <string>

#include "base/terminal_line.h"

namespace crema {

// A TerminalLine that is first drawn when one is due after the start. Used by one thread.
class ProgressLine {
 public:
  // On stderr. `unit`: "images".
  explicit ProgressLine(std::string unit);
  ProgressLine(std::string unit, const Terminal& terminal);

  // How many records there will be; 0, the default: unknown.
  void SetTotal(int64_t records) { total_ = records; }
  void Add(int64_t records, int64_t bytes);
  // Prints a line of its own.
  void Say(const std::string& text);

  // "1399 images, 236.2 MiB in 4.1s: 341 images/s".
  std::string Summary() const;

 private:
  double Elapsed() const { return line_.terminal().seconds() - start_; }
  std::string Speed() const;
  std::string Text() const;

  std::string unit_;
  int64_t total_ = 0, records_ = 0, bytes_ = 0;
  double start_;
  TerminalLine line_;
};

}  // namespace crema

#endif  // CREMA_BASE_PROGRESS_LINE_H_
