#include "tools/command_line.h"

#include <fcntl.h>
#include <gflags/gflags.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <iostream>
#include <new>

#include "base/listed.h"
#include "base/log.h"
#include "base/suggest.h"
#include "base/trimmed.h"
#include "crema/error.h"
#include "crema/solver.h"
#include "crema/solver.pb.h"

namespace crema::tools {

namespace {

struct Word {
  std::string name;
  std::string value;
  bool has_value = false;
};

bool LooksLikeFlag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !isdigit(static_cast<unsigned char>(word[1])) && word[1] != '.';
}

Word Split(const std::string& argument) {
  const size_t start = argument.find_first_not_of('-');
  Word word;
  word.name = start == std::string::npos ? "" : argument.substr(start);
  const size_t equals = word.name.find('=');
  if (equals != std::string::npos) {
    word.value = word.name.substr(equals + 1);
    word.name.resize(equals);
    word.has_value = true;
  }
  std::replace(word.name.begin(), word.name.end(), '-', '_');  // --sigint-effect, as gflags takes it
  return word;
}

class Parser {
 public:
  Parser(const Command& command, const std::string& program) : command_(command) { line_.program = program; }

  CommandLine Parse(const std::vector<std::string>& arguments) {
    bool flags_over = false;
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (!flags_over && arguments[i] == "--" && command_.max_arguments > 0) {
        flags_over = true;
        continue;
      }
      if (flags_over || !LooksLikeFlag(arguments[i])) {
        if (command_.max_arguments > 0) {
          line_.arguments.push_back(arguments[i]);
          continue;
        }
        Error("unexpected \"" + arguments[i] + "\"; values are given as --flag=value" + MeantFlag(arguments[i]));
        continue;
      }
      const Word word = Split(arguments[i]);
      bool negated = false;
      const Flag* flag = Find(word, &negated);
      if (!flag) {
        Error("there is no flag --" + word.name + Meant(word.name));
      } else if (flag->value.empty()) {
        Set(*flag, word.has_value ? word.value : negated ? "false" : "true");
      } else if (word.has_value) {
        Set(*flag, word.value);
      } else if (i + 1 < arguments.size() && !LooksLikeFlag(arguments[i + 1])) {
        Set(*flag, arguments[++i]);
      } else {
        Error("--" + flag->name + " needs a value: --" + flag->name + "=" + flag->value);
        line_.given.emplace_back(flag->name, "");
      }
    }
    for (const Flag& flag : command_.flags) {
      if (flag.required && !line_.has(flag.name)) {
        Error("--" + flag.name + "=" + flag.value + " is missing");
      }
      const auto given = [this](const std::string& name) { return line_.has(name); };
      if (!flag.needs.empty() && line_.has(flag.name) && std::none_of(flag.needs.begin(), flag.needs.end(), given)) {
        std::string others;
        for (const std::string& name : flag.needs) others += (others.empty() ? "--" : " or --") + name;
        Error("--" + flag.name + " has no effect without " + others);
      }
    }
    const size_t count = line_.arguments.size();
    if (count < command_.min_arguments || count > command_.max_arguments) {
      Error("expected " + command_.arguments + ", got " + (count == 0 ? "nothing" : Listed(line_.arguments)));
    }
    diagnostics_.ThrowIfErrors();
    return line_;
  }

 private:
  void Error(std::string message) { diagnostics_.Error({line_.program, 0, 0}, std::move(message)); }

  const Flag* Find(const Word& word, bool* negated) const {
    for (const Flag& flag : command_.flags) {
      if (flag.name == word.name) return &flag;
      if (flag.value.empty() && !word.has_value && "no" + flag.name == word.name) {
        *negated = true;
        return &flag;
      }
    }
    return nullptr;
  }

  std::string Meant(const std::string& name) const {
    std::vector<std::string> names;
    for (const Flag& flag : command_.flags) {
      names.push_back("--" + flag.name);
      if (flag.name == "solver" && SolverParameter::descriptor()->FindFieldByName(name)) {
        return "; set " + name + " in the solver file";
      }
    }
    const std::string hint = DidYouMean("--" + name, names);
    if (!hint.empty() || names.empty()) return hint;
    return "; it takes " + Listed(names, {.most = kAllNames});
  }

  std::string MeantFlag(const std::string& word) const {
    const std::string name = word.substr(0, word.find('='));
    for (const Flag& flag : command_.flags) {
      if (flag.name == name) return "; did you mean --" + word + "?";
    }
    return "";
  }

  void Set(const Flag& flag, const std::string& value) {
    if (value.empty() && flag.may_be_empty) {
      std::erase_if(line_.given, [&](const auto& given) { return given.first == flag.name; });
      gflags::SetCommandLineOption(flag.name.c_str(), "");
      return;
    }
    line_.given.emplace_back(flag.name, value);
    gflags::CommandLineFlagInfo info;
    if (!gflags::GetCommandLineFlagInfo(flag.name.c_str(), &info)) {
      throw std::logic_error("flag --" + flag.name + " is not defined");
    }
    const std::string given = "--" + flag.name + "=" + value;
    if (value.empty() && !flag.value.empty()) {
      Error("--" + flag.name + " needs a value: --" + flag.name + "=" + flag.value);
      return;
    }
    const bool accepted = !gflags::SetCommandLineOption(flag.name.c_str(), value.c_str()).empty();
    if (info.type == "bool" && !accepted) {
      Error(given + ": expected true or false");
    } else if (info.type == "double" && !accepted) {
      Error(given + ": expected a number");
    } else if (info.type == "int32" || info.type == "int64") {
      CheckNumber(flag, value, given, accepted, info.type == "int32" ? 32 : 64);
    } else if (!accepted) {
      Error(given + ": not a value of type " + info.type);
    }
  }

  void CheckNumber(const Flag& flag, const std::string& value, const std::string& given, bool accepted, int bits) {
    if (!accepted) {
      const bool digits = value.find_first_not_of("-0123456789") == std::string::npos;
      Error(given + ": expected a whole number" + (digits ? " that fits " + std::to_string(bits) + " bits" : ""));
      return;
    }
    const bool hexadecimal = value.find_first_of("xX") != std::string::npos;
    const int64_t number = std::stoll(value, nullptr, hexadecimal ? 16 : 10);
    if (number < flag.min) Error(given + ": must be at least " + std::to_string(flag.min));
    if (number > flag.max) Error(given + ": must be at most " + std::to_string(flag.max));
  }

  const Command& command_;
  CommandLine line_;
  Diagnostics diagnostics_;
};

// Breaks at spaces so that lines fit 80 columns after `indent` of them.
std::string Wrapped(const std::string& text, size_t indent) {
  std::string out, line;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.find(' ', begin);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && indent + line.size() + 1 + word.size() > 80) {
      out += line + "\n" + std::string(indent, ' ');
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return out + line;
}

bool WantsHelp(const std::string& argument) { return argument == "--help" || argument == "-help" || argument == "-h"; }

}  // namespace

bool CommandLine::has(const std::string& flag) const {
  return std::any_of(given.begin(), given.end(), [&](const auto& g) { return g.first == flag; });
}

std::vector<std::string> CommandLine::values(const std::string& flag) const {
  std::vector<std::string> list;
  for (const auto& [name, value] : given) {
    if (name == flag) list.push_back(value);
  }
  return list;
}

std::vector<std::string> CommaList(const CommandLine& line, const std::string& flag, const std::string& value) {
  if (value.empty()) return {};
  std::vector<std::string> parts = CommaParts(value);
  if (std::find(parts.begin(), parts.end(), "") != parts.end()) {
    throw UserError(Location{line.program, 0, 0}, "--" + flag + "=" + value + ": there is nothing beside a comma");
  }
  return parts;
}

int ChoiceOf(const CommandLine& line, const std::string& flag, const std::string& value,
             const std::vector<std::string>& values) {
  const auto at = std::find(values.begin(), values.end(), value);
  if (at != values.end()) return static_cast<int>(at - values.begin());
  throw UserError(Location{line.program, 0, 0}, "--" + flag + "=" + value + ": expected " +
                                                    Listed(values, {.most = kAllNames, .last = " or "}) +
                                                    DidYouMean(value, values));
}

CommandLine ParseFlags(const Command& command, const std::string& program, const std::vector<std::string>& arguments) {
  return Parser(command, program).Parse(arguments);
}

std::string HelpOf(const Command& command, const std::string& program) {
  std::string text = program + ": " + command.summary + "\n\nusage: " + program +
                     (command.usage.empty() ? "" : " " + command.usage) + "\n";
  if (!command.flags.empty()) text += "\nflags:\n";
  for (const Flag& flag : command.flags) {
    std::string left = "  --" + flag.name + (flag.value.empty() ? "" : "=" + flag.value);
    const bool beside = left.size() + 2 <= 28;
    if (beside) left.resize(28, ' ');
    std::string help = flag.help;
    if (flag.required) help += " (required)";
    if (flag.repeatable) help += " (may be repeated)";
    gflags::CommandLineFlagInfo info;
    if (gflags::GetCommandLineFlagInfo(flag.name.c_str(), &info) && !flag.required && flag.has_default &&
        !info.default_value.empty() && info.type != "bool") {
      help += " [" + info.default_value + "]";
    }
    text += beside ? left : left + "\n" + std::string(28, ' ');
    text += Wrapped(help, 28) + "\n";
  }
  return text + (command.examples.empty() ? "" : "\n" + command.examples);
}

std::string VersionText() { return "crema " CREMA_VERSION "\n"; }

namespace {

// Else a file that the program opens would get the number of stderr, and messages be written into it.
void OpenStandardFiles() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      [[maybe_unused]] const int opened = open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
    }
  }
}

}  // namespace

int Guarded(const std::string& program, const std::function<int()>& body) {
  OpenStandardFiles();
  // A write past the limit on file sizes then fails (EFBIG), is told and cleaned up after, as on a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  // At once: several processes may write to the same place.
  const auto say = [&](const std::string& text) { std::cerr << program + ": " + text + "\n"; };
  try {
    const int code = body();
    if (code == kExitSuccess && !std::cout.flush())
      throw EnvironmentError("not all of the output could be written to stdout; is the disk full?");
    return code;
  } catch (const UserError& error) {
    for (Diagnostic d : error.diagnostics()) {
      if (d.where.file.empty()) d.where.file = program;
      std::cerr << d.ToString() + "\n";
    }
    return kExitUser;
  } catch (const NotFinite& error) {  // it would come out the same again
    say(std::string("error: ") + error.what());
    return kExitUser;
  } catch (const EnvironmentError& error) {
    say(std::string("error: ") + error.what());
    return kExitEnvironment;
  } catch (const std::filesystem::filesystem_error& error) {  // a link to itself, a folder that may not be entered
    say("error: " + (error.path1().empty() ? "a file" : error.path1().string()) + ": " + error.code().message());
    return kExitEnvironment;
  } catch (const std::bad_alloc&) {
    say("error: there is not enough memory; a smaller batch takes less (batch_size, with a higher iter_size to keep "
        "the effective batch; --batch of commands that have it)");
    return kExitEnvironment;
  } catch (const std::exception& error) {
    say(std::string("internal error: ") + error.what() + "; this is a bug in crema, please report it");
    return kExitBug;
  }
}

int RunCommand(const Command& command, const std::string& program, const std::vector<std::string>& arguments) {
  const bool help = std::any_of(arguments.begin(), arguments.end(), WantsHelp);
  if (help || (arguments.size() == 1 && (arguments[0] == "--version" || arguments[0] == "-version"))) {
    return Guarded(program, [&] {
      std::cout << (help ? HelpOf(command, program) : VersionText());
      return kExitSuccess;
    });
  }
  FLAGS_logtostderr = true;
  // Caffe's log parsers know prefixes without a year; glog has the flag since 0.5.
  gflags::SetCommandLineOption("log_year_in_prefix", "false");
  // glog keeps the pointer and names its files with it.
  static std::string log_name;
  log_name = program;
  std::replace(log_name.begin(), log_name.end(), ' ', '_');
  google::InitGoogleLogging(log_name.c_str());
  return Guarded(program, [&] {
    CommandLine line;
    try {
      line = ParseFlags(command, program, arguments);
    } catch (const UserError& error) {
      std::cerr << error.what() << "\nSee " << program << " --help.\n";
      return kExitUser;
    }
    return command.run(line);
  });
}

}  // namespace crema::tools
