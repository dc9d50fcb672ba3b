// crema keygen: the keys by which machines that train together know each other.
#include <iostream>

#include "crema/error.h"
#include "distributed/security/keys.h"
#include "tools/commands.h"
#include "tools/flags.h"

DEFINE_string(output, "", "the name of the key");

namespace crema::tools {

namespace {

int Run(const CommandLine& line) {
  const std::string& name = FLAGS_output;
  if (name.ends_with("/")) {
    throw UserError(Location{line.program}, "--output=" + name + ": is a folder; give a name in it: " + name + "NAME");
  }
  for (const char* suffix : {".secret", ".public"}) {
    if (!name.ends_with(suffix)) continue;
    throw UserError(Location{line.program},
                    "--output=" + name + ": give the name without " + suffix + "; the command writes both files");
  }
  const KeyFiles files = WriteKeyPair(MakeKeyPair(), name);
  std::cout << "wrote " << files.secret_path << ": stays on the machine that uses it, readable by its owner only\n"
            << "wrote " << files.public_path << ": may be known to all\n\n"
            << "If these are the coordinator's, in its solver file:\n"
            << "  distributed { security { secret_key_file: \"" << files.secret_path
            << "\" authorized_keys_dir: \"FOLDER\" } }\n"
            << "FOLDER holds the .public file of every worker that may join. Give each worker a copy of\n"
            << files.public_path << ".\n\n"
            << "If these are a worker's:\n"
            << "  train --join=tcp://HOST:5570 --secret_key=" << files.secret_path
            << " --server_key=COORDINATOR.public\n"
            << "Copy " << files.public_path << " into the coordinator's authorized_keys_dir.\n";
  return kExitSuccess;
}

}  // namespace

const Command& KeygenCommand() {
  static const Command command = {
      .name = "keygen",
      .summary = "make a pair of keys, for training on several machines",
      .usage = "--output=NAME",
      .flags = {{.name = "output",
                 .value = "NAME",
                 .help = "write NAME.secret and NAME.public, neither of which may exist",
                 .required = true}},
      .examples =
          "example, of a coordinator and a worker:\n"
          "  On the machine of the coordinator:\n"
          "    crema keygen --output=coordinator\n"
          "    mkdir workers\n"
          "  On the worker's:\n"
          "    crema keygen --output=worker1\n"
          "  Copy worker1.public into the folder workers of the coordinator, and coordinator.public to\n"
          "  the worker. The secret files stay where they are. The coordinator's solver file:\n"
          "    distributed {\n"
          "      endpoint: \"tcp://*:5570\"\n"
          "      security { secret_key_file: \"coordinator.secret\" authorized_keys_dir: \"workers\" }\n"
          "    }\n"
          "  The worker:\n"
          "    train --join=tcp://HOST:5570 --secret_key=worker1.secret \\\n"
          "      --server_key=coordinator.public\n\n"
          "A key that is added to the folder, or removed, counts from the next connection on. Make a\n"
          "pair for each machine; existing files are never overwritten.\n",
      .run = Run,
  };
  return command;
}

}  // namespace crema::tools
