// crema: one program, one command each time.
#include <iostream>

#include "base/listed.h"
#include "base/suggest.h"
#include "crema/error.h"
#include "tools/commands.h"
#include "tools/names_of_caffe.h"
#include "tools/thread_waiting.h"

namespace crema::tools {

namespace {

const std::vector<const Command*>& Commands() {
  static const std::vector<const Command*> commands = {
      &TrainCommand(),       &TestCommand(),   &TimeCommand(),     &CompileCommand(),     &ProbeCommand(),
      &DeviceQueryCommand(), &KeygenCommand(), &ClusterCommand(),  &ZooCommand(),         &PredictCommand(),
      &ExtractCommand(),     &DetectCommand(), &GenerateCommand(), &FinetuneCommand(),    &EvaluateCommand(),
      &CurvesCommand(),      &ExportCommand(), &ImportCommand(),   &BnStatisticsCommand()};
  return commands;
}

std::string Overview() {
  std::string text = "crema trains neural networks from Caffe's files.\n\nusage: crema COMMAND [flags]\n\ncommands:\n";
  for (const Command* command : Commands()) {
    std::string name = "  " + command->name;
    name.resize(17, ' ');
    text += name + command->summary + "\n";
  }
  return text +
         "\ncrema COMMAND --help, or crema help COMMAND, tells more of each; crema --version says which this is.\n"
         "`train` is short for `crema train`. Data sets are made and looked at by programs of their own, which\n"
         "also take --help: convert_imageset, convert_annoset, convert_csv, convert_text, convert_mnist_data,\n"
         "convert_mnist_siamese_data, convert_cifar_data, convert_kitti, compute_image_mean, compute_anchors,\n"
         "db_tool.\n\n"
         "example, from the repository's root:\n"
         "  crema compile --model=model_zoo/lenet/deploy.prototxt --phase=TEST\n"
         "  crema train --solver=configs/fashion_mnist/solver.prototxt\n";
}

const Command& Find(const std::string& name) {
  std::vector<std::string> names;
  for (const Command* command : Commands()) {
    if (command->name == name) return *command;
    names.push_back(command->name);
  }
  if (const std::string instead = InsteadOf(name); !instead.empty()) {
    throw UserError(Location{"crema", 0, 0}, "there is no command \"" + name + "\"; " + instead);
  }
  const std::string hint = DidYouMean(name, names);
  throw UserError(Location{"crema", 0, 0},
                  "there is no command \"" + name + "\"" +
                      (hint.empty() ? "; it is one of " + Listed(names, {.most = kAllNames}) : hint));
}

int Main(std::vector<std::string> arguments) {
  if (arguments.empty()) {
    std::cerr << Overview();
    return kExitUser;
  }
  std::string name = arguments[0];
  arguments.erase(arguments.begin());
  if (name == "--version" || name == "-version" || name == "version") {
    std::cout << VersionText();
    return kExitSuccess;
  }
  if (name == "--help" || name == "-help" || name == "-h" || name == "help") {
    if (arguments.empty()) {
      std::cout << Overview();
      return kExitSuccess;
    }
    name = arguments[0];
    arguments = {"--help"};
  }
  if (name.starts_with("-")) {
    throw UserError(Location{"crema", 0, 0}, "the command comes first: crema COMMAND " + name + " ...");
  }
  // crema cluster status
  if (name == "cluster" && !arguments.empty() && !arguments[0].starts_with("-")) {
    arguments[0] = "--request=" + arguments[0];
  }
  const Command& command = Find(name);
  return RunCommand(command, "crema " + command.name, arguments);
}

}  // namespace

}  // namespace crema::tools

int main(int argc, char** argv) {
  crema::tools::SpinBriefly(argv);
  return crema::tools::Guarded("crema", [&] { return crema::tools::Main({argv + 1, argv + argc}); });
}
