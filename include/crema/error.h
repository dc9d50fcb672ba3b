// What crema throws, and how a mistake in a file is reported.
//
// Three kinds of failure, three treatments:
//   UserError         a mistake in a file, a flag or the data: one Diagnostic each, programs exit with 2
//   EnvironmentError  the disk is full, a file vanished, a peer is lost: programs exit with 1, nothing is lost
//   CREMA_CHECK       a broken invariant of crema itself: prints "this is a bug in crema" and aborts
#ifndef CREMA_ERROR_H_
#define CREMA_ERROR_H_

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// A place in a file. line and column count from 1; 0 means unknown.
struct Location {
  std::string file;
  int line = 0;
  int column = 0;

  // "lenet.prototxt:42:3", as much of it as is known; empty when nothing is.
  std::string ToString() const;
};

struct Diagnostic {
  // A note says what was done where a choice was left to crema.
  enum class Severity { kNote, kWarning, kError };

  Severity severity = Severity::kError;
  Location where;
  std::string message;

  // "lenet.prototxt:42:3: error: ..."
  std::string ToString() const;
};

class UserError : public std::runtime_error {
 public:
  explicit UserError(std::string message);
  UserError(Location where, std::string message);
  explicit UserError(std::vector<Diagnostic> diagnostics);

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Collects what is wrong, so that one run shows every mistake. Not thread-safe.
class Diagnostics {
 public:
  void Error(Location where, std::string message);
  void Warning(Location where, std::string message);
  void Note(Location where, std::string message);

  bool has_errors() const { return errors_ > 0; }
  // Readers of long files stop here: one mistake of a whole file would fill screens.
  bool enough() const { return errors_ >= 20; }
  const std::vector<Diagnostic>& list() const { return list_; }

  // Throws UserError with the whole list when it holds at least one error.
  void ThrowIfErrors() const;

 private:
  std::vector<Diagnostic> list_;
  int errors_ = 0;
};

}  // namespace crema

#endif  // CREMA_ERROR_H_
