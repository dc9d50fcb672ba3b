// A line on a terminal that is written anew again and again.
#ifndef CREMA_BASE_TERMINAL_LINE_H_
#define CREMA_BASE_TERMINAL_LINE_H_

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>

namespace crema {

// Where such a line is written.
struct Terminal {
  std::function<void(const std::string& text)> write;
  std::function<int()> columns;
  std::function<double()> seconds;  // a clock
  bool moves_cursor = true;         // false: it is a file, or a terminal that cannot
};

Terminal StderrTerminal();

// Drawn at most ten times a second; where the cursor cannot be moved, as a whole line at most every ten seconds. The
// cursor waits at its start, so that whatever else is printed overwrites it.
class TerminalLine {
 public:
  // drawn_at: when the last one was drawn, by the terminal's clock.
  explicit TerminalLine(Terminal terminal, double drawn_at = -std::numeric_limits<double>::infinity())
      : terminal_(std::move(terminal)), drawn_at_(drawn_at) {}
  ~TerminalLine() { Erase(); }
  TerminalLine(const TerminalLine&) = delete;
  TerminalLine& operator=(const TerminalLine&) = delete;

  const Terminal& terminal() const { return terminal_; }
  // Characters that it may have now. A full line would make some terminals wrap.
  size_t width() const;
  // Whether it may be drawn again.
  bool IsDue() const;
  // What is longer than its width is cut.
  void Draw(const std::string& text);
  void Erase();

 private:
  Terminal terminal_;
  double drawn_at_;
  bool drawn_ = false;
};

}  // namespace crema

#endif  // CREMA_BASE_TERMINAL_LINE_H_
