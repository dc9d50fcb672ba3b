// The command line shared by crema's programs: flags are defined with gflags, but each command accepts only its own,
// and everything wrong with a command line is reported before anything starts.
#ifndef CREMA_TOOLS_COMMAND_LINE_H_
#define CREMA_TOOLS_COMMAND_LINE_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace crema::tools {

// One flag that a command accepts; the gflags flag of that name must be linked in.
struct Flag {
  std::string name;
  std::string value;  // what stands for the value in the help: "FILE", "N"; empty for switches
  std::string help;
  bool required = false;
  bool repeatable = false;  // all values are kept, see CommandLine; of other flags the last one counts
  // Of whole-number flags.
  int64_t min = std::numeric_limits<int64_t>::min(), max = std::numeric_limits<int64_t>::max();
  // It has no effect without one of these flags, and is refused.
  std::vector<std::string> needs = {};
  // false: the command does something else without it than with its default, and `help` says what.
  bool has_default = true;
  // Of text: --x= is as good as no --x, for scripts with variables that may be empty. Elsewhere it is refused: whose
  // $SNAPSHOT is empty does not mean to begin anew.
  bool may_be_empty = false;
};

// What was given, beyond what gflags holds.
struct CommandLine {
  std::string program;  // "crema train": stands before messages
  std::vector<std::pair<std::string, std::string>> given;
  std::vector<std::string> arguments;  // what is no flag, in order

  bool has(const std::string& flag) const;
  // Every value given for a repeatable flag, in order.
  std::vector<std::string> values(const std::string& flag) const;
};

// "a, b" as its parts, trimmed. Throws UserError that names the flag where one is empty.
std::vector<std::string> CommaList(const CommandLine& line, const std::string& flag, const std::string& value);

// Which of `values` a flag's value is. Throws UserError that lists them.
int ChoiceOf(const CommandLine& line, const std::string& flag, const std::string& value,
             const std::vector<std::string>& values);

struct Command {
  std::string name;
  std::string summary;  // one line
  std::string usage;    // "--solver=FILE [flags]"
  std::vector<Flag> flags;
  std::string examples;  // and further explanation, printed after the flags
  // How many words that are no flags are taken, and what they are: "IMAGE...".
  std::string arguments = {};
  size_t min_arguments = 0, max_arguments = 0;
  int (*run)(const CommandLine& line);  // returns the exit code, or throws as crema/error.h says
};

constexpr int kExitSuccess = 0, kExitEnvironment = 1, kExitUser = 2, kExitBug = 3;

// Sets the gflags flags of `command` from `arguments` (without program and command). Accepts -x and --x, --x=v and
// --x v, --x and --nox for switches; behind -- nothing is a flag. Throws UserError holding every mistake.
CommandLine ParseFlags(const Command& command, const std::string& program, const std::vector<std::string>& arguments);

// The text of --help.
std::string HelpOf(const Command& command, const std::string& program);

// Parses, runs and reports: the whole of a program that is one command. `program` is what the user calls it.
int RunCommand(const Command& command, const std::string& program, const std::vector<std::string>& arguments);

// Calls `body` and turns what it throws into messages on stderr and an exit code.
int Guarded(const std::string& program, const std::function<int()>& body);

// Name and version for --version.
std::string VersionText();

}  // namespace crema::tools

#endif  // CREMA_TOOLS_COMMAND_LINE_H_
