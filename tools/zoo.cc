// crema zoo: the models that come with crema.
#include "zoo/zoo.h"

#include <gflags/gflags.h>

#include <cstdlib>
#include <iostream>

#include "base/printable.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "crema/error.h"
#include "tools/commands.h"
#include "zoo/card_text.h"
#include "zoo/fetch.h"

DECLARE_string(output);
DEFINE_string(zoo, "", "the folder of models");
DEFINE_string(mirror, "", "where weights are looked for first");
DEFINE_bool(force, false, "replace files that exist");

namespace crema::tools {

namespace {

[[noreturn]] void Fail(const CommandLine& line, const std::string& message) {
  throw UserError(Location{line.program, 0, 0}, message);
}

// Flags of one action are mistakes with another.
void CheckArguments(const CommandLine& line) {
  struct Action {
    std::string name;
    size_t arguments;  // with the name
    const char* usage;
  };
  static const std::vector<Action> actions = {
      {"list", 1, "list"}, {"show", 2, "show NAME"}, {"copy", 3, "copy NAME DIR"}, {"get", 2, "get NAME"}};
  const std::string& name = line.arguments[0];
  std::vector<std::string> names;
  for (const Action& action : actions) {
    names.push_back(action.name);
    if (action.name != name) continue;
    if (line.arguments.size() != action.arguments) Fail(line, std::string("expected crema zoo ") + action.usage);
    if (line.has("force") && name != "copy") Fail(line, "--force belongs to crema zoo copy");
    for (const char* flag : {"output", "mirror"}) {
      if (line.has(flag) && name != "get") Fail(line, std::string("--") + flag + " belongs to crema zoo get");
    }
    return;
  }
  const std::string hint = DidYouMean(name, names);
  Fail(line, "there is no \"" + name + "\"" + (hint.empty() ? "; it is one of list, show, copy, get" : hint));
}

void List(const std::string& zoo) {
  TextTable table({"name", ">parameters", ">flops", "weights", "accuracy", "summary"});
  for (const ZooModel& model : ListZoo(zoo)) {
    table.AddRow({model.card.name, model.card.parameters, model.card.flops, model.weights_status(), model.card.accuracy,
                  model.card.summary});
  }
  std::cout << table.ToString() << "\nin " << zoo << "; `crema zoo show NAME` shows the card\n";
}

void Copy(const ZooModel& model, const std::string& folder) {
  const ModelCopy copy = CopyModel(model, folder, FLAGS_force);
  for (const std::string& file : copy.files) std::cout << "wrote " << folder << "/" << file << "\n";
  if (!copy.rewritten.empty()) std::cout << "\nrewritten, relative to " << folder << ":\n";
  for (const std::string& line : copy.rewritten) std::cout << "  " << line << "\n";
  if (!copy.left.empty()) std::cout << "\nleft, relative to the working directory or to " << folder << ":\n";
  for (const std::string& line : copy.left) std::cout << "  " << line << "\n";
  if (!model.card.weights.empty() && !model.has_weights) {
    std::cout << "\nits weights are not here: crema zoo get " << model.card.name << " --output=" << ShellWord(folder)
              << "\n";
  }
}

void Get(const ZooModel& model) {
  FetchOptions options;
  options.output = FLAGS_output;
  options.mirror = FLAGS_mirror;
  if (const char* variable = std::getenv("CREMA_ZOO_MIRROR"); options.mirror.empty() && variable) {
    options.mirror = variable;
  }
  options.say = [](const std::string& text) { std::cerr << text << "\n"; };
  std::cout << FetchWeights(model, options) << "\n";
}

int Run(const CommandLine& line) {
  CheckArguments(line);
  const std::string zoo = FindZoo(FLAGS_zoo);
  const std::string& action = line.arguments[0];
  if (action == "list") {
    List(zoo);
    return kExitSuccess;
  }
  const ZooModel model = FindModel(zoo, line.arguments[1]);
  if (action == "show") std::cout << CardText(model);
  if (action == "copy") Copy(model, line.arguments[2]);
  if (action == "get") Get(model);
  return kExitSuccess;
}

}  // namespace

const Command& ZooCommand() {
  static const Command command = {
      .name = "zoo",
      .summary = "list, show, copy and get the models that come with crema",
      .usage = "list|show NAME|copy NAME DIR|get NAME [flags]",
      .flags = {{.name = "zoo", .value = "DIR", .help = "the folder of models [CREMA_ZOO, or the one that came along]"},
                {.name = "output", .value = "DIR", .help = "get: where the weights go [the model's folder]"},
                {.name = "mirror",
                 .value = "URL",
                 .help = "get: where weights that did not come along are looked for first, as MODEL/FILE and "
                         "FILE [CREMA_ZOO_MIRROR]"},
                {.name = "force", .value = "", .help = "copy: replace files that exist"}},
      .examples =
          "list shows all models, show one card. copy writes a model's files into a folder of your own, where\n"
          "the solver trains as it stands. get fetches weights, checks their sum, and goes on where it was cut\n"
          "off.\n\n"
          "examples:\n"
          "  crema zoo list\n"
          "  crema zoo copy lenet my_lenet\n"
          "  crema zoo get lenet --output=my_lenet --mirror=file:///media/models\n",
      .arguments = "list, show NAME, copy NAME DIR or get NAME",
      .min_arguments = 1,
      .max_arguments = 3,
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
