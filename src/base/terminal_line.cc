#include "base/terminal_line.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/stopwatch.h"

namespace crema {

namespace {

constexpr double kRedraw = 0.1, kNewLine = 10;  // seconds
constexpr char kErase[] = "\r\x1b[K";

}  // namespace

Terminal StderrTerminal() {
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
  const char* kind = std::getenv("TERM");
  terminal.moves_cursor = isatty(STDERR_FILENO) && kind && std::strcmp(kind, "dumb") != 0;
  return terminal;
}

size_t TerminalLine::width() const {
  const int columns = terminal_.columns();
  return columns > 1 ? static_cast<size_t>(columns - 1) : 0;
}

bool TerminalLine::IsDue() const {
  return terminal_.seconds() - drawn_at_ >= (terminal_.moves_cursor ? kRedraw : kNewLine);
}

void TerminalLine::Draw(const std::string& text) {
  drawn_at_ = terminal_.seconds();
  drawn_ = terminal_.moves_cursor;
  terminal_.write(drawn_ ? kErase + text.substr(0, width()) + "\r" : text + "\n");
}

void TerminalLine::Erase() {
  if (drawn_) terminal_.write(kErase);
  drawn_ = false;
}

}  // namespace crema
